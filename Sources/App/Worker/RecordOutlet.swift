// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Pipeline
package import PushModel

/// The worker's records for one topic on their way to Kafka's producer. Only a bounded part of them
/// is with the producer, which keeps copies: so a topic that accepts nothing can neither fill the
/// producer's queue nor take up the planner's time with repeated offers.
///
/// After a refusal one record at a time is offered, with a back-off, until Kafka accepts one.
package struct RecordOutlet {
    private var waiting: [OutgoingRecord] = []
    private var first = 0
    /// The sizes of the records that are with the producer, by ticket.
    private var offered: [UInt64: Int] = [:]
    private var offeredBytes = 0
    private let recordsMax: Int
    private let bytesMax: Int
    /// Rounds of refusals since Kafka last accepted a record.
    private var refusals = 0
    private var offersAgainAt = MonotonicTime(nanoseconds: .min)
    /// When the producer last reported on a record, or was given the first.
    private var movedAt = MonotonicTime(nanoseconds: .min)
    private var cause: String?

    private static let backoffMax = Duration.seconds(30)
    /// How long the producer may report nothing. An acknowledgement of a healthy Kafka takes far
    /// less.
    private static let patience = Duration.seconds(10)

    package init(recordsMax: Int, bytesMax: Int) {
        precondition(recordsMax > 0 && bytesMax > 0, "an outlet through which nothing gets")
        self.recordsMax = recordsMax
        self.bytesMax = bytesMax
    }

    package mutating func append(_ record: OutgoingRecord) { waiting.append(record) }

    package var waitingCount: Int { waiting.count - first }
    package var offeredCount: Int { offered.count }

    /// The record to offer to the producer now; nil if none may be offered. It stays the same until
    /// `take` is called.
    package func next(now: Now) -> OutgoingRecord? {
        guard first < waiting.count else { return nil }
        guard !offered.isEmpty else { return offersAgainAt <= now.monotonic ? waiting[first] : nil }
        let fits =
            refusals == 0 && offered.count < recordsMax
            && offeredBytes + Self.bytes(waiting[first]) <= bytesMax
        return fits ? waiting[first] : nil
    }

    /// Removes the next record from the queue: the producer has it, or will never accept it.
    /// - Parameter isAccepted: whether the producer has it and will report on it.
    package mutating func take(isAccepted: Bool, now: Now) {
        precondition(first < waiting.count, "no record is next")
        let record = waiting[first]
        first += 1
        if first == waiting.count || first > 1024 && first * 2 > waiting.count {
            waiting.removeFirst(first)
            first = 0
        }
        guard isAccepted else { return }
        if offered.isEmpty { movedAt = now.monotonic }
        let earlier = offered.updateValue(Self.bytes(record), forKey: record.ticket)
        precondition(earlier == nil, "a record is with the producer twice")
        offeredBytes += Self.bytes(record)
    }

    /// Notes that the producer has reported on a record. Returns false if the record is not from
    /// this outlet.
    /// - Parameter cause: why Kafka did not accept it; nil if it did, or if only that record is at
    ///   fault.
    package mutating func reported(_ ticket: UInt64, cause: String?, now: Now) -> Bool {
        guard let bytes = offered.removeValue(forKey: ticket) else { return false }
        offeredBytes -= bytes
        precondition(
            offeredBytes >= 0 && (offeredBytes == 0 || !offered.isEmpty),
            "the bytes with the producer are miscounted")
        if let cause {
            refused(cause: cause, now: now)
        } else {
            movedAt = now.monotonic
            refusals = 0
            self.cause = nil
        }
        return true
    }

    /// Notes that Kafka or the producer has refused a record. Others that were offered with it
    /// count as the same refusal.
    package mutating func refused(cause: String, now: Now) {
        self.cause = cause
        guard offersAgainAt <= now.monotonic else { return }
        // 1, 2, 4, 8, 16 and 30 s.
        let wait = min(.seconds(1 << min(refusals, 5)), Self.backoffMax)
        refusals += 1
        offersAgainAt = now.monotonic + wait
    }

    /// Whether a record appended now would be sent: at once (`closed`), as a trial (`halfOpen`), or
    /// not (`open`).
    package func breaker(now: Now) -> TopicBreakerState {
        if isUnanswered(now: now) { return .open }
        guard refusals > 0 else { return .closed }
        let isFree = waitingCount == 0 && offered.isEmpty && offersAgainAt <= now.monotonic
        return isFree ? .halfOpen : .open
    }

    /// Removes and returns the records that the producer does not have yet, if Kafka accepts
    /// nothing now. This is for records that the owner can do without.
    package mutating func withdraw(now: Now) -> [OutgoingRecord] {
        guard first < waiting.count else { return [] }
        let isBackingOff = refusals > 0 && offersAgainAt > now.monotonic
        guard isBackingOff || isUnanswered(now: now) else { return [] }
        defer {
            waiting.removeAll()
            first = 0
        }
        return Array(waiting[first...])
    }

    /// Whether the producer has records and has reported nothing for too long.
    private func isUnanswered(now: Now) -> Bool {
        !offered.isEmpty && now.monotonic - movedAt >= Self.patience
    }

    /// Why Kafka accepts nothing; nil if it does, or if there is nothing to send.
    package func trouble(now: Now) -> Trouble? {
        if refusals > 0 { return Trouble(cause: cause) }
        return isUnanswered(now: now) ? Trouble(cause: nil) : nil
    }

    package struct Trouble: Equatable {
        /// The name of Kafka's error; nil if nothing was reported.
        package var cause: String?
    }

    private static func bytes(_ record: OutgoingRecord) -> Int {
        record.key.count + (record.value?.count ?? 0)
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
            precondition(topic.rawValue == position, "an outlet stands in another topic's place")
            // Dead letters are few, but any number of them may have to wait.
            let share = topic == .deadLetters ? min(bytes, 4 << 20) : bytes
            return RecordOutlet(recordsMax: records, bytesMax: share)
        }
    }
}
