// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Deferral
internal import Delivery
internal import FlatMemory
internal import Intake
internal import Ledger
internal import Planning
internal import PushModel
internal import RecordFormats

/// The state that all parts of the pipeline share: the tokens (`audience`), the pushes (`pushes`),
/// the offsets (`tracker`), the breakers, the records to produce (`outbox`), the settings and the
/// counters. It keeps them consistent: each token's
/// row names its push, each push its token, and each push has claims on the offsets that wait for
/// it.
///
/// `PushPipeline` owns it and lends it to the part that handles a fact.
struct PipelineState: ~Copyable {
    let routing: RoutingTable
    var settings: PipelineSettings
    /// Indexed by `RouteID`; copies of the routing that are cheap to read per push.
    let routes: [RouteTraits]
    let slab: PushSlab
    var audience: Audience
    var tracker: OffsetTracker
    var pushes: PushTable
    /// Which routes and pools may be sent to.
    var breakers: CircuitBreakers
    /// The records that are to be produced, and what waits for each.
    var outbox: Outbox
    /// The order of payloads whose older ones may still come.
    var payloadOrder: PayloadOrder
    /// Set while partitions are given up or the worker is about to stop: what waits in `deferred`
    /// is left there.
    var drain: Drain?
    /// Pushes with a payload, by token: the audience's cell per token is for those without one.
    private(set) var payloadPushes: PayloadPushes
    var origins: OriginTopics
    var counters = Counters()
    /// The pushes that have ended.
    var tally: PushTally
    /// What was set aside of the compacted topics.
    var setAside = SetAsideTally()
    /// Counts events read and pushes handed over, so that "read before it was handed over" is a
    /// comparison of two numbers.
    var sequence: UInt64 = 0
    /// What identifies the latest events, for dead letters.
    var correlations = RecentCorrelations()
    /// The events that are traced.
    var traces: TraceBook
    /// The pushes that have ended, for the topic of outcomes.
    var ended: EndedPushes
    /// The operator's own events.
    var canary: Canary
    /// Which tokens another sender serves.
    var rollouts: Rollouts
    /// How far apart pushes to one token are.
    var tokenGaps: TokenGaps
    /// How many pushes tokens were sent today.
    var budgets: TokenBudgets
    /// The last payloads that were not sent because their tokens had ceased to show their subjects,
    /// for people.
    var unsubscribed = LatestRing<RecentOutcomes.Failure>(capacity: RecentOutcomes.unsubscribedMax)
    /// Whether this worker's clock may say that something has expired.
    var witness = ClockWitness()
    private let byAddress = PassedByAddress()

    struct RouteTraits: BitwiseCopyable {
        let environment: PushEnvironment
        let tokenClass: TokenClass
        let pool: PoolID
        let app: AppID
        /// See `TokenClass.changeType`.
        let changeType: PushType?
    }

    init(routing: RoutingTable, settings: PipelineSettings, slab: PushSlab) {
        precondition(slab.slots >= settings.sizes.slots, "the slab has a place for every push")
        self.routing = routing
        self.settings = settings
        self.slab = slab
        routes = routing.routes.map { route in
            RouteTraits(
                environment: route.environment, tokenClass: route.tokenClass, pool: route.pool,
                app: route.app, changeType: route.tokenClass.changeType)
        }
        audience = Audience(
            routing: routing, hashSeed: settings.seed,
            furtherLists: settings.live.events.furtherLists)
        tracker = OffsetTracker(registrationGrace: settings.sizes.registrationGrace)
        pushes = PushTable(slots: settings.sizes.slots, routing: routing)
        breakers = CircuitBreakers(
            routing: routing, backoff: settings.live.breakerBackoff,
            tokenBackoff: settings.live.retryBackoff, limits: settings.live.tokenGuard,
            seed: settings.seed)
        outbox = Outbox(settings: settings)
        payloadOrder = PayloadOrder(
            bytesMax: settings.sizes.payloadOrderBytesMax, seed: settings.seed)
        payloadPushes = PayloadPushes(seed: settings.seed)
        origins = OriginTopics(settings.eventTopics)
        traces = TraceBook(settings.tracing, seed: settings.seed)
        ended = EndedPushes(isOn: settings.notesEnds)
        canary = Canary(settings.canary, routing: routing)
        rollouts = Rollouts(apps: routing.apps.count)
        tally = PushTally(routing: routing)
        tokenGaps = TokenGaps(routing: routing, settings: settings)
        budgets = TokenBudgets(settings.live.budgets)
    }

