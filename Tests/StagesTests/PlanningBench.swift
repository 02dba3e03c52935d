// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Ledger
internal import Planning
internal import PushModel

/// A push table with the ledger whose claims it keeps, and the events that it is told of.
struct PlanningBench: ~Copyable {
    var ledger = OffsetTracker(registrationGrace: .zero)
    var table: PushTable
    var now = MonotonicTime.after(.seconds(1))
    /// The planner's count of the events read.
    var sequence: UInt64 = 0
    /// How the lines of `pool` share.
    var share = PatientShare()
    /// One assignment per partition, from 0.
    let assignments: [AssignmentID]

    static let pool = PoolID(rawValue: 0)
    static let otherPool = routing[route("three")].pool

    static let routing: RoutingTable = {
        var routing = RoutingTable()
        routing.add(credential: "first", apps: ["one", "two"], environments: [.production])
        routing.add(credential: "second", apps: ["three"], environments: [.production])
        return routing
    }()

    init(slots: Int = 16, partitions: Int = 3) {
        table = PushTable(slots: slots, routing: Self.routing)
        var opened: [AssignmentID] = []
        for ordinal in 0..<UInt32(partitions) {
            opened.append(ledger.open(ordinal, startOffset: 0))
        }
        assignments = opened
    }

    /// The route of a class of one app's tokens.
    static func route(_ app: String = "one", _ tokenClass: TokenClass = .control) -> RouteID {
        routing.route(
            environment: .production, app: routing.app(named: app)!, tokenClass: tokenClass)!
    }

    /// Reads the next record of a partition: the claim on it is the caller's.
    mutating func read(partition: Int = 0) -> ReadEvent {
        sequence += 1
        let assignment = assignments[partition]
        let offset = ledger.nextOffset(assignment)
        return ReadEvent(
            position: RecordPosition(topic: 0, partition: Int32(partition), offset: offset),
            sequence: sequence, claim: ledger.read(assignment, offset, now: now))
    }

    /// What `event` asks of a token, not yet asked.
    func request(
        _ event: ReadEvent, token: UInt32 = 1, route: RouteID = route(), type: PushType? = nil,
        priority: UInt8 = 10, expiresIn: Duration = .seconds(3600), key: UInt64 = 0,
        body: BodyID = .none
    ) -> PushRequest {
        var content = PushContent(
            type: type ?? (key == 0 ? .controls : .alert), priority: priority,
            expiration: .immediate,
            expiresAt: now + expiresIn, origin: event.position, readSequence: event.sequence,
            subject: .none, subjectTag: 0)
        content.body = body
        var request = PushRequest(
            token: TokenID(rawValue: token), route: route, content: content, heldSince: now)
        request.coalescingKey = key
        return request
    }

    /// Queues the event's push to a token that has none. Takes the claim.
    mutating func queue(_ request: PushRequest, _ event: ReadEvent) -> UInt32 {
        let slot = table.queue(request, now: now)
        _ = join(slot, request, event)
        return slot
    }

    /// Joins the event to the token's push. Takes the claim.
    mutating func join(
        _ slot: UInt32, _ request: PushRequest, _ event: ReadEvent
    ) -> PushTable.Joined {
        let joined = table.join(slot, request, claim: event.claim, &ledger)
        checkInvariants()
        return joined
    }

    /// Takes the push of either line that is next.
    mutating func take(
        from pool: PoolID = pool, isBlocked: (RouteID) -> Bool = { _ in false }
    ) -> UInt32? {
        let patient = PoolLine(pool, isPatient: true)
        for part in SendingPart.allCases where part != .owed || share.owed > 0 {
            let line = part.isPatient ? patient : PoolLine(pool, isPatient: false)
            let taken = table.take(from: line, sequence: sequence, now: now, isBlocked: isBlocked)
            guard let taken else { continue }
            if part.isPatient {
                share.patientWent(1)
            } else {
                share.promptWent(1, isWaitedFor: table.hasQueued(in: patient))
            }
            return taken
        }
        return nil
    }

    /// Takes all pushes of one line.
    mutating func takeAll(of line: PoolLine) -> [UInt32] {
        var slots: [UInt32] = []
        while let slot = table.take(
            from: line, sequence: sequence, now: now, isBlocked: { _ in false })
        {
            slots.append(slot)
        }
        checkInvariants()
        return slots
    }

    /// Accepts the push in flight; true if it goes on with its follow-up.
    mutating func accept(_ slot: UInt32) -> Bool {
        let goesOn = table.ended(slot, now: now, &ledger)
        table.checkInvariants()
        return goesOn
    }

    mutating func retry(_ slot: UInt32, after delay: Duration = .zero, costsAttempt: Bool = true) {
        table.retry(slot, at: now + delay, now: now, costsAttempt: costsAttempt, &ledger)
        checkInvariants()
    }

    mutating func putBack(_ slot: UInt32) {
        table.putBack(slot, until: now, now: now, &ledger)
        checkInvariants()
    }

    mutating func endForGood(_ slot: UInt32) {
        table.endedForGood(slot) { ledger.release($0) }
        table.checkInvariants()
    }

    /// Orphans the push; true if it ended.
    mutating func orphan(_ slot: UInt32) -> Bool {
        let ended = table.orphan(slot, &ledger)
        table.checkInvariants()
        return ended
    }

    mutating func wake(after duration: Duration) {
        now = now + duration
        table.wake(now: now)
        table.checkInvariants()
    }

    mutating func committableOffset(partition: Int = 0) -> Int64 {
        ledger.committableOffset(assignments[partition], now: now)
    }

    func checkInvariants() {
        table.checkInvariants()
        ledger.checkInvariants()
    }
}

/// An event that was read, with the claim on its offset.
struct ReadEvent {
    let position: RecordPosition
    let sequence: UInt64
    let claim: OffsetClaim
}

extension BodyStore {
    func text(_ id: BodyID) -> String { String(decoding: body(id), as: UTF8.self) }

    mutating func insert(_ text: String, collapseID: String = "") -> BodyID {
        insert(
            Array(text.utf8), collapseID: Array(collapseID.utf8),
            readAt: WallTime(milliseconds: 0), origin: nil)
    }
}
