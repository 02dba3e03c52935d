// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Deferral
internal import Delivery
internal import Intake
internal import Ledger
internal import Planning
internal import PushModel
internal import RecordFormats

@testable internal import Pipeline

/// The parts of a pipeline without the pipeline: each is called by its own methods, and nothing
/// happens between two calls but what the test does.
final class PartsFixture {
    var state: PipelineState
    var fanOut: FanOut
    var late: LateRegistrations
    var deferral: DeferredPushes
    var handover: Handover
    var feed: AudienceFeed
    var now = Now(
        monotonic: MonotonicTime(nanoseconds: 5_000_000_000_000),
        wall: WallTime(milliseconds: 1_795_000_000_000))
    /// The assignment that events are read from.
    let assignment = AssignmentID(ordinal: 0, epoch: 1)

    static let app = "com.example.Home"
    /// The route of controls in production.
    let route: RouteID

    init(
        bindings: [TopicBinding] = [.standard],
        adjust: (inout PipelineSettings) -> Void = { _ in }
    ) {
        var settings = PipelineSettings()
        settings.slots = 64
        settings.recentSubjectCells = 1024
        settings.eventTopics = ["events"]
        settings.seed = 7
        adjust(&settings)
        settings.check()
        var routing = RoutingTable()
        routing.add(credential: "team", apps: [Self.app], environments: [.production])
        route = routing.route(
            environment: .production, app: routing.app(named: Self.app)!, tokenClass: .control)!
        state = PipelineState(
            routing: routing, settings: settings, slab: PushSlab(slots: settings.slots))
        let decoder = try! EventDecoder(
            bindings: bindings, routing: routing, settings: settings.events)
        fanOut = FanOut(bindings: bindings, decoder: decoder, settings: settings)
        late = LateRegistrations(settings: settings)
        deferral = DeferredPushes(routing: routing, settings: settings)
        handover = Handover(seed: settings.seed &+ 1)
        feed = AudienceFeed(routing: routing)
        state.tracker.open(assignment, topic: 0, partition: 0, startOffset: 0)
    }

    var breakers: CircuitBreakers {
        _read { yield state.breakers }
        _modify { yield &state.breakers }
    }
    var outbox: Outbox {
        _read { yield state.outbox }
        _modify { yield &state.outbox }
    }

    deinit {
        for slot in 0..<state.slab.slots { Handover.freeLongToken(UInt32(slot), state.slab) }
    }

    func pass(_ duration: Duration) {
        // The ledger notes what was read when.
        _ = committableOffset
        now.monotonic = now.monotonic + duration
        now.wall = now.wall + duration
        state.pushes.wake(now: now.monotonic)
    }

    func checkInvariants() {
        fanOut.checkInvariants()
        late.checkInvariants()
        var claimed: Set<ClaimID> = []
        fanOut.underWay.forEachClaim { claimed.insert($0.id) }
        late.forEachClaim { claimed.insert($0.id) }
        outbox.forEachClaim { claimed.insert($0.id) }
        state.checkInvariants(claimed: claimed)
    }

    // Read through the fixture, since `#expect` cannot look into a noncopyable value.
    var counters: Counters {
        var counters = state.counters
        counters.take(state.tally, fanOut.tally, state.setAside)
        return counters
    }
    var pushes: Int { state.pushes.slots - state.pushes.freeSlots }
    var freeEventSlots: Int { state.freeEventSlots }
    var fanOuts: Int { fanOut.underWay.count }
    var owed: Int { late.count }
    /// The memory of remembered events, and of the payloads that anything still needs.
    var rememberedBytes: Int { late.bytes }
    var payloadBytes: Int { state.pushes.bodies.bytes }
    /// How many more pushes the pool's breaker allows.
    var allowance: Int {
        breakers.allowance(of: PoolID(rawValue: 0), now: now.monotonic)
    }
    var claims: Int { state.tracker.claimCount }
    var committableOffset: Int64 {
        state.tracker.committableOffset(assignment, now: now.monotonic)
    }

    // MARK: Events

