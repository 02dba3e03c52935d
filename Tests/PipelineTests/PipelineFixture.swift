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

@testable internal import Pipeline

/// A pipeline with a virtual clock; the test plays Kafka and APNs.
final class PipelineFixture {
    var pipeline: PushPipeline
    let slab: PushSlab
    var now = Now(
        monotonic: MonotonicTime(nanoseconds: 5_000_000_000_000),
        wall: WallTime(milliseconds: 1_795_000_000_000))
    /// The open assignments; events are read from the last.
    private var assignments: [AssignmentID] = []
    private var lastEpoch: UInt32 = 0
    private var nextOffset: Int64
    /// The offset of the next registration that the worker applies.
    var registrationOffset: Int64 = 0

    static let app = "com.example.Home"

    init(
        apps: [String] = [PipelineFixture.app], startOffset: Int64 = 0,
        bindings: [TopicBinding] = [.standard],
        adjust: (inout PipelineSettings) -> Void = { _ in }
    ) {
        var settings = PipelineSettings()
        settings.slots = 256
        // Tests of other rules wait as long as they like.
        settings.holdMax = .seconds(10_000_000)
        settings.recentSubjectCells = 1024
        settings.eventTopics = bindings.indices.map { "events-\($0)" }
        settings.seed = 7
        adjust(&settings)
        slab = PushSlab(slots: settings.slots)
        var routing = RoutingTable()
        routing.add(credential: "team", apps: apps, environments: [.production, .development])
        pipeline = try! PushPipeline(
            routing: routing, bindings: bindings, settings: settings, slab: slab)
        nextOffset = startOffset
        assign(startOffset: startOffset)
    }

    /// Whether all invariants are checked after calls, which is too slow for a large test: after each
    /// of the first, and later after every eighth, since what is broken then mostly stays broken.
    var checksEachCall = true
    private var calls = 0
    private static let checkedOneByOne = 256

    deinit {
        for slot in 0..<slab.slots { slab.push(UInt32(slot)).pointee.longToken?.deallocate() }
    }

    // MARK: Time

    func pass(_ duration: Duration) {
        // The planner asks for offsets ten times a second, by which the ledger notes what was read
        // when.
        let first = min(duration, .milliseconds(100))
        moveClocks(by: first)
        for id in assignments { _ = pipeline.committableOffset(id, now: now) }
        moveClocks(by: duration - first)
        pipeline.advance(now: now)
        _ = pipeline.advanceFanOuts(steps: 10_000, now: now)
        checkAfterCall()
    }

    private func moveClocks(by duration: Duration) {
        now.monotonic = now.monotonic + duration
        now.wall = now.wall + duration
    }

    // MARK: Kafka

    /// Assigns another partition to the pipeline, from which events are read from now on.
    ///
    /// - Parameter nextOffset: the offset of the next event; nil to go on where the last one was.
    func assign(
        topic: UInt16 = 0, startOffset: Int64, note: CommitNote? = nil, nextOffset: Int64? = nil
    ) {
        let id = newAssignment(ordinal: UInt32(assignments.count))
        pipeline.assigned(id, topic: topic, partition: 0, startOffset: startOffset, note: note)
        assignments.append(id)
        if let nextOffset { self.nextOffset = nextOffset }
    }

    /// Revokes the last partition.
    func unassign() { pipeline.unassigned([assignments.removeLast()]) }

    func newAssignment(ordinal: UInt32) -> AssignmentID {
        lastEpoch += 1
        return AssignmentID(ordinal: ordinal, epoch: lastEpoch)
    }

    func register(
        _ installation: String, _ targets: [RegistrationDraft.Target],
        at registeredAt: WallTime? = nil, environment: PushEnvironment = .production,
        app: String = PipelineFixture.app, handler: String = "H"
    ) {
        var draft = RegistrationDraft(
            environment: environment, app: app, installation: installation, handler: handler)
        draft.registeredAt = registeredAt ?? now.wall
        draft.targets = targets
        let problem = RegistrationEncoder.key(draft).withUnsafeBytes { key in
            RegistrationEncoder.value(draft).withUnsafeBytes { value in
                pipeline.registrationRecord(
                    TableRecord(
                        key: key, value: value, timestamp: now.wall, partition: 0,
                        offset: nextRegistration()), now: now)
            }
        }
        precondition(problem == nil, "\(problem!)")
        checkAfterCall()
    }

