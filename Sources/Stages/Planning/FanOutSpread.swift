// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// How fast a fan-out that is spread over time may go on: it comes to all of its list within a window,
/// evenly. Nothing rests meanwhile: a token has no push until its turn.
package struct FanOutSpread: Sendable, Equatable {
    private let seconds: Double
    /// The entries that may be visited now; below zero after a step that met more.
    private var credit = 0.0
    private var earnedAt: MonotonicTime

    /// What a stall leaves behind is made good for so long at most, or the herd comes together.
    private static let credited = 0.5
    /// A fan-out takes a step no more often than this.
    private static let tick = Duration.milliseconds(10)

    package init(window: Duration, now: MonotonicTime) {
        precondition(window > .zero, "a spread's window is above zero")
        seconds = window / .seconds(1)
        earnedAt = now
    }

    /// Earns what has passed since the last call.
    /// - Parameter count: the list's length.
    /// - Returns: how many entries may be visited now.
    mutating func allowance(of count: Int, now: MonotonicTime) -> Int {
        let rate = Double(count) / seconds
        credit = min(credit + (now - earnedAt) / .seconds(1) * rate, max(1, rate * Self.credited))
        earnedAt = now
        return max(0, Int(credit))
    }

    mutating func visited(_ entries: Int) { credit -= Double(entries) }

    /// When one more entry may be visited.
    func nextAt(of count: Int) -> MonotonicTime {
        let wait = max(0, 1 - credit) * seconds / Double(max(1, count))
        return earnedAt + max(Self.tick, .seconds(wait))
    }
}
