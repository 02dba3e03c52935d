// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Notices that Kafka acknowledges nothing of what was produced.
struct AcknowledgementWatch {
    /// When Kafka last acknowledged a record, or none waited for that.
    private var heardAt: ContinuousClock.Instant

    /// A leader election takes less.
    static let silenceMax = Duration.seconds(2)

    init(now: ContinuousClock.Instant) { heardAt = now }

    /// Notes whether records were acknowledged since the last call, and how many still wait.
    mutating func looked(acknowledged: Int, waiting: Int, now: ContinuousClock.Instant) {
        if acknowledged > 0 || waiting == 0 { heardAt = now }
    }

    /// What to say of the silence; nil while there is none.
    ///
    /// - Parameter cause: which broker takes no connection, and why; nil if that is not known. It is
    ///   looked up only where there is trouble.
    func trouble(
        waiting: Int, cause: @autoclosure () -> String?, now: ContinuousClock.Instant
    ) -> String? {
        let silence = now - heardAt
        guard silence >= Self.silenceMax else { return nil }
        return "Kafka has acknowledged none of \(waiting) records for "
            + "\(silence.components.seconds) s" + (cause().map { ": \($0)" } ?? "")
    }
}
