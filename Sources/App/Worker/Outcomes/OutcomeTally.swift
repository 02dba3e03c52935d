// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// Counts the records of the outcomes topic, and bounds those that the producer has.
struct OutcomeTally {
    /// Records that Kafka has acknowledged.
    private(set) var written = 0
    /// Records that were left out for want of room.
    private(set) var noRoom = 0
    /// Records that Kafka has refused, or not taken in time.
    private(set) var refused = 0
    /// Records that the producer has, and their bytes.
    private(set) var waiting = 0
    private(set) var waitingBytes = 0
    /// Why the last one was dropped, and when.
    private var lastDrop: (cause: Trouble, at: MonotonicTime)?
    /// When Kafka last acknowledged one.
    private var writtenAt = MonotonicTime(nanoseconds: .min)
    /// When the producer last reported on one, or was given the first.
    private var movedAt = MonotonicTime(nanoseconds: .min)

    static let waitingMax = 10_000
    static let waitingBytesMax = 8 << 20
    /// As of the other topics: an acknowledgement of a healthy Kafka takes far less.
    private static let patience = Duration.seconds(10)
    /// For so long a drop is told of, though others are written.
    private static let toldFor = Duration.seconds(60)

    /// Why outcomes are not written.
    enum Trouble: Sendable, Equatable {
        /// Pushes end faster.
        case noRoom
        /// The name of Kafka's error.
        case refused(cause: String)
        /// Kafka has acknowledged nothing for ten seconds.
        case unanswered
    }

    var dropped: Int { noRoom + refused }
    var hasRoom: Bool { waiting < Self.waitingMax && waitingBytes < Self.waitingBytesMax }

    /// The producer has a record.
    mutating func offered(bytes: Int, now: Now) {
        if waiting == 0 { movedAt = now.monotonic }
        waiting += 1
        waitingBytes += bytes
    }

    /// Kafka has taken a record that was offered, or the producer gives it up.
    mutating func answered(bytes: Int, cause: String?, now: Now) {
        waiting -= 1
        waitingBytes -= bytes
        precondition(
            waiting >= 0 && waitingBytes >= 0 && (waiting > 0 || waitingBytes == 0),
            "the producer reports each record that it was given once")
        movedAt = now.monotonic
        if let cause { return noteRefusal(cause: cause, now: now) }
        written += 1
        writtenAt = now.monotonic
    }

    /// A record will not be written.
    mutating func noteRefusal(cause: String, now: Now) {
        refused += 1
        lastDrop = (.refused(cause: cause), now.monotonic)
    }

    mutating func foundNoRoom(_ count: Int, now: Now) {
        guard count > 0 else { return }
        noRoom += count
        // What Kafka refuses is why there is no room.
        if case .refused = trouble(now: now) { return }
        lastDrop = (.noRoom, now.monotonic)
    }

    /// Why outcomes are not written; nil if they are, or if there are none.
    func trouble(now: Now) -> Trouble? {
        let isUnanswered = waiting > 0 && now.monotonic - movedAt >= Self.patience
        guard let lastDrop,
            lastDrop.at >= writtenAt || now.monotonic - lastDrop.at < Self.toldFor
        else { return isUnanswered ? .unanswered : nil }
        return isUnanswered && lastDrop.cause == .noRoom ? .unanswered : lastDrop.cause
    }
}

extension OutcomeTally.Trouble {
    var words: String {
        switch self {
        case .noRoom: "pushes end faster than Kafka takes their outcomes"
        case .refused(let cause): "Kafka says \(cause)"
        case .unanswered: "Kafka has not acknowledged any for 10 s"
        }
    }

    var remedy: String {
        switch self {
        case .noRoom:
            "lower delivery.outcomeSample, or look for what slows Kafka down"
        case .refused, .unanswered:
            "create the topic (lamplighter topics create), give this user WRITE on it, or restore "
                + "its leaders"
        }
    }
}
