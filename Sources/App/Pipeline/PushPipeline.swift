// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Audience
package import Delivery
internal import FlatMemory
package import Intake
internal import Ledger
internal import Planning
package import PushModel
internal import RecordFormats

/// The journey of a push, from record to storable offset: facts in, actions out. Owned by the one
/// planner thread; it performs nothing, reads no clock, and does the same again for the same facts,
/// so a simulation can drive it with virtual time.
///
/// Facts come in by the methods named for them (`assigned`, `eventRecord`, `outcome`, …). What is to
/// be done comes out of `takeReady` (pushes to hand to delivery), `records` (records to produce) and
/// `frontier` (offsets to store).
package struct PushPipeline: ~Copyable {
    package let routing: RoutingTable
    /// Some of it may change: see `adopt`.
    var settings: PipelineSettings
    let slab: PushSlab

    package internal(set) var audience: Audience
    package internal(set) var counters = Counters()
    var expiredEvents = ExpiredEvents()
    /// Records to be produced, oldest first. Emptied by the owner.
    package var records: [OutgoingRecord] = []

    var intake: EventDecoder
    var registrations: RegistrationDecoder
    var registration = Registration()
    var verdicts: TokenRecordDecoder
    var tokenKey = TokenKey()
    var ledger: HolderLedger
    var pushes: PushTable
    var fanOuts: FanOuts
    var recentSubjects: RecentSubjects
    /// Slots that events have taken since walks last went on.
    var slotsTakenAtOnce = 0
    /// Hashes of subjects that records about to be read will ask for.
    var foreseen: [UInt64] = []
    var recentEvents = RecentEvents()
    /// When the last event with a payload was read.
    var payloadsReadAt = WallTime(milliseconds: 0)
    var tickets = TicketTable()
    var letters: DeadLetterDrafts
    var merged = MergedLetters()
    /// Too many letters wait, and they go out too slowly for reading to wait for them.
    var lettersStalled = false
    /// Nil while there is room for letters.
    var lettersFull: LettersFull?
    var random: SplitMix64

    /// Counts events read and pushes handed over, so that "read before it was handed over" is a
    /// comparison of two numbers.
    var sequence: UInt64 = 0
    /// By track number; nil where the track is closed.
    var tracks: [TrackPlace?] = []
    /// Pushes with a payload, by token: the audience's cell per token is for those without one.
    var payloadPushes: PayloadPushes
    /// Entries to which pushes are owed, for want of a free slot.
    var lateEntries: [LateEntry] = []
    /// Tickets of shards that Kafka did not take, oldest first.
    var refusedShards: [UInt64] = []
    /// Whether events may be split now. The owner sets it before events are read.
    package var shardFlow = RecordFlow.open
    var originTopics: OriginTopics
    var deferred: DeferredTable
    var payloadOrder: PayloadOrder
    var payloadEnds: PayloadEnds
    /// Rows about to be ended; empty but for a moment.
    var supersededRows: [UInt32] = []
    /// Tables that have been read to their end.
    var replayed: Set<TrackID> = []
    /// The partitions of `deferred` that are ours, by their tracks.
    var deferredPartitions: [TrackID: Int32] = [:]
    /// Whether any pool has a token with a fault: asked for each push, where a look at the pool's
    /// dictionary would cost a retain and a release.
    var hasTokenFaults = false
    /// The lane whose deferred pushes are looked at first.
    var deferredTurn = 0
    var deferredSweepAt = MonotonicTime(nanoseconds: .min)
    var holdWatchAt = MonotonicTime(nanoseconds: .min)
    var spillAt = MonotonicTime(nanoseconds: .min)
    /// Set while partitions are given up, or the worker is about to stop: what waits in `deferred` is
    /// left there.
    package var drain: Drain?
    /// The longest delay of any binding.
    let delayMax: Duration
    /// Comparing durations costs more than all else that a plain event's delay does.
    let hasDelays: Bool
    var lanes: [LaneState]
    var pools: [PoolState]
    let constantBodies: [UnsafeBufferPointer<UInt8>]
    private let byAddress = PassedByAddress()

    /// What the pipeline keeps for each lane; copies of the routing that are cheap to read per push.
    struct LaneState {
        let environment: PushEnvironment
        let tokenClass: TokenClass
        let pool: PoolID
        let app: AppID
        var tokenGuard: TokenGuard
        var gate: SendingGate
        var strikes = StrikeBook()
        var inFlight = 0
        /// Of the gate.
        var shutBy = ShutGate.Cause.ill

        mutating func accepted(now: MonotonicTime) {
            inFlight -= 1
            tokenGuard.accepted(now: now)
            gate.recovered()
        }
    }

    struct PoolState {
        var gate: SendingGate
        var health = PoolHealth()
        var tokenHealth = TokenHealth()
        var accepted: UInt64 = 0
        var inFlight = 0
        /// Of the gate.
        var shutBy = ShutGate.Cause.ill
        var lastHandedOverAt = MonotonicTime(nanoseconds: .min)

        mutating func accepted(token: UInt32) {
            inFlight -= 1
            accepted &+= 1
            gate.recovered()
            _ = health.received(.healthy, of: token)
        }
    }

    /// Since when there has been no room for letters, or when that was last looked at.
    struct LettersFull {
        var since: MonotonicTime
        /// `TicketTable.letterBytesClosed` then.
        var closed: Int
    }

    struct TrackPlace {
        var topic: UInt16
        var partition: Int32
    }

    package init(
        routing: RoutingTable, bindings: [TopicBinding], settings: PipelineSettings, slab: PushSlab
    ) throws(TopicBindingError) {
        precondition(slab.slots >= settings.slots, "the slab has a place for every push")
        precondition(settings.immediateFanOutMax > 0, "an event has at least one token")
        self.routing = routing
        self.settings = settings
        self.slab = slab
        audience = Audience(
            routing: routing, hashSeed: settings.seed, allowKindWide: settings.events.allowKindWide)
        intake = try EventDecoder(
            bindings: bindings, routing: routing, settings: settings.events)
        registrations = RegistrationDecoder(routing: routing)
        verdicts = TokenRecordDecoder(routing: routing)
        ledger = HolderLedger(settle: settings.settle)
        pushes = PushTable(slots: settings.slots, routing: routing)
        fanOuts = FanOuts(cursorsMax: settings.fanOutsMax)
        recentSubjects = RecentSubjects(
            cells: settings.recentSubjectCells, settle: settings.settle)
        delayMax = bindings.map(\.delay).max() ?? .zero
        hasDelays = delayMax > .zero
        letters = DeadLetterDrafts(
            tokensMax: settings.deadLetterTokensMax, delay: settings.deadLetterDelay)
        random = SplitMix64(seed: settings.seed)
        originTopics = OriginTopics(settings.eventTopics)
        deferred = DeferredTable(lanes: routing.lanes.count, seed: settings.seed)
        payloadPushes = PayloadPushes(seed: settings.seed)
        payloadOrder = PayloadOrder(bytesMax: settings.payloadOrderBytesMax)
        payloadEnds = PayloadEnds(bytesMax: settings.payloadOrderBytesMax)
        lanes = routing.lanes.map { lane in
            LaneState(
                environment: lane.environment, tokenClass: lane.tokenClass, pool: lane.pool,
                app: lane.app, tokenGuard: TokenGuard(limits: settings.tokenGuard),
                gate: SendingGate(backoff: settings.breakerBackoff))
        }
        pools = routing.pools.map { _ in
            PoolState(gate: SendingGate(backoff: settings.breakerBackoff))
        }
        constantBodies = PushType.all.map { row in
            let body = Array((row.emptyBody ?? "").utf8)
            let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: body.count)
            _ = copy.initialize(from: body)
            return UnsafeBufferPointer(copy)
        }
    }

    deinit { for body in constantBodies { body.deallocate() } }

    // MARK: Partitions

    /// A partition is ours from this offset on.
    package mutating func assigned(
        topic: UInt16, partition: Int32, startOffset: Int64
    ) -> TrackID {
        let track = ledger.openTrack(startOffset: startOffset)
        while tracks.count <= Int(track.rawValue) { tracks.append(nil) }
        tracks[Int(track.rawValue)] = TrackPlace(topic: topic, partition: partition)
        return track
    }

    /// A partition is no longer ours. What it asked for is still sent; it holds nothing any more.
    package mutating func unassigned(_ track: TrackID) {
        ledger.closeTrack(track)
        tracks[Int(track.rawValue)] = nil
    }

    /// The offset to store for this partition: everything below it has ended.
    package mutating func frontier(_ track: TrackID, now: Now) -> Int64 {
        ledger.frontier(track, now: now.monotonic)
    }

    /// Whether everything read from this partition has ended.
    package mutating func isDrained(_ track: TrackID, now: Now) -> Bool {
        ledger.isDrained(track, now: now.monotonic)
    }

    /// Whether no token that registers now is owed anything by this partition's events.
    package mutating func isSettled(_ track: TrackID, now: Now) -> Bool {
        ledger.isSettled(track, now: now.monotonic)
    }

    // MARK: Time

    /// Does what is due: pushes whose rest is over, dead letters whose time has come, pools that have
    /// gone silent. Called once a turn.
    package mutating func advance(now: Now) {
        pushes.wake(now: now.monotonic)
        parkSilentPools(now: now)
        if hasTokenFaults {
            for pool in pools.indices { pools[pool].tokenHealth.sweep(now: now.monotonic) }
            lookForTokenFaults()
        }
        if lateEntries.isEmpty {
            recentEvents.forget(
                before: now.monotonic - settings.settle, bodies: &pushes.bodies)
        }
        payloadOrder.forget(now: now.monotonic)
        counters.payloadsForgotten = payloadOrder.forgotten + payloadEnds.dropped
        sendLateEntries(now: now)
        fanOutRefusedShards(now: now)
        watchLetters(now: now)
        flushDeadLetters(now: now, all: false)
        deferWhatWaits(now: now)
        sendDeferred(now: now)
    }

    /// When `advance` or `takeReady` has something to do by itself. A gate whose time has come is
    /// left out: it waits for delivery to have room, which is an event.
    package func nextDue(now: Now) -> MonotonicTime {
        if !refusedShards.isEmpty, !fanOuts.isFull { return now.monotonic }
        var due = min(pushes.nextWake, letters.nextDue, deferred.nextDue)
        for pool in pools where pool.gate.nextChange > now.monotonic {
            due = min(due, pool.gate.nextChange)
        }
        for lane in lanes where lane.gate.nextChange > now.monotonic {
            due = min(due, lane.gate.nextChange)
        }
        return due
    }

    // MARK: Bounds

    /// Whether another event may be read: every place it could need is there.
    package var hasRoomForEvents: Bool {
        freeEventSlots > settings.immediateFanOutMax && !fanOuts.isFull && lateEntries.isEmpty
            && hasRoomForLetters && pushes.bodies.bytes < settings.payloadBytesMax
            && recentEvents.bytes < settings.recentEventBytesMax
    }

    /// So many events may be read in one go: few enough to be fanned out at once if each has as many
    /// tokens as that allows, since a walk costs more; and with half of the free slots, so that walks
    /// can have as many as those events took.
    package var roomForEvents: Int {
        guard hasRoomForEvents else { return 0 }
        return min(
            max(1, freeEventSlots / (2 * settings.immediateFanOutMax)),
            settings.fanOutsMax - fanOuts.count, max(1, roomForLetters))
    }

    /// Slots that walks leave, so that events of few tokens go at once beside the largest audience:
    /// room for 32 of those events, or a sixteenth of all; for one at least.
    private var slotsKeptForEvents: Int {
        let most = settings.immediateFanOutMax
        return min(32 * most, max(most + 1, settings.slots / 16), settings.slots / 4)
    }

    /// Slots that walks may take now. Where events take what is kept for them walks take as many:
    /// neither waits for the other to end.
    var slotsForWalks: Int {
        let free = freeEventSlots
        return min(free, max(free - slotsKeptForEvents, slotsTakenAtOnce))
    }

    /// So many registrations may be read in one go: one when slots are scarce, since each may ask for
    /// pushes that find none.
    package var roomForRegistrations: Int {
        guard lateEntries.isEmpty else { return 0 }
        return freeEventSlots * 2 > pushes.slots ? .max : 1
    }

    /// Slots that events may take: those kept for deferred pushes are not among them.
    var freeEventSlots: Int {
        pushes.freeSlots - max(0, settings.deferredSlots - pushes.deferredShareCount)
    }

    /// Whether another record of `deferred` may be read.
    package var hasRoomForDeferredRecords: Bool {
        deferred.count < settings.deferredMax && deferred.bodies.bytes < settings.deferredBytesMax
    }

    /// Records that are to be acknowledged, and letters that are not written yet.
    var unacknowledged: Int { tickets.count + letters.targets + merged.count }

    /// What is to be acknowledged of one topic, and about its bytes.
    package func waiting(for topic: RecordTopic) -> (records: Int, bytes: Int) {
        let usage = tickets.usage(of: topic)
        guard topic == .deadLetters else { return (usage.count, usage.bytes) }
        return (usage.count + letters.targets + merged.failures, letterBytes)
    }

    /// Nothing waits, is in flight, or waits for an acknowledgement.
    package var isIdle: Bool {
        pushes.freeSlots == pushes.slots && fanOuts.isEmpty && tickets.isEmpty && letters.isEmpty
            && lateEntries.isEmpty && merged.isEmpty && payloadEnds.isEmpty
    }

    package var poolCount: Int { pools.count }

    package var load: Load {
        Load(
            queued: pushes.queuedCount, inFlight: pushes.inFlightCount,
            resting: pushes.restingCount, fanOuts: fanOuts.count + lateEntries.count,
            holders: ledger.holderCount, deferred: deferred.count,
            unacknowledged: unacknowledged, refused: tickets.refused,
            payloadBytes: pushes.bodies.bytes)
    }

    package enum Drain: Sendable, Equatable {
        /// What cannot be handed over by then is deferred at once.
        case until(MonotonicTime)
        /// Nothing is handed over any more: all that waits is deferred.
        case ending
    }

    /// What the pipeline is holding at this moment.
    package struct Load: Sendable, Equatable {
        package var queued: Int
        package var inFlight: Int
        package var resting: Int
        package var fanOuts: Int
        package var holders: Int
        /// Rows of the `deferred` partitions that are ours.
        package var deferred: Int
        package var unacknowledged: Int
        /// Of those, the records that Kafka has refused and that are produced again.
        package var refused: Int
        package var payloadBytes: Int
    }
}