    /// One control that shows some subjects.
    func registerControl(
        _ installation: String, _ token: [UInt8], shows subjects: [String],
        kind: String? = "door", at registeredAt: WallTime? = nil,
        environment: PushEnvironment = .production
    ) {
        register(
            installation, [.control(token, shows: subjects, kind: kind)], at: registeredAt,
            environment: environment)
    }

    private func nextRegistration() -> Int64 {
        defer { registrationOffset += 1 }
        return registrationOffset
    }

    func unregister(_ installation: String, environment: PushEnvironment = .production) {
        let draft = RegistrationDraft(
            environment: environment, app: Self.app, installation: installation, handler: "H")
        let problem = RegistrationEncoder.key(draft).withUnsafeBytes { key in
            pipeline.registrationRecord(
                TableRecord(
                    key: key, value: nil, timestamp: now.wall, partition: 0,
                    offset: nextRegistration()), now: now)
        }
        precondition(problem == nil, "\(problem!)")
        checkAfterCall()
    }

    /// - Parameter writtenAt: the record's timestamp; nil for now.
    /// - Returns: the offset of the event.
    @discardableResult
    func event(
        _ subject: String?, _ value: String? = nil, binding: Int = 0,
        headers: [String: String] = [:], writtenAt: WallTime? = nil
    ) -> Int64 {
        let offset = nextOffset
        nextOffset += 1
        let lent = headers.mapValues { text in
            let copy = UnsafeMutableRawBufferPointer.allocate(
                byteCount: text.utf8.count, alignment: 1)
            copy.copyBytes(from: text.utf8)
            return copy
        }
        defer { for header in lent.values { header.deallocate() } }
        withBytes(subject) { key in
            withBytes(value) { value in
                let record = EventRecord(
                    binding: binding, key: key, value: value, timestamp: writtenAt ?? now.wall,
                    offset: offset)
                pipeline.eventRecord(record, of: assignment, now: now) { name in
                    lent[name].map { UnsafeRawBufferPointer($0) }
                }
            }
        }
        checkAfterCall()
        return offset
    }

    private func withBytes(_ text: String?, _ body: (UnsafeRawBufferPointer?) -> Void) {
        guard let text else { return body(nil) }
        Array(text.utf8).withUnsafeBytes { body($0) }
    }

    /// What the pipeline wants produced, as text.
    func takeRecords() -> [ProducedRecord] {
        pipeline.takeRecords().map { record in
            ProducedRecord(
                topic: record.topic, key: String(decoding: record.key, as: UTF8.self),
                value: String(decoding: record.value ?? [], as: UTF8.self),
                ticket: record.ticket, partition: record.partition,
                endedOffset: record.endedOffset, endedPayloadAt: record.endedPayloadAt,
                traceparent: record.traceparent)
        }
    }

    func acknowledge(_ records: [ProducedRecord]) {
        for record in records { pipeline.acknowledged(record.ticket) }
        checkAfterCall()
    }

    // Read through the fixture, since `#expect` cannot look into a noncopyable value.
    var counters: Counters { pipeline.counters }
    /// Why the index is not written now; nil where it is.
    func indexFault() -> String? {
        let stamp = SnapshotStamp(
            cluster: "c", tables: [], asOf: WallTime(milliseconds: 0),
            routing: StableHash.Value(high: 0, low: 0), tombstonesLast: nil)
        do throws(SnapshotFault) {
            try pipeline.writeIndex(stamp) { _ in }
            return nil
        } catch {
            return error.reason
        }
    }
    static var orderBytesPerKey: Int { PayloadOrder.bytesPerKey }
    var isIdle: Bool { pipeline.isIdle }
    var load: PushPipeline.Load { pipeline.load }
    var appsOutOfKinds: [(app: String, rows: Int)] { pipeline.appsOutOfKinds }
    func takeExpired() -> ExpiredEvents { pipeline.takeExpiredEvents() }
    func takeFailures() -> [FailureSample] { pipeline.takeFailures() }
    func takeSpans() -> [Span] { pipeline.takeSpans() }
    var traceCounts: TraceCounts? { pipeline.traceCounts }
    var kindsKnown: Int { pipeline.audience.statistics.kinds }
    var assignment: AssignmentID { assignments.last! }
    var committableOffset: Int64 { pipeline.committableOffset(assignment, now: now)! }
    var commitNote: CommitNote? { pipeline.commitNote(assignment, now: now) }

    // MARK: APNs

    func take(_ limit: Int = 64, pool: UInt16 = 0) -> [SentPush] {
        handOver(PoolRoom(free: limit, kept: 0), pool: pool).flatMap(\.pushes)
    }

