// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Delivery
internal import Intake
internal import Ledger
internal import Lifecycle
internal import Planning
internal import PushModel
internal import RecordFormats

@testable internal import Pipeline

/// One process of one worker: a pipeline, what is on its way from and to it, and the model that it
/// is compared with. Nothing of it survives a crash.
final class SimulationWorker {
    typealias Flight = SimulationModel.Flight

    /// Counts processes, from 1.
    var life = 0
    var pipeline: PushPipeline
    var lifecycle: WorkerLifecycle
    var consumer = SimulatedConsumer()
    /// Whether delivery was asked to stop, whatever it still has.
    var isDeliveryLeaving = false
    /// When it must have stopped, and how often it was found alive since.
    var stopsBy: MonotonicTime?
    var turnsPastStop = 0
    var model: SimulationModel
    let slab: PushSlab
    let settings: PipelineSettings
    var flights: [Flight] = []
    /// Records on their way to Kafka, in the order in which it will have them.
    var produced: [(record: OutgoingRecord, dueAt: MonotonicTime)] = []
    /// By partition; nil where it is another worker's.
    var assignments: [AssignmentID?] = []
    /// The next offset to read, by partition.
    var positions: [Int64] = []
    /// The offset stored last, by partition.
    var committableOffsets: [Int64] = []
    /// By partition: what the owner before has left.
    var inherited: [SimulatedNote?] = []
    var registrationsRead = 0
    /// The records of registrations and suppressions, in the order in which it has read them.
    var heard: [SimulatedTableRecord] = []
    var suppressionsRead = 0
    var restrictionsRead = 0
    var restrictions = SimulatedRestrictions()
    var holds = TopicHolds(topics: SimulationWorker.topics.count)
    /// When each topic last began to wait for its turn.
    var topicWaitsSince = topics.map { _ in MonotonicTime(nanoseconds: 0) }
    /// When an operator's drop last ended a row of `deferred`, or the push made of it, by key.
    var rowsDroppedAt: [[UInt8]: MonotonicTime] = [:]
    /// By partition of `deferred`; nil where it is another worker's.
    var deferredAssignments: [AssignmentID?] = [nil, nil]
    var deferredPositions: [Int64] = [0, 0]
    /// Where the log ended when the partition was assigned; nil when it was read so far.
    var deferredEnds: [Int64?] = [nil, nil]
    /// What was read of each partition of `deferred` since it was assigned.
    var readings = [SimulatedReading(), SimulatedReading()]
    /// The reading of `deferred` that is under way beside the group, and how far it has come.
    var rereading = (number: 0, position: Int64(0))
    var payloadOrder = SimulatedPayloadOrder()
    /// The key of each open deferral, by ticket.
    var deferrals: [UInt64: [UInt8]] = [:]
    /// Rejected pushes by the key that they may end in `deferred`, once their letter is written and
    /// acknowledged.
    var rejections: [(flight: Flight, isMerged: Bool, tickets: Set<UInt64>)] = []
    /// Events whose payload may be on its way, by body.
    var bodies: [String: (event: SimulatedEvent, sequence: Int)] = [:]
    /// The clock when the last event with a payload was read; it does not go back.
    var payloadsReadAt = WallTime(milliseconds: 0)
    var sequence = 0
    /// For how many turns each waiting push has held an offset for too long.
    var rounds: [UInt32: Int] = [:]
    /// Rejected pushes that no letter has told of, with what they were to say.
    var untold: [(token: SimulatedToken, body: String?)] = []
    var repeats = SimulatedRepeats()
    /// Tokens of a letter that does not say which of several payloads it is about.
    var toldWithout: Set<SimulatedToken> = []

    /// What rows of `deferred` answer for since the last look, and how often they did.
    var joined: [Joined] = []
    var joinedCount = 0
    /// The assignment of `deferred` under which each of its records was written, by ticket.
    var epochs: [UInt64: UInt32] = [:]
    /// How many drops of operators were read in `deferred`.
    var dropsRead = 0

    /// When APNs's acceptance of the last push without a payload was read, by token.
    var acceptedAt: [SimulatedToken: MonotonicTime] = [:]

    /// What each open record of a shard says, by ticket.
    var shards: [UInt64: SimulatedShard] = [:]

    static let app = "com.example.Home"
    static let topics = ["events", "slow"]
    static let bindings = [
        TopicBinding.standard, TopicBinding(decode: .json, delay: .milliseconds(700)),
    ]

    static let routing: RoutingTable = {
        var routing = RoutingTable()
        routing.add(credential: "team", apps: [app], environments: [.production, .development])
        return routing
    }()