    /// Lets the fan-out read an event of this subject.
    func event(_ subject: String, _ value: String? = nil, writtenAt: WallTime? = nil) {
        let offset = state.tracker.nextOffset(assignment)
        Array(subject.utf8).withUnsafeBytes { key in
            Array((value ?? "").utf8).withUnsafeBytes { value in
                let record = EventRecord(
                    binding: 0, key: key, value: value, timestamp: writtenAt ?? now.wall,
                    offset: offset)
                state.countRead()
                let read = RecordRead(
                    id: assignment,
                    position: state.tracker.received(
                        assignment, offset: offset, now: now.monotonic), now: now)
                try! fanOut.read(record, read, header: { _ in nil }, &state, &late)
            }
        }
        checkInvariants()
    }

    /// Moves the fan-outs on.
    /// - Returns: the steps made.
    func advance(steps: Int = 1000) -> Int {
        let made = fanOut.advance(steps: steps, now: now, &state)
        checkInvariants()
        return made
    }

    /// What a plain event would ask of each token of this subject, without such an event.
    func request(_ subject: String) -> FanOutRequest {
        FanOutRequest(
            subject: self.subject(subject)!, filter: AudienceFilter(environment: nil),
            expiresAt: now.monotonic + .seconds(60), origin: nil, readSequence: 0, subjectTag: 0)
    }

    /// The type of the push that each token of the request's subject gets; nil for none.
    func pushTypes(of request: FanOutRequest) -> [PushType?] {
        (0..<state.audience.count(request.subject)).map { position in
            let entry = state.audience.entry(request.subject, at: position)
            let route = state.audience.route(of: entry.token)
            guard
                case .push(let type) = FanOut.fate(
                    for: entry, of: request, route: route, state)
            else { return nil }
            return type
        }
    }

    /// Lets the fan-out visit the first token of a subject, with a claim that was taken for it.
    func visit(_ subject: String, claim: OffsetClaim) -> Bool {
        let entry = state.audience.entry(self.subject(subject)!, at: 0)
        return fanOut.visit(
            entry, request(subject), claims: .held([claim]), now: now, &state)
    }

    /// Reads a record that nothing asks for, and holds its offset.
    func claimOne() -> OffsetClaim {
        let offset = state.tracker.nextOffset(assignment)
        state.tracker.received(assignment, offset: offset, now: now.monotonic)
        return state.tracker.claim(assignment)
    }

    func sendOwed() {
        late.sendOwed(&fanOut, &state, now: now)
        checkInvariants()
    }

    // MARK: APNs

    func take(_ limit: Int = 64) -> [SentPush] {
        let batch = UnsafeMutableBufferPointer<PushSlot>.allocate(capacity: limit)
        defer { batch.deallocate() }
        let pool = PoolID(rawValue: 0)
        var taken: [SentPush] = []
        for line in [PoolLine(pool, isPatient: false), PoolLine(pool, isPatient: true)] {
            let count = handover.take(
                line, into: UnsafeMutableBufferPointer(rebasing: batch[taken.count...]),
                &state, &deferral, now: now)
            taken += batch[taken.count..<(taken.count + count)].map { SentPush($0, state.slab) }
        }
        checkInvariants()
        return taken
    }

    func answer(_ push: SentPush, _ status: UInt16, _ reason: APNSReason = .none) {
        outcome(
            PushOutcome(
                slot: push.slot, kind: .answered, status: status, reason: reason,
                sentAt: now.monotonic))
    }

    func outcome(_ outcome: PushOutcome) {
        _ = handover.outcomeArrived(
            outcome, isFanningOut: false, &state, &deferral, now: now)
        checkInvariants()
    }

    /// The topics of the records that are to be produced.
    func takeRecordTopics() -> [RecordTopic] { outbox.takeRecords().map(\.topic) }

    /// Lets Kafka refuse the records that are to be produced.
    func refuseRecords() {
        for record in outbox.takeRecords() { _ = outbox.refused(record.ticket) }
    }

    /// Takes everything that is ready, and lets APNs accept it.
    /// - Returns: the tokens, in the order of the pushes.
    func deliverAll() -> [[UInt8]] {
        var tokens: [[UInt8]] = []
        while true {
            let batch = take()
            guard !batch.isEmpty else { return tokens }
            for push in batch { answer(push, 200) }
            tokens += batch.map(\.token)
        }
    }
}

extension PipelineState {
    /// Kafka has the record of this ticket.
    mutating func acknowledged(_ ticket: UInt64) { outbox.acknowledged(ticket, &tracker) }
}