    /// Takes what there is room for, as the batches that delivery is given.
    func handOver(
        _ room: PoolRoom, pool: UInt16 = 0
    ) -> [(pushes: [SentPush], isPatient: Bool)] {
        let batch = UnsafeMutableBufferPointer<PushSlot>.allocate(
            capacity: max(1, room.free))
        defer { batch.deallocate() }
        var handed: [(pushes: [SentPush], isPatient: Bool)] = []
        _ = pipeline.handOver(PoolID(rawValue: pool), room, by: batch, now: now) { [slab] in
            handed.append(($0.map { SentPush($0, slab) }, $1))
        }
        checkAfterCall()
        return handed
    }

    func answer(
        _ push: SentPush, _ status: UInt16, _ reason: APNSReason = .none,
        apnsTimestamp: WallTime? = nil, retryAfterSeconds: UInt16 = 0
    ) {
        outcome(
            PushOutcome(
                slot: push.slot, kind: .answered, status: status, reason: reason,
                apnsTimestamp: apnsTimestamp?.milliseconds ?? -1,
                retryAfterSeconds: retryAfterSeconds, sentAt: now.monotonic))
    }

    func end(_ push: SentPush, _ kind: PushOutcome.Kind) {
        outcome(PushOutcome(slot: push.slot, kind: kind))
    }

    func outcome(_ outcome: PushOutcome) {
        pipeline.outcome(outcome, now: now)
        checkAfterCall()
    }

    /// Takes and accepts everything until nothing more comes.
    func deliverAll(pool: UInt16 = 0) -> [SentPush] {
        var sent: [SentPush] = []
        while true {
            let batch = take(pool: pool)
            guard !batch.isEmpty else { return sent }
            for push in batch { answer(push, 200) }
            sent += batch
        }
    }

    func checkInvariants() { pipeline.checkInvariants() }

    /// What a call of this fixture does at its end.
    func checkAfterCall() {
        guard checksEachCall else { return }
        calls += 1
        if calls <= Self.checkedOneByOne || calls % 8 == 0 { checkInvariants() }
    }
}

/// What delivery was given.
struct SentPush: Equatable {
    var slot: PushSlot
    let token: [UInt8]
    let route: RouteID
    let type: PushType
    let priority: UInt8
    let expiration: Int64
    let apnsID: APNSID
    let body: String
    let collapseID: String

    init(_ slot: PushSlot, _ slab: PushSlab) {
        let push = slab.push(slot).pointee
        self.slot = slot
        token = Array(slab.token(slot))
        route = push.route
        type = push.type
        priority = push.priority
        expiration = push.expiration
        apnsID = push.apnsID
        body = String(
            decoding: UnsafeBufferPointer(start: push.body, count: Int(push.bodyBytes)),
            as: UTF8.self)
        let collapseIDBytes = Int(push.collapseIDBytes)
        collapseID = String(
            decoding: UnsafeBufferPointer(start: push.collapseID, count: collapseIDBytes),
            as: UTF8.self)
    }
}

extension RegistrationDraft.Target {
    static func control(
        _ token: [UInt8], shows subjects: [String], kind: String? = "door"
    ) -> Self {
        Self(
            tokenClass: .control, token: token,
            shows: [RegistrationDraft.Show(kind: kind, subjects: subjects)])
    }

    static func widget(
        _ token: [UInt8], shows subjects: [String], kind: String? = "doors"
    ) -> Self {
        Self(
            tokenClass: .widget, token: token,
            shows: [RegistrationDraft.Show(kind: kind, subjects: subjects)])
    }

    static func device(
        _ token: [UInt8], shows subjects: [String], hearsChanges: Bool = false
    ) -> Self {
        var target = Self(
            tokenClass: .device, token: token,
            shows: [RegistrationDraft.Show(kind: nil, subjects: subjects)])
        target.hearsChanges = hearsChanges
        return target
    }
}

extension PushPipeline {
    /// Whether one more push may be deferred, whatever its partition.
    var hasRoomForDeferrals: Bool {
        let shares = state.outbox.tickets.shares
        let reserved = deferral.reserved(state)
        return deferral.hasRoom(state)
            && (0..<shares.count).allSatisfy {
                shares.hasRoom(in: $0, beside: reserved, state.settings.sizes)
            }
    }

    /// Writes the tombstones of the rows that have ended, which the next turn would do.
    mutating func endDeferredRows() { deferral.endRows(&state) }
}

extension [[UInt8]] {
    /// Tokens by their first byte.
    var inOrder: Self { sorted { $0[0] < $1[0] } }
}