    init(
        partitions: Int, configured: PipelineSettings, dice: inout SplitMix64, now: Now
    ) {
        var settings = configured
        settings.slots = 8 << Int(dice.next(below: 5))
        settings.fanOutsMax = 8
        settings.immediateFanOutMax = 4
        settings.splitAbove = [5, 9, 1000][Int(dice.next(below: 3))]
        settings.shards = ShardTopic(binding: 0, partitions: 3)
        settings.recentSubjectCells = 64
        settings.unacknowledgedMax = 12 + Int(dice.next(below: 40))
        settings.attemptsMax = 4
        settings.retryBackoff = Backoff(least: .seconds(1), most: .seconds(8))
        settings.resendBackoff = Backoff(least: .milliseconds(50), most: .seconds(2))
        settings.coolDownBackoff = Backoff(least: .seconds(2), most: .seconds(8))
        settings.breakerBackoff = Backoff(least: .milliseconds(300), most: .seconds(3))
        settings.tokenGuard.window = 8
        settings.tokenGuard.badShareMax = 0.4
        settings.tokenGuard.suppressionsPerMinuteMax = 6
        settings.deadLetterTokensMax = 3
        settings.deadLetterBytesMax = 4096 << Int(dice.next(below: 4))
        settings.payloadBytesMax = 2048
        settings.recentEventBytesMax = 8192
        if dice.next(below: 3) == 0 { settings.deferredMax = 4 + Int(dice.next(below: 6)) }
        settings.holdMax = .seconds(1 + Int64(dice.next(below: 5)))
        settings.events.allowKindWide = true
        settings.events.allowInstallations = true
        settings.eventTopics = Self.topics
        settings.seed = dice.next()
        settings.recentRegistrationsMax = 4 << Int(settings.seed % 5)
        if settings.seed % 3 == 0 {
            settings.spread = .milliseconds(Int64(200 + settings.seed % 1500))
            settings.spreadAbove = 4
        }
        // Being traced changes nothing.
        settings.tracing = TraceSettings(ratio: 0.5) { _ in "" }
        settings.tracing?.eventsMax = 8
        settings.tracing?.spansMax = 64
        settings.tracing?.ageMax = .seconds(3)
        self.settings = settings
        slab = PushSlab(slots: settings.slots)
        pipeline = try! PushPipeline(
            routing: Self.routing, bindings: Self.bindings, settings: settings, slab: slab)
        pipeline.adopt(deferredPartitions: deferredAssignments.count)
        lifecycle = WorkerLifecycle(drainMax: PipelineSettings.drainMax, now: now)
        model = SimulationModel(settings: settings)
        assignments = Array(repeating: nil, count: partitions)
        positions = Array(repeating: 0, count: partitions)
        committableOffsets = positions
        inherited = Array(repeating: nil, count: partitions)
    }

    var sharing = SimulatedSharing()

    /// Whether the last turn was under lowered settings.
    var isReloaded = false

    func adopt(_ settings: PipelineSettings) {
        do {
            try pipeline.adopt(settings.live, bindings: Self.bindings)
        } catch {
            preconditionFailure("\(error)")
        }
    }

    // MARK: Sending

    /// - Returns: how many pushes were handed over.
    func handOver(
        pool: Int, room: PoolRoom, world: SimulatedKafka, now: Now,
        answer: (_ isAgain: Bool) -> (SimulatedAnswer, Duration)
    ) throws(SimulationFailure) -> Int {
        let drops = watchDrops(world: world, now: now)
        let candidates = joinCandidates(now: now)
        let written = pipeline.records.count
        let handed = try handOverFairly(room, pool: pool, now: now)
        try noteDropsInTurn(drops, now: now)
        model.forgive(now: now)
        try noteJoins(candidates, from: written)
        for slot in handed {
            sequence += 1
            let push = SentPush(slot, slab)
            let route = pipeline.routing[push.route]
            let token = SimulatedToken(
                environment: route.environment, tokenClass: route.tokenClass, bytes: push.token)
            try require(Int(route.pool.rawValue) == pool, "a push of another pool")
            try require(push.type.classes.contains(route.tokenClass), "the type is not the token's")
            try restrictions.sent(to: route.tokenClass)
            try require(!model.isSuppressed(token), "a push to a token known dead")
            try require(model.isRegistered(token), "a push to a token that nobody registered")
            try require(slab.push(slot).pointee.expiresAt > now.monotonic, "an expired push")
            // A payload of an event that another worker has read came by way of `deferred`.
            let payload =
                bodies[push.body] ?? world.payloads[push.body].map { (event: $0, sequence: -1) }
            let twin = flights.contains {
                $0.token == token && $0.payload == nil && payload == nil
                    && !pipeline.state.pushes.isOrphaned($0.slot)
            }
            try require(!twin, "two pushes that say the same to one token at a time")
            let payloadAt =
                payload == nil
                ? now.wall
                : pipeline.state.pushes.bodies.readAt(pipeline.state.pushes[slot].content.body)
            if let payload {
                try require(
                    world.deferred.isKnown(payloadAt, of: payload.event),
                    "a payload of a time when nobody has read it")
                try require(
                    model.isShown(payload.event, to: token),
                    "a payload for whoever had the phone before: \(payload.event)")
            }
            let key = push.token.withUnsafeBufferPointer { token in
                RecordKey.deferred(
                    route: route, token: token,
                    coalescingKey: pipeline.state.pushes.coalescingKey(of: slot))
            }
            // Without a collapse ID the newer one is the same event, read again.
            if payload?.event.payload?.collapseID != nil {
                try checkOrder(of: slot, key: key, payloadAt: payloadAt, world: world)
            }
            if payload == nil, world.checksGaps {
                try checkGap(of: slot, token: token, world: world, now: now)
            }
            let (answer, delay) = answer(pipeline.state.pushes[slot].attempts > 0)
            flights.append(
                Flight(
                    slot: slot, token: token, payload: payload, payloadAt: payloadAt,
                    sequence: sequence,
                    key: key, handedOverAt: now.monotonic,
                    registeredAt: model.registrationTime(token)!,
                    dueAt: now.monotonic + delay, answer: answer))
        }
        return handed.count
    }

