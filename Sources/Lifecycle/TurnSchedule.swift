// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// When the worker does what depends on the clock and not on facts.
package struct TurnSchedule: Sendable {
    private var storeAt: MonotonicTime
    private var watchAt: MonotonicTime

    /// Well under the library's commit interval of 200 ms.
    private static let storeInterval = Duration.milliseconds(100)
    private static let idleInterval = Duration.seconds(1)
    private static let watchInterval = Duration.seconds(5)

    package init(now: Now) {
        storeAt = now.monotonic + Self.storeInterval
        watchAt = now.monotonic + Self.watchInterval
    }

    package var next: MonotonicTime { min(storeAt, watchAt) }

    package func isStoreDue(_ now: Now) -> Bool { storeAt <= now.monotonic }

    /// A turn has stored the offsets that were due, if there were any. An idle worker stores less often, but rebalances need a poll every
    /// second.
    package mutating func stored(anything: Bool, _ now: Now) {
        storeAt = now.monotonic + (anything ? Self.storeInterval : Self.idleInterval)
    }

    /// Something was read: its offset must be stored soon.
    package mutating func wasBusy(_ now: Now) {
        storeAt = min(storeAt, now.monotonic + Self.storeInterval)
    }

    package mutating func isWatchDue(_ now: Now) -> Bool {
        guard watchAt <= now.monotonic else { return false }
        watchAt = now.monotonic + Self.watchInterval
        return true
    }
}
