// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Pipeline
package import PushModel

/// The records of ours for one topic on their way to Kafka's producer. Only a bounded part of them is
/// with the producer, which keeps a copy: a topic that takes nothing can then fill neither its queue
/// nor, by being offered everything again and again, the planner's time.
///
/// After a refusal one record at a time is offered, with a back-off; the first one that Kafka takes
/// ends that.
package struct RecordOutlet {
    private var waiting: [OutgoingRecord] = []
    private var first = 0
    /// With the producer: the bytes by ticket.
    private var offered: [UInt64: Int] = [:]
    private var offeredBytes = 0
    private let recordsMax: Int
    private let bytesMax: Int
    /// Rounds of refusals since Kafka last took a record.
    private var refusals = 0
    private var offersAgainAt = MonotonicTime(nanoseconds: .min)
    /// When the producer last reported of a record, or was given the first.
    private var movedAt = MonotonicTime(nanoseconds: .min)
    private var cause: String?

    private static let backoffMax = Duration.seconds(30)
    /// Kafka's slowest acknowledgement while it is well is far below this.
    private static let patience = Duration.seconds(10)

    package init(recordsMax: Int, bytesMax: Int) {
        precondition(recordsMax > 0 && bytesMax > 0, "an outlet through which nothing gets")
        self.recordsMax = recordsMax
        self.bytesMax = bytesMax
    }

    package mutating func append(_ record: OutgoingRecord) { waiting.append(record) }

    package var waitingCount: Int { waiting.count - first }
    package var offeredCount: Int { offered.count }

    /// The record to offer to the producer now; it is the next one until `take` is called.
    package func next(now: Now) -> OutgoingRecord? {
        guard first < waiting.count else { return nil }
        guard !offered.isEmpty else { return offersAgainAt <= now.monotonic ? waiting[first] : nil }
        let fits =
            refusals == 0 && offered.count < recordsMax
            && offeredBytes + Self.bytes(waiting[first]) <= bytesMax
        return fits ? waiting[first] : nil
    }

    /// The next record goes out of the line: the producer has it, or will never take it.
    /// - Parameter isAccepted: the producer will report of it.
    package mutating func take(isAccepted: Bool, now: Now) {
        precondition(first < waiting.count, "no record is next")
        let record = waiting[first]
        first += 1
        if first == waiting.count || first > 1024 && first * 2 > waiting.count {
            waiting.removeFirst(first)
            first = 0
        }
        guard isAccepted else { return }
        precondition(offered[record.ticket] == nil, "a record is with the producer twice")
        if offered.isEmpty { movedAt = now.monotonic }
        offered[record.ticket] = Self.bytes(record)
        offeredBytes += Self.bytes(record)
    }

    /// The producer has reported of a record that it had, if it was this outlet's.
    /// - Parameter cause: why Kafka did not take it; nil where it did, or where only that record is to
    ///   blame.
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

    /// Kafka or its producer has refused a record. Others that were offered with it fail with it.
    package mutating func refused(cause: String, now: Now) {
        self.cause = cause
        guard offersAgainAt <= now.monotonic else { return }
        // 1, 2, 4, 8, 16 and 30 s.
        let wait = min(.seconds(1 << min(refusals, 5)), Self.backoffMax)
        refusals += 1
        offersAgainAt = now.monotonic + wait
    }

    /// What would become of a record that is appended now.
    package func flow(now: Now) -> RecordFlow {
        if isUnanswered(now: now) { return .open }
        guard refusals > 0 else { return .closed }
        let isFree = waitingCount == 0 && offered.isEmpty && offersAgainAt <= now.monotonic
        return isFree ? .halfOpen : .open
    }

    /// Removes and returns what the producer does not have yet, if Kafka takes nothing now. For
    /// records that the owner can do without.
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

    /// Nothing has been said for long of what the producer has.
    private func isUnanswered(now: Now) -> Bool {
        !offered.isEmpty && now.monotonic - movedAt >= Self.patience
    }

    /// Why nothing gets through; nil while it does, or while there is nothing to send.
    package func trouble(now: Now) -> Trouble? {
        if refusals > 0 { return Trouble(cause: cause) }
        return isUnanswered(now: now) ? Trouble(cause: nil) : nil
    }

    package struct Trouble: Equatable {
        /// In Kafka's words; nil where nothing is said.
        package var cause: String?
    }

    private static func bytes(_ record: OutgoingRecord) -> Int {
        record.key.count + (record.value?.count ?? 0)
    }
}

extension RecordOutlet {
    /// One for each topic, by `RecordTopic`. Together they leave the producer's queue some room, so that
    /// none of them can fill it.
    package static func all(properties: [String: String]) -> [RecordOutlet] {
        func limit(_ name: String, _ standard: Int) -> Int {
            max(1, (properties[name].flatMap { Int($0) } ?? standard) / 5)
        }
        let records = limit("queue.buffering.max.messages", 100_000)
        let bytes = limit("queue.buffering.max.kbytes", 65_536) << 10
        return RecordTopic.allCases.enumerated().map { position, topic in
            precondition(topic.rawValue == position, "an outlet stands in another topic's place")
            // Letters are few, and any number may have to wait.
            let share = topic == .deadLetters ? min(bytes, 4 << 20) : bytes
            return RecordOutlet(recordsMax: records, bytesMax: share)
        }
    }
}
