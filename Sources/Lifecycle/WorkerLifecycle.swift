// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Pipeline
package import PushModel

/// The worker's own life: which partitions are ours, when events are read, how partitions are given
/// back, when the consumer is opened again, how the worker stops, and why it ends.
///
/// Facts come in by the methods named for them (`assigned`, `revoking`, `stopRequested`, …), and
/// each returns what is to be done at once. `planPoll` and `advance` are called once a turn. The
/// worker performs the actions in order and decides nothing; no record and no push passes through
/// here. Like the pipeline it reads no clock, does no I/O, and always returns the same for the same
/// facts.
package struct WorkerLifecycle: Sendable {
    package private(set) var open = OpenAssignments()
    /// Why the worker ends, by the first reason that was given; nil while it runs.
    package private(set) var end: WorkerEnd?
    package var schedule: TurnSchedule
    private(set) var valve = IntakeValve()
    private(set) var revoke: RevokeDrain?
    private(set) var stop: StopDrain?
    private(set) var restarts = ConsumerRestarts()
    /// Whether the index is complete. Until then no event is read, since it would miss part of its
    /// audience.
    private var isIndexComplete = false
    /// Of the topic of restrictions, at the start.
    package var restrictionsWait = RestrictionsWait()
    package let startedAt: MonotonicTime
    private let drainMax: Duration

    /// - Parameter drainMax: how long partitions that are given back may keep their group waiting.
    package init(drainMax: Duration, now: Now) {
        precondition(
            drainMax > .zero, "a drain has more than no time, so that what it gives back can end")
        self.drainMax = drainMax
        startedAt = now.monotonic
        schedule = TurnSchedule(now: now)
    }

    // MARK: State

    package var isStopping: Bool { stop != nil }

    /// How the pipeline must treat pushes that wait; nil while nothing is given up.
    package var drain: Drain? {
        if !mayHandOver { return .ending }
        let ends = [revoke?.deadline, stop?.restsUntil].compactMap(\.self)
        return ends.min().map { .until($0) }
    }

    /// Whether something is being given up. `advance` then needs facts, and dead letters do not
    /// wait for further tokens, since their offsets are to be committed soon.
    package var isDraining: Bool { revoke != nil || stop != nil }

    /// Whether delivery takes pushes.
    package var mayHandOver: Bool { stop.map { $0.delivery == .working } ?? true }

    /// Whether a partition that delivers nothing is a fault.
    package var isSteady: Bool { isIndexComplete && !isDraining }

    /// The partitions whose states `advance` asks for; none while nothing is revoked.
    package var draining: [AssignmentID] { revoke?.partitions ?? [] }

    /// When the next turn is due, whatever else happens.
    package func nextDue(now: Now) -> MonotonicTime {
        var due = schedule.next
        // A drain is judged by figures that no wake-up reports.
        if isDraining { due = min(due, now.monotonic + .milliseconds(10)) }
        if let revoke { due = min(due, revoke.deadline) }
        return due
    }

    // MARK: Clients

    /// Registrations and suppressions were read to their ends. May be called more than once.
    package mutating func indexCompleted() -> [LifecycleAction] {
        guard !isIndexComplete, stop == nil else { return [] }
        isIndexComplete = true
        return [.openConsumer]
    }

    /// A client does nothing any more, or could not be opened.
    package mutating func clientFailed(_ reason: String) {
        end = end ?? .clientFailed(reason)
    }

    /// Some partition gets no records any more, or could not be started.
    package mutating func restartNeeded() { restarts.ask() }

    /// The group has given this worker's static name to another member.
    ///
    /// - Parameter reason: why the worker ends, where that has happened too often.
    /// - Returns: whether the consumer is opened again.
    package mutating func fenced(now: Now, reason: @autoclosure () -> String) -> Bool {
        if restarts.fenced(now: now) { return true }
        end = end ?? .nameTaken(reason())
        return false
    }

    // MARK: Partitions

    /// These partitions are ours.
    package mutating func assigned(
        events: [AssignmentID], deferred: [AssignmentID]
    ) -> [LifecycleAction] {
        // A pause ends with its assignment, but the valve remembers it.
        if open.events.isEmpty { valve.reset() }
        open.open(events: events, deferred: deferred)
        if stop != nil { return [.pause(.all)] }
        // Partitions that are assigned later than the paused ones are paused too.
        return valve.isPaused ? [.pause(.events)] : []
    }

    /// The group wants these partitions back and waits; what can end soon may still end.
    package mutating func revoking(_ ids: [AssignmentID], now: Now) {
        assert(revoke == nil, "the group waits for one answer at a time")
        assert(ids.allSatisfy(open.contains), "the group wants back only partitions that are open")
        revoke = RevokeDrain(ids, deadline: now.monotonic + drainMax)
    }

    /// These partitions belong to another member, or their consumer is closed.
    package mutating func lost(_ ids: [AssignmentID]) -> [LifecycleAction] {
        if revoke?.lost(ids) == true { revoke = nil }
        return unassign(ids)
    }

    /// A partition was read to its end for the first time in this assignment.
    package func endReached(_ id: AssignmentID) -> [LifecycleAction] {
        open.deferred.contains(id) ? [.markReplayed(id)] : []
    }

    private mutating func unassign(_ ids: [AssignmentID]) -> [LifecycleAction] {
        let closed = open.close(ids)
        return closed.isEmpty ? [] : [.unassign(closed)]
    }

    // MARK: Stop

    /// The worker must stop. May be called more than once.
    ///
    /// - Parameter patience: how long the stop may wait for what can end.
    package mutating func stopRequested(patience: Duration, now: Now) -> [LifecycleAction] {
        precondition(patience >= .zero, "the patience of a stop is at least zero")
        guard stop == nil else { return [] }
        stop = StopDrain(
            restsUntil: now.monotonic + min(patience, drainMax),
            deadline: now.monotonic + patience)
        return [.announceStop, .pause(.all)]
    }

    // MARK: A turn

    /// Whether and how the consumer is polled in this turn, once the actions are performed.
    package mutating func planPoll(_ room: IntakeRoom, now: Now) -> PollPlan {
        // Everything is paused: the poll brings no records, but rebalances.
        if stop != nil { return PollPlan(limit: TurnBudget.events) }
        var actions: [LifecycleAction] = []
        switch valve.next(
            hasRoom: room.events > 0, isRelaxed: room.isHalfFree, now: now.monotonic)
        {
        case .hold: return PollPlan(limit: nil)
        case .pause: actions.append(.pause(.events))
        case .resume: actions.append(.resume(.events))
        case .poll: break
        }
        // While the events are paused the poll brings none, and must go on all the same.
        let limit = valve.isPaused ? TurnBudget.events : min(TurnBudget.events, room.events)
        precondition(
            limit > 0, "a poll's limit is above 0: a poll for no record answers no rebalance")
        return PollPlan(actions: actions, limit: limit)
    }

    /// Whether no events are to be read: there is no room, or the worker stops.
    package var isIntakePaused: Bool { stop != nil || valve.isPaused }

    /// What a turn ends with: a restart that is due, or a drain that is over.
    ///
    /// - Parameter facts: nil unless `isDraining`.
    package mutating func advance(_ facts: DrainFacts?, now: Now) -> [LifecycleAction] {
        guard end == nil else { return [] }
        assert(isDraining || facts == nil, "there are facts of a drain only while one is under way")
        guard isDraining else { return restartIfDue(now: now) }
        guard let facts else { preconditionFailure("a drain that is under way always has facts") }
        var actions: [LifecycleAction] = []
        if revoke?.isOver(facts, now: now) == true, let drained = revoke {
            revoke = nil
            let events = drained.partitions.filter(open.events.contains)
            actions.append(.completeRevoke(committing: events))
            actions += unassign(drained.partitions)
        }
        if let (action, isComplete) = stop?.advance(facts, now: now) {
            if let action { actions.append(action) }
            if isComplete { end = .stopped }
        }
        return actions
    }

    private mutating func restartIfDue(now: Now) -> [LifecycleAction] {
        guard isIndexComplete, restarts.isDue(now: now) else { return [] }
        restarts.restarted(now: now)
        return [.restartConsumer(committing: open.events)]
    }
}

/// How much the pipeline has room for.
package struct IntakeRoom: Sendable {
    /// How many events fit now.
    package var events: Int
    /// Whether half of the room is free.
    package var isHalfFree: Bool

    package init(events: Int, isHalfFree: Bool) {
        precondition(events >= 0, "the room for events is at least 0")
        self.events = events
        self.isHalfFree = isHalfFree
    }
}

/// How the consumer is polled in one turn.
package struct PollPlan: Sendable, Equatable {
    package var actions: [LifecycleAction] = []
    /// The most records to poll; nil means not to poll.
    package var limit: Int?
}