    /// - Parameter world: learns which keys' pushes have ended.
    func answered(
        _ index: Int, world: inout SimulatedKafka, now: Now
    ) throws(SimulationFailure) {
        var flight = flights.remove(at: index)
        if flight.answer == .expired, slab.push(flight.slot).pointee.expiresAt > now.monotonic {
            flight.answer = .unprocessed
        }
        // APNs's clock and that of whoever registers may be half a minute apart, like all others.
        let apart = 1 + now.monotonic.nanoseconds / 1_000_000 % 30_000
        let outcome = flight.answer.outcome(
            flight.slot, registeredAt: flight.registeredAt, apart: apart)
        let isOrphaned = pipeline.state.pushes.isOrphaned(flight.slot)
        // A follow-up waits for a delay of its own.
        let isAhead =
            !pipeline.fanOut.underWay.isEmpty || !pipeline.late.entries.isEmpty
            || pipeline.state.pushes[flight.slot].hasFollowUp
        let before = pipeline.counters
        let written = pipeline.records.count
        let drops = watchDrops(world: world, now: now)
        var claims: [OffsetClaim] = []
        pipeline.state.pushes.forEachClaim(of: flight.slot) { claims.append($0) }
        pipeline.outcome(outcome, now: now)
        try noteDrop(of: flight.slot, drops, now: now)
        let after = pipeline.counters
        model.forgive(now: now)
        // Of this push nobody knows when it was sent.
        if after.gapsForgotten > before.gapsForgotten { world.checksGaps = false }
        try require((after.accepted > before.accepted) == (outcome.status == 200), "accepted")
        let isStrike = flight.answer == .deadBefore && !isOrphaned
        try require((after.strikes > before.strikes) == isStrike, "a strike")
        if outcome.status == 200 {
            model.ended(flight)
            // Of a token that was gone meanwhile nothing is remembered.
            if flight.payload == nil, !isOrphaned { acceptedAt[flight.token] = now.monotonic }
            if flight.payload != nil { noteAcceptance(of: flight, world: world) }
        }
        if after.failuresRepeated > before.failuresRepeated {
            try noteRepeat(of: flight, claims: claims, isOrphaned: isOrphaned, now: now)
            world.deferred.ended(flight)
        } else if after.rejected > before.rejected {
            if after.failuresMerged == before.failuresMerged { repeats.told(flight, now: now) }
            let isMerged = after.failuresMerged > before.failuresMerged
            if !isMerged { untold.append((flight.token, flight.payload?.event.payload?.body)) }
            // A token that has registered again since is owed pushes of its own.
            if !isOrphaned { model.rejected(flight, ticket: nil, isAhead: isAhead) }
            rejections.append((flight, isMerged, []))
        } else if after.accepted > before.accepted || after.unregistered > before.unregistered
            || after.deadUnconfirmed > before.deadUnconfirmed
            || after.unsubscribed > before.unsubscribed
        {
            world.deferred.ended(flight)
        }
        if after.unsubscribed > before.unsubscribed, let payload = flight.payload {
            model.notTold(flight.token, group: payload.event.group) { _ in true }
        }
        try note(from: written, world: world, now: now)
        let suppressions = pipeline.records[written...].filter { $0.topic == .suppressions }
        for record in suppressions {
            try require(outcome.status == 410 || outcome.reason == .badDeviceToken, "a suppression")
            let (token, time) = SimulatedSuppression.parse(key: record.key, value: record.value)
            try require(token == flight.token && time != nil, "a suppression on another token")
            try require(time == flight.registeredAt, "a suppression under another registration")
            model.rejected(
                flight, ticket: record.ticket, isAhead: isAhead, holding: holding(record.ticket))
            model.learned(token, suppression: time, now: now)
            // The follow-up ends with it, even if the token registers again before that is in
            // Kafka.
            if model.isSuppressed(token) { world.deferred.suppressed(token, now: now) }
        }
        if outcome.status == 410, !isOrphaned, suppressions.isEmpty { model.ended(flight) }
    }
}
