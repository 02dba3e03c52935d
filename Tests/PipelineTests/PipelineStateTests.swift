// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Delivery
internal import Intake
internal import Ledger
internal import Planning
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// A state with one token, and what reads events for it.
private struct BookBench: ~Copyable {
    var state: PipelineState
    let token: TokenID
    private let route: RouteID
    private let assignment = AssignmentID(ordinal: 0, epoch: 1)
    let now = Now(
        monotonic: MonotonicTime(nanoseconds: 5_000_000_000_000),
        wall: WallTime(milliseconds: 1_795_000_000_000))

    init() {
        var routing = RoutingTable()
        routing.add(credential: "team", apps: ["one"], environments: [.production])
        var settings = PipelineSettings()
        settings.slots = 16
        settings.eventTopics = ["events"]
        var state = PipelineState(routing: routing, settings: settings, slab: PushSlab(slots: 16))
        var registration = Registration()
        var decoder = RegistrationDecoder(routing: routing)
        var draft = RegistrationDraft(
            environment: .production, app: "one", installation: "I", handler: "H")
        draft.registeredAt = now.wall
        draft.targets = [.control([1], shows: ["door"])]
        let wall = now.wall
        _ = RegistrationEncoder.key(draft).withUnsafeBytes { key in
            RegistrationEncoder.value(draft).withUnsafeBytes { value in
                try! decoder.decode(key: key, value: value, timestamp: wall, into: &registration)
            }
        }
        var changes = AudienceChanges()
        _ = state.audience.apply(registration, changes: &changes)
        let route = routing.route(
            environment: .production, app: routing.app(named: "one")!, tokenClass: .control)!
        token = ([1] as [UInt8]).withUnsafeBytes { state.audience.token(route, $0)! }
        self.route = route
        state.tracker.open(assignment, topic: 0, partition: 0, startOffset: 0)
        self.state = state
    }

    /// Reads an event and makes the token's push of it, or lets it join that.
    mutating func push(key: UInt64 = 0) -> UInt32 {
        let offset = state.tracker.nextOffset(assignment)
        let position = state.tracker.received(
            assignment, offset: offset, now: now.monotonic)
        let content = PushContent(
            type: .controls, priority: 10, expiration: .immediate,
            expiresAt: now.monotonic + .seconds(60),
            origin: position, readSequence: 1,
            subject: .none, subjectTag: 0)
        var push = PushRequest(
            token: token, route: route, content: content, heldSince: now.monotonic)
        push.coalescingKey = key
        let slot =
            state.existingPush(for: push.token, key: key) ?? state.add(push, now: now)
        let claim = state.tracker.claim(assignment)
        _ = state.pushes.join(slot, push, claim: claim, &state.tracker)
        state.checkInvariants(claimed: [])
        return slot
    }

    mutating func takeOne() -> UInt32? {
        state.pushes.take(
            from: PoolLine(state.traits(of: route).pool, isPatient: false), sequence: 1,
            now: now.monotonic
        ) { _ in false }
    }
}

@Suite struct `The pipeline state` {
    @Test func `the state knows one push of each key of a token`() {
        var bench = BookBench()
        let plain = [bench.push(), bench.push()]
        let other = [bench.push(key: 7), bench.push(key: 7), bench.push(key: 8)]
        #expect(plain[0] == plain[1] && other[0] == other[1])
        #expect(Set(plain + other).count == 3)
        let made = bench.state.pushes.slots - bench.state.pushes.freeSlots
        #expect(made == 3)
    }

    @Test func `the state gives back what a push holds when it ends, and forgets it`() {
        var bench = BookBench()
        let slot = bench.push()
        let taken = bench.takeOne()
        bench.state.end(slot, now: bench.now)
        bench.state.checkInvariants(claimed: [])
        let (claims, existing) = (
            bench.state.tracker.claimCount, bench.state.existingPush(for: bench.token, key: 0)
        )
        #expect(taken == slot && claims == 0 && existing == nil)
    }

    @Test func `the state hands the claims of a push over to whoever ends it`() {
        var bench = BookBench()
        let slot = bench.push()
        _ = bench.push()
        let claims = bench.state.endTakingClaims(slot, withFollowUp: true, now: bench.now)
        bench.state.checkInvariants(claimed: Set(claims.map(\.id)))
        #expect(claims.map(\.offset) == [0], "the older of two on one partition")
        bench.state.release(claims)
        let left = bench.state.tracker.claimCount
        #expect(left == 0)
    }

    @Test func `the state ends a gone token's waiting pushes, and one in flight when it lands`() {
        var bench = BookBench()
        let inFlight = bench.push(key: 7)
        _ = bench.takeOne()
        _ = bench.push()
        bench.state.tokenRemoved(bench.token)
        let claims = bench.state.tracker.claimCount
        #expect(claims == 1)
        let isOwed = bench.state.isOwed(inFlight)
        bench.state.endNotOwed(inFlight, now: bench.now)
        let (left, counted) = (
            bench.state.tracker.claimCount, bench.state.tally.total(.unregistered)
        )
        #expect(!isOwed && left == 0 && counted == 2)
    }
}
