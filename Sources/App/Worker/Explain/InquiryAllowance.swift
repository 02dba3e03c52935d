// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// How much of the planner's time explanations may take. A question that goes through millions of
/// registrations takes seconds, and may take them at once; a flood of questions gets a small share
/// of the time, since the planner would otherwise never rest.
struct InquiryAllowance {
    /// The time that is left. What was taken last may have overdrawn it.
    private var left = Self.most
    private var grownAt: MonotonicTime?

    static let most = Duration.seconds(2)
    /// A second of work is earned in so many seconds.
    static let secondsPerSecond: Int64 = 40

    /// Whether a part of an explanation may be made now.
    mutating func mayWork(now: MonotonicTime) -> Bool {
        let idle = grownAt.map { now - $0 } ?? .zero
        grownAt = now
        left = min(Self.most, left + .nanoseconds(idle.nanoseconds / Self.secondsPerSecond))
        return left > .zero
    }

    mutating func took(_ work: Duration) {
        assert(work >= .zero, "the time that work has taken is at least zero")
        left -= work
    }

    /// When work may go on, if it may not now.
    func resumes(now: MonotonicTime) -> MonotonicTime {
        left > .zero
            ? now : now + .nanoseconds((-left.nanoseconds + 1) * Self.secondsPerSecond)
    }
}
