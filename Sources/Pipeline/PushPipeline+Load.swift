// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Audience
internal import Deferral
package import Delivery
package import Intake
internal import Ledger
internal import Planning
package import PushModel

/// What the owner asks of the pipeline between facts: how much room it has, and what it holds.
extension PushPipeline {
    package var routing: RoutingTable { state.routing }
    package var audience: Audience { _read { yield state.audience } }
    package var poolCount: Int { state.breakers.poolCount }

    /// Records to be produced, oldest first.
    var records: [OutgoingRecord] { state.outbox.records }

    /// Whether events may be split now. The owner sets it before events are read.
    package var shardBreaker: TopicBreakerState {
        get { state.outbox.shardBreaker }
        set { state.outbox.shardBreaker = newValue }
    }

    /// Set while partitions are given up, or the worker is about to stop: what waits in `deferred`
    /// is left there.
    package var drain: Drain? {
        get { state.drain }
        set { state.drain = newValue }
    }

    // MARK: Bounds

    /// How many registrations may be read in one go: one when slots are scarce, since each may ask
    /// for pushes that find no slot.
    package var roomForRegistrations: Int {
        guard late.isEmpty else { return 0 }
        return state.freeEventSlots * 2 > state.pushes.slots ? .max : 1
    }

    /// The events of one partition that have not ended.
    package func eventsUnderWay(of id: AssignmentID) -> Int { state.tracker.claimCount(of: id) }

    // MARK: What it holds

    /// How many records or failures of one topic are unacknowledged, and about how many bytes they
    /// take up.
    package func waiting(for topic: RecordTopic) -> (records: Int, bytes: Int) {
        state.outbox.waiting(for: topic)
    }

    /// Whether nothing waits, is in flight, or is unacknowledged.
    package var isIdle: Bool {
        state.pushes.freeSlots == state.pushes.slots && fanOut.underWay.isEmpty && late.isEmpty
            && state.outbox.isEmpty && deferral.ends.isEmpty
    }

    package typealias Load = PipelineLoad

    package var load: Load {
        Load(
            queued: state.pushes.queuedCount, inFlight: state.pushes.inFlightCount,
            resting: state.pushes.restingCount, fanOuts: movingFanOuts + late.count,
            claims: state.tracker.claimCount,
            deferred: deferral.table.count - deferral.table.sentCount,
            forgotten: deferral.forgotten.count, tokensWithinGap: deferral.table.sentCount,
            heldBack: deferral.table.heldBackCount, unacknowledged: state.outbox.unacknowledged,
            refused: state.outbox.tickets.refused,
            payloadBytes: state.pushes.bodies.bytes)
    }

    /// The same, with what has waited longest.
    package func load(now: Now) -> Load {
        var load = load
        load.oldestWaiting = state.pushes.oldestWaitingWrittenAt.map { max(.zero, now.wall - $0) }
        load.oldestUncommitted = state.tracker.oldestUncommittedReadAt.map {
            max(.zero, now.monotonic - $0)
        }
        guard let slot = state.pushes.oldestWaiting,
            let origin = state.pushes[slot].content.origin
        else { return load }
        let content = state.pushes[slot].content
        let app = state.routing[state.pushes.route(of: slot)].app
        let subject = state.subject(content.subject, tag: content.subjectTag, app: app)
        load.oldestWaitingTopic = state.origins.names[Int(origin.topic)]
        load.oldestWaitingApp = state.routing.name(of: app)
        load.oldestWaitingSubject =
            subject.isEmpty ? nil : String(decoding: subject, as: UTF8.self)
        return load
    }

    /// How far this worker's clock is ahead of the newest record that it has read, of those that other
    /// programs write; nil before the first one.
    package func clockLead(now: Now) -> Duration? { state.witness.lead(now: now) }

    /// A record that another program has written was seen, and is not read yet.
    package mutating func sawRecord(writtenAt: WallTime, now: Now) {
        state.witness.read(writtenAt, now: now)
    }

    /// Whether somebody has set the clock back, so that deferred pushes which are held back may be
    /// alive. True until `deferred` is read again.
    package func isClockSetBack(now: Now) -> Bool {
        deferral.table.count > 0 && state.witness.isSetBack(now: now)
    }

    /// While a drain lasts those that are spread over time stand still, and nothing may wait for
    /// them.
    private var movingFanOuts: Int {
        fanOut.underWay.count - (state.drain == nil ? 0 : fanOut.underWay.spreadCount)
    }

    /// The memory of each part in bytes. Some parts never shrink, so theirs is the peak so far.
    package var memory: [(part: String, bytes: Int)] {
        [
            ("index", state.audience.statistics.totalBytes), ("pushes", state.pushes.bytes),
            ("slab", state.slab.bytes), ("payloads", state.pushes.bodies.bytes),
            ("claims", state.tracker.bytes), ("recent_subjects", late.subjectBytes),
            ("recent_events", late.bytes), ("recent_registrations", late.registrationBytes),
            ("deferred", deferral.table.bytes),
            ("payload_order", state.payloadOrder.bytes + deferral.ends.bytes),
            ("outbox", state.outbox.bytes), ("recent_outcomes", handover.recent.bytes),
            ("correlations", state.correlations.bytes), ("traces", state.traces.bytes),
            ("gaps", state.tokenGaps.bytes), ("budgets", state.budgets.bytes),
        ]
    }

    // MARK: For people