    /// Counts the rows of a registration that could not be taken as they were.
    mutating func add(_ rows: SetAside) {
        setAside.add(.registrationRows, "unroutable", count: rows.unroutable)
        setAside.add(.registrationRows, "outOfBounds", count: rows.outOfBounds)
        counters.registrationRowsWithoutKind += rows.withoutKind
    }

    /// What events have asked for so far.
    var askedTally: TraceBook.Tally {
        TraceBook.Tally(
            queued: counters.pushesQueued, coalesced: counters.pushesCoalesced,
            suppressed: tally.total(.suppressed))
    }

    /// How often a push was made or joined.
    var pushesAsked: Int { counters.pushesQueued &+ counters.pushesCoalesced }

    /// A record was read that may ask for pushes.
    mutating func countRead() { sequence += 1 }

    func traits(of route: RouteID) -> RouteTraits { routes[Int(route.rawValue)] }

    /// How many slots events may take; those kept for deferred pushes are not among them.
    var freeEventSlots: Int {
        pushes.freeSlots - max(0, settings.sizes.deferredSlots - pushes.deferredShareCount)
    }

    // MARK: Which push a token has

    func existingPush(for token: TokenID, key: UInt64) -> UInt32? {
        if key != 0 { return existingPayloadPush(for: token, key: key) }
        let cell = audience.pending(token)
        return cell == 0 ? nil : cell - 1
    }

    /// Makes the push of a token that has none of its key. It holds nothing until it is joined or
    /// claims are added. There must be a free slot.
    mutating func add(_ push: PushRequest, now: Now) -> UInt32 {
        let slot = pushes.queue(push, now: now.monotonic)
        if push.coalescingKey != 0 {
            rememberPayloadPush(slot, for: push.token, key: push.coalescingKey)
        } else {
            audience.setPending(push.token, slot + 1)
        }
        return slot
    }

    /// The push in this slot has ended; its token has none of that key any more.
    private mutating func forget(_ slot: UInt32, of token: TokenID, key: UInt64) {
        if key != 0 { return forgetPayloadPush(slot) }
        audience.setPending(token, 0)
    }

    // Not inlined, since every push would otherwise pay for the stack that these need.

    @inline(never)
    private func existingPayloadPush(for token: TokenID, key: UInt64) -> UInt32? {
        payloadPushes.slot(token: token, key: key)
    }

    @inline(never)
    private mutating func rememberPayloadPush(_ slot: UInt32, for token: TokenID, key: UInt64) {
        payloadPushes.insert(slot, token: token, key: key)
    }

    @inline(never)
    private mutating func forgetPayloadPush(_ slot: UInt32) {
        payloadPushes.remove(slot)
    }

    // MARK: Pushes end

    /// Counts the end of the push in this slot, before it ends.
    mutating func count(
        _ outcome: PushTally.Outcome, _ slot: UInt32, _ reason: PushTally.Reason = .none
    ) {
        tally.ended(outcome, pushes.route(of: slot), pushes.pushType(of: slot), reason)
    }

    /// Counts the end of a push that is in no slot: it was never queued, is a follow-up that has
    /// not begun, or waits in `deferred`.
    // Not inlined, since every token that an event visits would otherwise pay for it.
    @inline(never)
    mutating func endUnqueued(
        _ outcome: PushTally.Outcome, _ route: RouteID, _ type: PushType,
        _ reason: PushTally.Reason = .none
    ) {
        counters.pushesUnqueued += 1
        tally.ended(outcome, route, type, reason)
    }

