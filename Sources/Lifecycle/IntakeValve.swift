// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Decides when to stop reading events, in two steps. The first is not to poll, which discards
/// nothing but leaves rebalances unanswered, so it may last a second. The second is to pause, which
/// discards what was fetched ahead but may last for ever. A pause ends only when half of the room
/// is free.
package struct IntakeValve: Sendable {
    package enum Action: Sendable, Equatable {
        case poll
        /// Do not poll.
        case hold
        /// Pause the partitions, then poll.
        case pause
        /// Resume the partitions, then poll.
        case resume
    }

    private enum State: Sendable {
        case open
        case holding(since: MonotonicTime)
        case paused
    }

    private var state = State.open
    private let holdMax = Duration.seconds(1)

    package init() {}

    package var isPaused: Bool { if case .paused = state { true } else { false } }

    /// The partitions were given back or are new: this valve has paused none of them.
    package mutating func reset() { state = .open }

    /// - Parameters:
    ///   - hasRoom: one more batch of events fits.
    ///   - isRelaxed: half of the room is free.
    package mutating func next(
        hasRoom: Bool, isRelaxed: Bool, now: MonotonicTime
    ) -> Action {
        switch state {
        case .open where hasRoom:
            return .poll
        case .open:
            state = .holding(since: now)
            return .hold
        case .holding where hasRoom:
            state = .open
            return .poll
        case .holding(let since):
            assert(since <= now, "the valve is asked at times that never go back")
            guard now - since >= holdMax else { return .hold }
            state = .paused
            return .pause
        case .paused:
            guard hasRoom, isRelaxed else { return .poll }
            state = .open
            return .resume
        }
    }
}