    package var counters: Counters {
        var counters = state.counters
        counters.take(state.tally, fanOut.tally, state.setAside)
        counters.poolBreakersOpened = state.breakers.poolsOpened
        counters.routeBreakersOpened = state.breakers.routesOpened
        counters.payloadsForgotten = state.payloadOrder.forgotten + deferral.ends.dropped
        return counters
    }

    /// What today's pushes have come to, of each push type that has a budget.
    package func budgetUses(now: Now) -> [BudgetUse] {
        PushType.allTypes.compactMap { type in
            let limit = state.budgets.limit(of: type)
            guard limit > 0 else { return nil }
            let use = state.budgets.use(of: type, now: now.wall)
            return BudgetUse(
                type: type.name, perDay: limit, tokensOver: use.tokensOver,
                pushesOver: use.pushesOver)
        }
    }

    /// The subjects with the most pushes above their tokens' budgets today, the first of them first.
    /// What nobody shows any more is left out, and events of whole kinds, which have no subject.
    package func subjectsOverBudget(now: Now) -> [SubjectOverBudget] {
        state.budgets.topSubjects(BudgetUse.subjectsMax, now: now.wall).map {
            let subject = state.subject($0.subject, tag: $0.tag, app: $0.app)
            return SubjectOverBudget(
                app: state.routing.name(of: $0.app),
                subject: String(decoding: subject, as: UTF8.self), pushes: $0.count)
        }.filter { !$0.subject.isEmpty }
    }

    /// The pushes that have ended.
    package var pushTally: PushTally {
        mutating _read {
            state.tally.closeRun()
            yield state.tally
        }
    }

    /// What was remarkable about the records of each topic.
    package var recordNotes: [RecordNotes] { fanOut.decoder.notes }

    /// The events that were read.
    package var eventTally: EventTally { _read { yield fanOut.tally } }

    /// What was set aside of the compacted topics.
    package var setAside: SetAsideTally { state.setAside }

    /// How many dead letters were written, by reason.
    package var deadLetters: [LetterKind: Int] { state.outbox.written }

    /// Returns the events that have expired since the last call.
    package mutating func takeExpiredEvents() -> ExpiredEvents { fanOut.tally.takeExpired() }

    /// What has failed for good since the last call, one sample for each reason.
    package mutating func takeFailures() -> [FailureSample] { state.outbox.failures.take() }

    /// The apps that have used up their kinds, by name, and how many rows have been taken without
    /// their kind since the start.
    package var appsOutOfKinds: [(app: String, rows: Int)] {
        state.audience.appsOutOfKinds.map { (state.routing.name(of: $0.app), $0.refused) }
    }

    /// How many answers have refused the pool's credential since the start.
    package func credentialRefusals(of pool: PoolID) -> Int {
        state.breakers.credentialRefusals(of: pool)
    }

    /// How often circuit breakers have opened since the start.
    package var breakersOpened: Int { state.breakers.poolsOpened + state.breakers.routesOpened }

    /// The circuit breakers that let nothing through at the moment except their probes.
    package func trippedBreakers(now: Now) -> [TrippedBreaker] {
        state.breakers.tripped(state.routing, now: now.monotonic)
    }

    /// The phase of each circuit breaker of a pool in use, and of those of the routes that have ever
    /// opened.
    package var breakerPhases: [(of: BreakerOwner, phase: CircuitBreaker.Phase)] {
        state.breakers.phases
    }

    /// Whether the pool is to be reported.
    package func isInUse(_ pool: PoolID) -> Bool { state.breakers.isInUse(pool) }

    /// What became of events that were to be traced; nil if none are to be.
    package var traceCounts: TraceCounts? { state.traces.isOn ? state.traces.counts : nil }

    package var hasSpans: Bool { !state.traces.finished.isEmpty }

    /// Returns the spans that have ended since the last call.
    package mutating func takeSpans() -> [Span] { state.traces.takeFinished() }

    /// How many requests of the pool have failed since the last answer that was no fault.
    package func faultsInARow(of pool: PoolID) -> Int { state.breakers.faultsInARow(of: pool) }

    /// How long the pool has had pushes in flight of which APNs has answered none; nil if none is in
    /// flight, or the pool's breaker is not closed.
    package func silence(of pool: PoolID, now: Now) -> Duration? {
        state.breakers.silence(of: pool, now: now.monotonic)
    }

    // MARK: Proof

    /// Whether every push that came into memory has left it or is there, as `PushTally` has it.
    var pushesAddUp: Bool {
        let counters = state.counters
        let came =
            counters.pushesQueued + counters.pushesFollowedUp + counters.deferredSent
            + counters.pushesUnqueued
        let there = state.pushes.slots - state.pushes.freeSlots
        return came == state.tally.total + counters.deferred + there
    }

    /// Traps unless every part agrees with itself, and claims and their references agree: a claim
    /// without a reference would block its partition for ever.
    package func checkInvariants() {
        fanOut.checkInvariants()
        late.checkInvariants()
        deferral.checkInvariants()
        var claimed: Set<ClaimID> = []
        fanOut.underWay.forEachClaim { claimed.insert($0.id) }
        late.forEachClaim { claimed.insert($0.id) }
        state.outbox.forEachClaim { claimed.insert($0.id) }
        deferral.table.forEachClaim { claimed.insert($0.id) }
        state.checkInvariants(claimed: claimed)
        precondition(
            pushesAddUp, "every push asked for is accounted for once: \(counters), \(load)")
    }
}
