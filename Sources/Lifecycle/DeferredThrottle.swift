// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Decides when to stop reading `deferred`: what does not fit into memory waits in Kafka. The
/// consumer is polled all the same, so no rebalance waits for this.
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

    package mutating func next(hasRoom: Bool) -> Action? {
        guard hasRoom == isPaused else { return nil }
        isPaused = !hasRoom
        return isPaused ? .pause : .resume
    }
}
