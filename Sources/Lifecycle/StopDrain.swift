// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Pipeline
internal import PushModel

/// An orderly stop: no more events are read; what can end may end, what waits for longer is
/// deferred, and the rest is read again by the next owner, since its offset is not committed.
struct StopDrain: Sendable {
    /// A push that rests for longer than this is deferred.
    let restsUntil: MonotonicTime
    /// From here on the stop waits only for the outcomes that delivery still has to return.
    let deadline: MonotonicTime
    private(set) var delivery = Delivery.working
    private var watch = DrainWatch()

    /// What delivery was last asked to do.
    enum Delivery: Sendable {
        /// Pushes are handed over. Can transition to: `draining`, `stopping`.
        case working
        /// Delivery was asked to leave while nothing was in flight. Can transition to: `stopping`.
        case draining
        /// Delivery was asked to give back, unanswered, what was in flight.
        case stopping
    }

    init(restsUntil: MonotonicTime, deadline: MonotonicTime) {
        precondition(restsUntil <= deadline, "pushes rest at most until the stop's deadline")
        self.restsUntil = restsUntil
        self.deadline = deadline
    }

    /// - Returns: what delivery is to be asked, if anything, and whether the stop is complete.
    mutating func advance(
        _ facts: DrainFacts, now: Now
    ) -> (action: LifecycleAction?, isComplete: Bool) {
        let isOver = deadline <= now.monotonic
        let isUseless = watch.isOver(facts.load, facts.counters, now: now)
        let action = askDelivery(
            isOver: isOver, isUseless: isUseless, inFlight: facts.load.inFlight)
        let isComplete =
            delivery != .working && facts.hasDeliveryEnded && (isOver || isUseless)
        return (action, isComplete)
    }

    private mutating func askDelivery(
        isOver: Bool, isUseless: Bool, inFlight: Int
    ) -> LifecycleAction? {
        switch delivery {
        case .working where isOver, .draining where isOver,
            .working where isUseless && inFlight > 0:
            delivery = .stopping
            return .stopDelivery
        case .working where isUseless:
            delivery = .draining
            return .drainDelivery
        case .working, .draining, .stopping:
            return nil
        }
    }
}
