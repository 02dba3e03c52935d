// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Pipeline
package import PushModel

/// The worker's records for one topic on their way to Kafka's producer. Only a bounded part of them
/// is with the producer, which keeps copies: so a topic that accepts nothing can neither fill the
/// producer's queue nor take up the planner's time with repeated offers. Each partition has an equal
/// share of the bounds and a back-off of its own (`PartitionOutlet`): one without a leader delays no
/// other.
package struct RecordOutlet {
    private var parts: [PartitionOutlet]
    /// The partition from which records are taken until it has none to offer.
    private var turn = 0
    /// The partition of each record that is with the producer, by ticket.
    private var offered: [UInt64: Int] = [:]
    private let recordsMax: Int
    private let bytesMax: Int

    package init(recordsMax: Int, bytesMax: Int) {
        precondition(
            recordsMax > 0 && bytesMax > 0,
            "an outlet lets through at least one record and one byte")
        self.recordsMax = recordsMax
        self.bytesMax = bytesMax
        parts = [PartitionOutlet(recordsMax: recordsMax, bytesMax: bytesMax)]
    }

    /// The topic has so many partitions, as far as is known: 1 until Kafka has said. Their number
    /// never shrinks.
    package mutating func adopt(partitions: Int) {
        guard partitions > parts.count else { return }
        let share = PartitionOutlet(
            recordsMax: max(1, recordsMax / partitions), bytesMax: max(1, bytesMax / partitions))
        // What waits goes to the partition that is its own now, so that no later record of its key
        // overtakes it.
        var waiting: [OutgoingRecord] = []
        for index in parts.indices {
            parts[index].adopt(boundsOf: share)
            waiting += parts[index].takeWaiting()
        }
        parts += Array(repeating: share, count: partitions - parts.count)
        waitingCount = 0
        for record in waiting { append(record) }
    }

    package mutating func append(_ record: OutgoingRecord) {
        let partition =
            record.partition.map { Int($0) % parts.count }
            ?? KeyPartition.of(record.key, partitions: parts.count)
        parts[partition].append(record)
        waitingCount += 1
    }

    package private(set) var waitingCount = 0
    package var offeredCount: Int { offered.count }

    /// The record to offer to the producer now; nil if none may be offered. It stays the same until
    /// `take` is called.
    package mutating func next(now: Now) -> OutgoingRecord? {
        guard waitingCount > 0 else { return nil }
        for _ in parts.indices {
            if let record = parts[turn].next(now: now) { return record }
            turn = (turn + 1) % parts.count
        }
        return nil
    }

    /// Removes the next record from the queue: the producer has it, or will never accept it.
    /// - Parameter isAccepted: whether the producer has it and will report on it.
    package mutating func take(isAccepted: Bool, now: Now) {
        let record = parts[turn].take(isAccepted: isAccepted, now: now)
        waitingCount -= 1
        guard isAccepted else { return }
        let earlier = offered.updateValue(turn, forKey: record.ticket)
        precondition(earlier == nil, "the producer has a record at most once")
    }

    /// Notes that the producer has reported on a record. Returns false if the record is not from
    /// this outlet.
    /// - Parameter cause: why Kafka did not accept it; nil if it did, or if only that record is at
    ///   fault.
    package mutating func reported(_ ticket: UInt64, cause: String?, now: Now) -> Bool {
        guard let partition = offered.removeValue(forKey: ticket) else { return false }
        parts[partition].reported(ticket, cause: cause, now: now)
        return true
    }

    /// Notes that the producer has refused the record that was taken last.
    package mutating func refused(cause: String, now: Now) {
        parts[turn].refused(cause: cause, now: now)
    }

    /// Whether a record appended now would be sent: at once (`closed`), as a trial (`halfOpen`), or
    /// not (`open`). With several partitions it is what is true of the worst of them.
    package func breaker(now: Now) -> TopicBreakerState {
        var worst = TopicBreakerState.closed
        for part in parts {
            switch part.breaker(now: now) {
            case .open: return .open
            case .halfOpen: worst = .halfOpen
            case .closed: break
            }
        }
        return worst
    }

    /// Removes and returns the records that the producer does not have yet, of partitions of which
    /// Kafka accepts nothing now. This is for records that the owner can do without.
    package mutating func withdraw(now: Now) -> [OutgoingRecord] {
        guard waitingCount > 0 else { return [] }
        var records: [OutgoingRecord] = []
        for index in parts.indices { records += parts[index].withdraw(now: now) }
        waitingCount -= records.count
        assert(waitingCount >= 0, "no more records are withdrawn than wait")
        return records
    }

    /// Why Kafka accepts nothing of some partition; nil if it does, or if there is nothing to send.
    package func trouble(now: Now) -> Trouble? {
        var trouble: Trouble?
        for part in parts {
            guard let found = part.trouble(now: now) else { continue }
            trouble = Trouble(
                cause: trouble?.cause ?? found.cause, partitions: (trouble?.partitions ?? 0) + 1)
        }
        return trouble
    }

    package struct Trouble: Equatable {
        /// The name of Kafka's error; nil if nothing was reported.
        package var cause: String?
        /// How many partitions it concerns.
        package var partitions = 1
    }
}

extension RecordOutlet {
    /// Makes the outlets, one for each `RecordTopic`. Together their bounds leave room in the
    /// producer's queue, so that they cannot fill it.
    package static func all(properties: [String: String]) -> [RecordOutlet] {
        func limit(_ name: String, _ standard: Int) -> Int {
            max(1, (properties[name].flatMap { Int($0) } ?? standard) / 5)
        }
        let records = limit("queue.buffering.max.messages", 100_000)
        let bytes = limit("queue.buffering.max.kbytes", 65_536) << 10
        return RecordTopic.allCases.enumerated().map { position, topic in
            precondition(topic.rawValue == position, "an outlet stands at its topic's raw value")
            // Dead letters are few, but any number of them may have to wait.
            let share = topic == .deadLetters ? min(bytes, 4 << 20) : bytes
            return RecordOutlet(recordsMax: records, bytesMax: share)
        }
    }
}
