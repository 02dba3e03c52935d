// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Pipeline
internal import PushModel

/// One partition's part of a `RecordOutlet`.
///
/// After a refusal one record at a time is offered, with a back-off, until Kafka accepts one.
struct PartitionOutlet {
    private var waiting: [OutgoingRecord] = []
    private var first = 0
    /// The sizes of the records that are with the producer, by ticket.
    private var offered: [UInt64: Int] = [:]
    private var offeredBytes = 0
    private var recordsMax: Int
    private var bytesMax: Int
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

    init(recordsMax: Int, bytesMax: Int) {
        self.recordsMax = recordsMax
        self.bytesMax = bytesMax
    }

    /// The topic has more partitions than was known: each has a smaller share.
    mutating func adopt(boundsOf other: Self) {
        recordsMax = other.recordsMax
        bytesMax = other.bytesMax
    }

    mutating func append(_ record: OutgoingRecord) { waiting.append(record) }

    private var waitingCount: Int { waiting.count - first }

    /// The record to offer to the producer now; nil if none may be offered. It stays the same until
    /// `take` is called.
    func next(now: Now) -> OutgoingRecord? {
        guard first < waiting.count else { return nil }
        guard !offered.isEmpty else { return offersAgainAt <= now.monotonic ? waiting[first] : nil }
        let fits =
            refusals == 0 && offered.count < recordsMax
            && offeredBytes + Self.bytes(waiting[first]) <= bytesMax
        return fits ? waiting[first] : nil
    }

    /// Removes the next record from the queue: the producer has it, or will never accept it.
    /// - Parameter isAccepted: whether the producer has it and will report on it.
    mutating func take(isAccepted: Bool, now: Now) -> OutgoingRecord {
        precondition(first < waiting.count, "a record is taken only while one waits")
        let record = waiting[first]
        first += 1
        if first == waiting.count || first > 1024 && first * 2 > waiting.count {
            waiting.removeFirst(first)
            first = 0
        }
        guard isAccepted else { return record }
        if offered.isEmpty { movedAt = now.monotonic }
        let earlier = offered.updateValue(Self.bytes(record), forKey: record.ticket)
        precondition(earlier == nil, "the producer has a record at most once")
        offeredBytes += Self.bytes(record)
        return record
    }

    /// Notes that the producer has reported on a record that it was given from here.
    /// - Parameter cause: why Kafka did not accept it; nil if it did, or if only that record is at
    ///   fault.
    mutating func reported(_ ticket: UInt64, cause: String?, now: Now) {
        guard let bytes = offered.removeValue(forKey: ticket) else {
            preconditionFailure(
                "a report is about a record that this partition gave to the producer")
        }
        offeredBytes -= bytes
        precondition(
            offeredBytes >= 0 && (offeredBytes == 0 || !offered.isEmpty),
            "the bytes with the producer are never below 0, and 0 when it has no record")
        if let cause {
            refused(cause: cause, now: now)
        } else {
            movedAt = now.monotonic
            refusals = 0
            self.cause = nil
        }
    }

    /// Notes that Kafka or the producer has refused a record. Others that were offered with it
    /// count as the same refusal.
    mutating func refused(cause: String, now: Now) {
        self.cause = cause
        guard offersAgainAt <= now.monotonic else { return }
        // 1, 2, 4, 8, 16 and 30 s.
        let wait = min(.seconds(1 << min(refusals, 5)), Self.backoffMax)
        refusals += 1
        offersAgainAt = now.monotonic + wait
    }

    /// Whether a record appended now would be sent: at once (`closed`), as a trial (`halfOpen`), or
    /// not (`open`).
    func breaker(now: Now) -> TopicBreakerState {
        if isUnanswered(now: now) { return .open }
        guard refusals > 0 else { return .closed }
        let isFree = waitingCount == 0 && offered.isEmpty && offersAgainAt <= now.monotonic
        return isFree ? .halfOpen : .open
    }

    /// Removes and returns the records that the producer does not have yet, if Kafka accepts
    /// nothing now. This is for records that the owner can do without.
    mutating func withdraw(now: Now) -> [OutgoingRecord] {
        guard first < waiting.count else { return [] }
        let isBackingOff = refusals > 0 && offersAgainAt > now.monotonic
        return isBackingOff || isUnanswered(now: now) ? takeWaiting() : []
    }

    /// Removes and returns the records that the producer does not have yet.
    mutating func takeWaiting() -> [OutgoingRecord] {
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
    func trouble(now: Now) -> RecordOutlet.Trouble? {
        if refusals > 0 { return RecordOutlet.Trouble(cause: cause) }
        return isUnanswered(now: now) ? RecordOutlet.Trouble(cause: nil) : nil
    }

    private static func bytes(_ record: OutgoingRecord) -> Int {
        record.key.count + (record.value?.count ?? 0)
    }
}