    /// The push has ended, and gives its claims back. Its follow-up is sent now.
    mutating func end(_ slot: UInt32, now: Now) {
        let token = pushes.token(of: slot)
        let key = pushes.coalescingKey(of: slot)
        let isOrphaned = pushes.isOrphaned(slot)
        let goesOn = pushes.ended(slot, now: now.monotonic, &tracker)
        if goesOn {
            counters.pushesFollowedUp += 1
        } else if !isOrphaned {
            forget(slot, of: token, key: key)
        }
    }

    /// The waiting push has ended, and gives its claims back. Its follow-up is sent now.
    mutating func endWaiting(_ slot: UInt32, now: Now) {
        let token = pushes.token(of: slot)
        let key = pushes.coalescingKey(of: slot)
        if pushes.endedWaiting(slot, now: now.monotonic, &tracker) {
            counters.pushesFollowedUp += 1
        } else {
            forget(slot, of: token, key: key)
        }
    }

    /// Ends the push.
    /// - Returns: its claims, which pass to the caller.
    mutating func endTakingClaims(_ slot: UInt32, withFollowUp: Bool, now: Now) -> [OffsetClaim] {
        let token = pushes.token(of: slot)
        let key = pushes.coalescingKey(of: slot)
        let isOrphaned = pushes.isOrphaned(slot)
        var goesOn = false
        var claims: [OffsetClaim] = []
        if withFollowUp {
            pushes.endedForGood(slot) { claims.append($0) }
        } else {
            goesOn = pushes.ended(slot, now: now.monotonic) { claims.append($0) }
        }
        if goesOn {
            counters.pushesFollowedUp += 1
        } else if !isOrphaned {
            forget(slot, of: token, key: key)
        }
        return claims
    }

    /// No registration has this token any more: what waits for it ends. The follow-up of a push in
    /// flight ends too; the push itself ends with its outcome.
    mutating func tokenRemoved(_ token: TokenID) {
        var slots = payloadPushes.removeAll(of: token)
        let cell = audience.pending(token)
        if cell != 0 { slots.append(cell - 1) }
        for slot in slots {
            let (route, type) = (pushes.route(of: slot), pushes.pushType(of: slot))
            if pushes[slot].hasFollowUp {
                endUnqueued(.unregistered, route, pushes.followUp(of: slot).type)
            }
            if ended.isOn, pushes[slot].state != .inFlight { noteUnsent(.unregistered, slot) }
            if pushes.orphan(slot, &tracker) { tally.ended(.unregistered, route, type) }
        }
    }

    /// The push in flight is to be sent again, not before `time`.
    mutating func retry(_ slot: UInt32, at time: MonotonicTime, costsAttempt: Bool, now: Now) {
        pushes.retry(slot, at: time, now: now.monotonic, costsAttempt: costsAttempt, &tracker)
    }

    mutating func release(_ claims: [OffsetClaim]) {
        for claim in claims { tracker.release(claim) }
    }
}

extension PipelineState {
    /// - Parameter claimed: the claims that other parts refer to.
    func checkInvariants(claimed: Set<ClaimID>) {
        tracker.checkInvariants()
        pushes.checkInvariants()
        audience.checkInvariants()
        payloadPushes.checkInvariants()
        payloadOrder.checkInvariants()
        breakers.checkInvariants()
        outbox.checkInvariants()
        traces.checkInvariants()
        pushes.forEachPush { slot in
            let push = pushes[slot]
            precondition(
                push.isOrphaned || existingPush(for: push.token, key: push.coalescingKey) == slot,
                "a push is found by its token and key, unless it is orphaned")
        }
        var claimed = claimed
        pushes.forEachClaim { claimed.insert($0.id) }
        precondition(
            claimed.count == tracker.claimCount,
            "the tracker's claims are exactly those that something refers to")
    }
}
