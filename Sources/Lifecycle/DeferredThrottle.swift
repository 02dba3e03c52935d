// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Decides when to stop reading `deferred`: what does not fit into memory waits in Kafka. The
/// consumer is polled all the same, so no rebalance waits for this.
///
/// A pause discards what was fetched ahead. It therefore ends only when some of the room is free:
/// otherwise a large backlog would pause and resume the partitions with each push that is sent.
package struct DeferredThrottle: Sendable {
    package private(set) var isPaused = false

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
    package mutating func next(hasRoom: Bool, isRelaxed: Bool) -> Action? {
        if isPaused {
            guard hasRoom, isRelaxed else { return nil }
            isPaused = false
            return .resume
        }
        guard !hasRoom else { return nil }
        isPaused = true
        return .pause
    }
}
