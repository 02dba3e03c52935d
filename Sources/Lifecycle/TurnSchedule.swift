// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// When the worker does what depends on the clock and not on facts.
package struct TurnSchedule: Sendable {
    private var commitAt: MonotonicTime
    private var watchAt: MonotonicTime

    /// Well under the library's commit interval of 200 ms.
    private static let commitInterval = Duration.milliseconds(100)
    private static let idleInterval = Duration.seconds(1)
    private static let watchInterval = Duration.seconds(5)

    package init(now: Now) {
        commitAt = now.monotonic + Self.commitInterval
        watchAt = now.monotonic + Self.watchInterval
    }

    package var next: MonotonicTime { min(commitAt, watchAt) }

    package func isCommitDue(_ now: Now) -> Bool { commitAt <= now.monotonic }

    /// A turn has committed the offsets that were due, if there were any. An idle worker commits less
    /// often, but rebalances need a poll every second.
    package mutating func committed(anything: Bool, _ now: Now) {
        commitAt = now.monotonic + (anything ? Self.commitInterval : Self.idleInterval)
    }

    /// Something was read: its offset must be committed soon.
    package mutating func wasBusy(_ now: Now) {
        commitAt = min(commitAt, now.monotonic + Self.commitInterval)
    }

    package mutating func isWatchDue(_ now: Now) -> Bool {
        guard watchAt <= now.monotonic else { return false }
        watchAt = now.monotonic + Self.watchInterval
        return true
    }
}
