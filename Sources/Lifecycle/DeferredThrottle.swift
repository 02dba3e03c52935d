// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Decides when to stop reading `deferred`: what does not fit into memory waits in Kafka. The
/// consumer is polled all the same, so no rebalance waits for this.
///
/// A pause discards what was fetched ahead. It therefore ends when a good part of the room is free,
/// or after a second: otherwise a large backlog would pause and resume the partitions with each push
/// that is sent. The second is for a table that is full of what cannot be sent for long.
package struct DeferredThrottle: Sendable {
    package private(set) var isPaused = false
    /// Of the last pause.
    private var since = MonotonicTime(nanoseconds: 0)

    private static let least = Duration.seconds(1)

    package enum Action: Sendable, Equatable {
        /// Pause the partitions. What was read of them must begin to be sent, or there would never
        /// be room for the rest: a push may be sent once more than owed.
        case pause
        case resume
    }

    package init() {}

    /// The partitions were given back: those that are assigned later are not paused.
    package mutating func reset() { isPaused = false }

    /// - Parameters:
    ///   - hasRoom: one more record fits.
    ///   - isRelaxed: so much is free that reading is worth beginning again.
    package mutating func next(
        hasRoom: Bool, isRelaxed: Bool, now: MonotonicTime
    ) -> Action? {
        if isPaused {
            guard hasRoom, isRelaxed || now - since >= Self.least else { return nil }
            isPaused = false
            return .resume
        }
        guard !hasRoom else { return nil }
        isPaused = true
        since = now
        return .pause
    }
}
