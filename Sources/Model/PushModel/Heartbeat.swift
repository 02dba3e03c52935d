// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Synchronization

/// Shows other threads that a thread still turns: it beats once a turn, which is one atomic store. A
/// thread that beats must not sleep for longer than `sleepMax`.
package final class Heartbeat: Sendable {
    package static let sleepMax = Duration.seconds(1)

    /// The time of the last beat in nanoseconds; 0 before the first one.
    private let lastBeat = Atomic<Int64>(0)

    package init() {}

    package func beat(_ now: MonotonicTime) {
        lastBeat.store(now.nanoseconds, ordering: .relaxed)
    }

    /// The time since the last beat; nil before the first one.
    package func age(now: MonotonicTime) -> Duration? {
        let last = lastBeat.load(ordering: .relaxed)
        return last == 0 ? nil : max(.zero, now - MonotonicTime(nanoseconds: last))
    }
}
