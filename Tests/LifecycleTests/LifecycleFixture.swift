// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

@testable internal import Lifecycle
@testable internal import Pipeline

func at(_ milliseconds: Int64) -> Now {
    Now(
        monotonic: MonotonicTime(nanoseconds: 1_000_000_000_000 + milliseconds * 1_000_000),
        wall: WallTime(milliseconds: 1_763_712_000_000 + milliseconds))
}

/// A worker's lifecycle with a virtual clock. The figures and states are those that the next turn
/// finds.
final class LifecycleFixture {
    var lifecycle: WorkerLifecycle
    private(set) var time: Int64 = 0
    var load = PipelineLoad()
    var counters = Counters()
    /// The drain states of partitions; others are `drained`.
    var states: [AssignmentID: DrainState] = [:]
    var hasDeliveryEnded = false
    /// The room for records; plenty by default.
    var room = IntakeRoom(events: 1000, isHalfFree: true)

    static let drainMax = Duration.milliseconds(2250)
    static let patience = Duration.seconds(20)

    // Two partitions of events, two of `deferred`.
    let first = AssignmentID(ordinal: 0, epoch: 1)
    let second = AssignmentID(ordinal: 1, epoch: 2)
    let rows = AssignmentID(ordinal: 2, epoch: 3)
    let moreRows = AssignmentID(ordinal: 3, epoch: 4)

    init(drainMax: Duration = drainMax) {
        lifecycle = WorkerLifecycle(drainMax: drainMax, now: at(0))
        _ = lifecycle.indexCompleted()
    }

    var now: Now { at(time) }

    func assign(
        _ events: [AssignmentID], deferred: [AssignmentID] = []
    ) -> [LifecycleAction] {
        lifecycle.assigned(events: events, deferred: deferred)
    }

    func lose(_ ids: [AssignmentID]) -> [LifecycleAction] { lifecycle.lost(ids) }

    func fence() -> Bool { lifecycle.fenced(now: now, reason: "fenced") }

    func revoke(_ ids: [AssignmentID]) { lifecycle.revoking(ids, now: now) }

    func stop(patience: Duration = patience) -> [LifecycleAction] {
        lifecycle.stopRequested(patience: patience, now: now)
    }

    func pass(_ milliseconds: Int64) { time += milliseconds }

    func poll() -> PollPlan { lifecycle.planPoll(room, now: now) }

    /// Ends a turn, and returns the actions.
    func advance() -> [LifecycleAction] {
        guard lifecycle.isDraining else { return lifecycle.advance(nil, now: now) }
        let facts = DrainFacts(
            load: load, counters: counters,
            states: Dictionary(
                uniqueKeysWithValues: lifecycle.draining.map { ($0, states[$0] ?? .drained) }),
            hasDeliveryEnded: hasDeliveryEnded)
        return lifecycle.advance(facts, now: now)
    }

    /// Leaves no room for a second, so that the events are paused.
    func fill() {
        room.events = 0
        room.isHalfFree = false
        _ = poll()
        pass(1000)
        _ = poll()
    }

    func empty() {
        room.events = 1000
        room.isHalfFree = true
    }
}
