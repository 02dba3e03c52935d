// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Foundation
internal import LinuxIO
internal import Logging
internal import OpenSSL
internal import PushModel
import TestCertificates
internal import Testing

@testable import APNSDelivery

/// A connection whose state the test sets.
private struct StandInConnection: PooledConnection, ~Copyable {
    let pool: Int
    var health = ConnectionHealth()
    var address: SocketAddress? { nil }
    var isWanted: Bool { !isVacant && !isRetired }
    var isVacant = true
    var isServing = false
    var capacity = 0
    var inFlightCount = 0
    var shownTokens = ShownProviderTokens()
    var isRetired = false

    init(pool: Int, settings: PoolSettings) { self.pool = pool }

    mutating func retire() { isRetired = true }

    /// Half of its requests are kept.
    func takes(bodyBytes: Int, isKeptBack: Bool) -> Bool {
        inFlightCount < (isKeptBack ? capacity / 2 : capacity)
    }
}

/// What both transports leave to the core, without a transport: who waits, who is given back, and
/// what the planner is told.
@Suite final class `The delivery core` {
    private let port: DeliveryPort
    private let slab = PushSlab(slots: 64)
    private let tokens: ProviderTokens
    private let route: RouteID
    private var core: DeliveryCore

    init() throws {
        tokens = try ProviderTokens(
            teamID: DeliveryBench.teamID, keyID: DeliveryBench.keyID,
            pem: try ES256Key.generate().privatePEM)
        var routing = RoutingTable()
        routing.add(
            credential: "team", apps: [DeliveryBench.bundleID], environments: [.production])
        route = routing.route(
            environment: .production, app: AppID(rawValue: 0), tokenClass: .control)!
        var limits = ConnectionLimits()
        limits.waitMax = .seconds(3600)
        let pool = PoolSettings(
            id: PoolID(rawValue: 0), host: "127.0.0.1", providerTokens: tokens, limits: limits)
        port = DeliveryPort(slab: slab, pools: 1, plannerWaker: Waker())
        core = try DeliveryCore(
            DeliveryDuty(
                port: port, plan: DeliveryPlan(routing: routing, pools: [pool]),
                budget: ConnectBudget(),
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }))
    }

    private func submit(_ slots: PushSlot..., isPatient: Bool = false) {
        for slot in slots { slab.push(slot).pointee.route = route }
        slots.withUnsafeBufferPointer { port.submit($0, isPatient: isPatient) }
    }

    private func outcomes() -> [PushOutcome] {
        core.outcomes.flush()
        let room = UnsafeMutableBufferPointer<PushOutcome>.allocate(capacity: 64)
        defer { room.deallocate() }
        return Array(room[..<port.collect(into: room)])
    }

    private func waiting(isPatient: Bool = false) -> [PushSlot] {
        var slots: [PushSlot] = []
        while let slot = core.pools[0].waiting[isPatient: isPatient].popFirst(core.states) {
            slots.append(slot)
        }
        for slot in slots {
            core.pools[0].waiting.append(slot, isPatient: isPatient, core.states)
        }
        return slots
    }

    private var token: ProviderToken? { core.pools[0].token }

    private func isFull(_ connections: ConnectionTable<StandInConnection>) -> Bool {
        core.isFull(0, connections)
    }

    private func isLast(_ connections: ConnectionTable<StandInConnection>) -> Bool {
        core.endTurn(with: connections)
    }

    /// - Returns: whether the connection is left.
    private func rejected(
        _ status: UInt16, _ body: String, shown: ShownProviderTokens = ShownProviderTokens()
    ) -> Bool {
        var bytes = Array(body.utf8)
        let connections: ConnectionTable<StandInConnection> = core.makeConnections()
        defer { connections.deinitialize().deallocate() }
        connections[0].shownTokens = shown
        return bytes.withUnsafeMutableBytes { bytes in
            core.rejected(
                3, status: status, retryAfterSeconds: 7,
                AnswerBody(UnsafeRawBufferPointer(bytes), parser: &core.parser), on: 0,
                of: connections
            ).isToLeave
        }
    }

    @Test func `what is taken waits in its order, since now, and was never refused`() throws {
        for slot in 1...3 { core.states[slot].resends = 8 }
        core.beginTurn()
        submit(1, 2, 3)
        core.takeSubmissions()
        #expect(waiting() == [1, 2, 3])
        for slot in 1...3 {
            let (state, now) = (core.states[slot], core.now.monotonic)
            #expect(state.since == now && state.resends == 0)
        }
        #expect(outcomes().isEmpty)
    }

    @Test func `patient pushes wait apart, and stay so when they are refused`() throws {
        core.beginTurn()
        submit(1, 2, isPatient: true)
        submit(3)
        core.takeSubmissions()
        #expect(waiting() == [3] && waiting(isPatient: true) == [1, 2])
        for slot in [PushSlot(2), 3] {
            core.pools[0].waiting[isPatient: slot == 2].remove(slot, core.states)
            core.sendAgain(slot, pool: 0, waitingSince: core.now.monotonic)
        }
        #expect(waiting() == [3] && waiting(isPatient: true) == [2, 1])
        // The next pushes in these slots are others.
        core.pools[0].waiting[isPatient: true].remove(2, core.states)
        submit(2)
        core.takeSubmissions()
        core.pools[0].waiting[isPatient: false].remove(2, core.states)
        core.sendAgain(2, pool: 0, waitingSince: core.now.monotonic)
        #expect(waiting() == [2, 3] && waiting(isPatient: true) == [1])
    }

    @Test func `patient pushes go back like all others, after their time and at a stop`() throws {
        core.beginTurn()
        submit(1, 2, isPatient: true)
        submit(3)
        core.takeSubmissions()
        let hour = Duration.seconds(3600)
        core.states[1].since = core.now.monotonic - hour
        core.states[3].since = core.now.monotonic - hour + .seconds(1)
        core.giveBackWaiting()
        #expect(outcomes().map(\.slot) == [1])
        #expect(core.nextGiveBack() == core.states[3].since + hour)
        core.pools[0].waiting[isPatient: false].remove(3, core.states)
        #expect(core.nextGiveBack() == core.states[2].since + hour)
        port.enter(.draining)
        core.beginTurn()
        core.giveBackWaiting()
        #expect(outcomes().map(\.slot) == [2])
        #expect(core.nextGiveBack() == .distantFuture)
    }

    @Test func `a pool that is full for a large audience wants a further connection`() throws {
        let connections: ConnectionTable<StandInConnection> = core.makeConnections()
        defer { connections.deinitialize().deallocate() }
        connections[0].isServing = true
        connections[0].capacity = 10
        connections[0].inFlightCount = 5
        core.beginTurn()
        // A prompt push goes, after which streams are kept.
        submit(1)
        core.takeSubmissions()
        core.pools[0].waiting.dispatches(at: core.now.monotonic)
        #expect(!isFull(connections))
        core.pools[0].waiting[isPatient: false].remove(1, core.states)
        submit(2, isPatient: true)
        core.takeSubmissions()
        #expect(isFull(connections))
        submit(1)
        core.takeSubmissions()
        #expect(!isFull(connections), "the next one is prompt")
    }

    @Test(arguments: [DeliveryPort.Phase.draining, .stopping])
    func `what comes when nothing is sent any more goes back`(phase: DeliveryPort.Phase) throws {
        submit(1, 2)
        port.enter(phase)
        core.beginTurn()
        core.takeSubmissions()
        let ends = outcomes()
        #expect(ends.map(\.slot) == [1, 2])
        #expect(ends.allSatisfy { $0.kind == .unprocessed })
        core.sendAgain(3, pool: 0, waitingSince: core.now.monotonic)
        #expect(outcomes().map(\.kind) == [.unprocessed])
        #expect(waiting().isEmpty)
    }

    @Test func `a refused push is the next to be sent, eight times, and goes back then`() throws {
        submit(1, 2)
        core.beginTurn()
        core.takeSubmissions()
        let since = MonotonicTime(nanoseconds: 5)
        for _ in 0..<8 {
            let first = core.pools[0].waiting[isPatient: false].popLast(core.states)
            #expect(first == 2)
            core.sendAgain(2, pool: 0, waitingSince: since)
            #expect(waiting() == [2, 1])
            let state = core.states[2]
            #expect(state.since == since)
            _ = core.pools[0].waiting[isPatient: false].popFirst(core.states)
            core.pools[0].waiting.append(2, isPatient: false, core.states)
        }
        core.pools[0].waiting[isPatient: false].remove(2, core.states)
        #expect(outcomes().isEmpty)
        core.sendAgain(2, pool: 0, waitingSince: since)
        #expect(waiting() == [1])
        #expect(outcomes().map(\.kind) == [.unprocessed])
        // The next push in this slot is another one.
        submit(2)
        core.takeSubmissions()
        core.pools[0].waiting[isPatient: false].remove(2, core.states)
        core.sendAgain(2, pool: 0, waitingSince: since)
        #expect(waiting() == [2, 1])
    }

    @Test func `only what has waited too long goes back`() throws {
        core.beginTurn()
        submit(1, 2, 3)
        core.takeSubmissions()
        let limit = core.now.monotonic - .seconds(3600)
        core.states[1].since = limit - .seconds(1)
        core.states[2].since = limit
        core.states[3].since = limit + .seconds(1)
        var next = [core.nextGiveBack()]
        core.giveBackWaiting()
        let ends = outcomes()
        #expect(ends.map(\.slot) == [1, 2] && ends.allSatisfy { $0.kind == .unprocessed })
        #expect(waiting() == [3])
        next.append(core.nextGiveBack())
        let now = core.now.monotonic
        #expect(next == [now - .seconds(1), now + .seconds(1)])
        // However short it has waited, when nothing is sent any more.
        port.enter(.draining)
        core.beginTurn()
        core.giveBackWaiting()
        #expect(outcomes().map(\.slot) == [3])
    }

    @Test func `connections that have seen another key are left, and no other`() throws {
        let connections: ConnectionTable<StandInConnection> = core.makeConnections()
        defer { connections.deinitialize().deallocate() }
        core.beginTurn()
        core.refreshTokens(for: connections)
        #expect(token == nil, "nothing is to be sent")
        submit(1)
        core.takeSubmissions()
        core.refreshTokens(for: connections)
        let token = try #require(token)
        let (key, now) = (token.keyGeneration, core.now.monotonic)
        connections[0].shownTokens.show(key: key, generation: token.generation, at: now)
        connections[2].shownTokens.show(key: key + 1, generation: token.generation, at: now)
        core.refreshTokens(for: connections)
        let areRetired = connections.indices.prefix(3).map { connections[$0].isRetired }
        #expect(areRetired == [false, false, true])
    }

    @Test func `a connection is not shown two provider tokens within 20 minutes`() throws {
        let connections: ConnectionTable<StandInConnection> = core.makeConnections()
        defer { connections.deinitialize().deallocate() }
        core.beginTurn()
        submit(1)
        core.takeSubmissions()
        core.refreshTokens(for: connections)
        let token = try #require(token)
        for (state, minutes) in [0, 19, 22].enumerated() {
            connections[state].shownTokens.show(
                key: token.keyGeneration, generation: token.generation - 1,
                at: core.now.monotonic - .seconds(60 * minutes))
        }
        core.refreshTokens(for: connections)
        let areRetired = connections.indices.prefix(3).map { connections[$0].isRetired }
        #expect(areRetired == [true, true, false])
    }

    @Test func `a push refused for an old provider token is sent again with the newer one`()
        throws
    {
        core.beginTurn()
        core.pools[0].token = try tokens.current(now: core.now)
        let token = try #require(token)
        var shown = ShownProviderTokens()
        for generation in [token.generation - 1, token.generation] {
            shown.show(
                key: token.keyGeneration, generation: generation, at: core.now.monotonic)
        }
        #expect(rejected(403, #"{"reason":"ExpiredProviderToken"}"#, shown: shown))
        #expect(outcomes().isEmpty)
        #expect(waiting() == [3])
        // The newer one on a connection of its own.
        shown = ShownProviderTokens()
        shown.show(
            key: token.keyGeneration, generation: token.generation, at: core.now.monotonic)
        #expect(rejected(403, #"{"reason":"ExpiredProviderToken"}"#, shown: shown))
        #expect(outcomes().map(\.reason) == [.expiredProviderToken])
    }

    @Test func `a connection on which provider tokens change too often is kept`() throws {
        core.beginTurn()
        #expect(!rejected(429, #"{"reason":"TooManyProviderTokenUpdates"}"#))
        #expect(outcomes().map(\.reason) == [.tooManyProviderTokenUpdates])
    }

    @Test func `an answer comes with all it said, and when it was asked for`() throws {
        core.states[3].since = MonotonicTime(nanoseconds: 99)
        #expect(!rejected(410, #"{"reason":"Unregistered","timestamp":5}"#))
        #expect(!rejected(400, #"{"reason":"TooManyCooks"}"#))
        core.accepted(3)
        core.unknown(3)
        let ends = outcomes()
        #expect(ends.map(\.kind) == [.answered, .answered, .answered, .unknown])
        #expect(ends.map(\.status) == [410, 400, 200, 0])
        #expect(ends.map(\.reason) == [.unregistered, .unknown, .none, .none])
        #expect(ends.map(\.apnsTimestamp) == [5, -1, -1, -1])
        #expect(ends.map(\.retryAfterSeconds) == [7, 7, 0, 0])
        #expect(ends.allSatisfy { $0.slot == 3 && $0.sentAt.nanoseconds == 99 })
        #expect(slab.reasonText(3) == "TooManyCooks")
    }

    @Test func `only a token that APNs calls expired is renewed, and then the connection is left`()
        throws
    {
        core.beginTurn()
        var old = core.now
        old.monotonic = old.monotonic - .seconds(21 * 60)
        core.pools[0].token = try tokens.current(now: old)
        let generation = try #require(token).generation
        for (status, reason) in [(UInt16(403), "InvalidProviderToken"), (503, "Shutdown")] {
            #expect(rejected(status, #"{"reason":"\#(reason)"}"#))
        }
        #expect(!rejected(503, #"{"reason":"ServiceUnavailable"}"#))
        let now = core.now
        #expect(try tokens.current(now: now).generation == generation)
        #expect(rejected(403, #"{"reason":"ExpiredProviderToken"}"#))
        #expect(try tokens.current(now: now).generation == generation + 1)
    }

    @Test func `the planner is told what the open connections carry, and an eighth more`() throws {
        let connections: ConnectionTable<StandInConnection> = core.makeConnections()
        defer { connections.deinitialize().deallocate() }
        let pool = PoolID(rawValue: 0)
        #expect(!isLast(connections))
        #expect(port.capacity(of: pool) == 32)
        connections[0].capacity = 500
        connections[1].capacity = 300
        #expect(!isLast(connections))
        #expect(port.capacity(of: pool) == 900)
        connections[0].capacity = 0
        #expect(!isLast(connections))
        #expect(port.capacity(of: pool) == 337)
        port.enter(.draining)
        core.beginTurn()
        connections[1].isVacant = false
        #expect(!isLast(connections))
        #expect(port.capacity(of: pool) == 0)
        connections[1].isVacant = true
        submit(1)
        // What was handed over a moment ago still has no outcome.
        #expect(!isLast(connections))
        core.takeSubmissions()
        #expect(isLast(connections))
        #expect(outcomes().map(\.slot) == [1])
    }
}

@Suite struct `A pool of a delivery thread` {
    private let start = MonotonicTime(nanoseconds: 1_000_000_000_000)

    private func pool(caFile: String? = nil) throws -> ConnectionPool {
        var limits = ConnectionLimits()
        limits.reconnectMin = .seconds(1)
        limits.reconnectMax = .seconds(60)
        let tokens = try ProviderTokens(
            teamID: "T", keyID: "K", pem: try ES256Key.generate().privatePEM)
        let settings = PoolSettings(
            id: PoolID(rawValue: 0), host: "127.0.0.1", caFile: caFile, connections: 3...4,
            providerTokens: tokens, limits: limits)
        #expect(ConnectionPool.connectionsNeeded(settings) == 9)
        let log = ConnectionLog(
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, pool: "test")
        return ConnectionPool(
            settings: settings, connections: 0..<ConnectionPool.connectionsNeeded(settings),
            log: log,
            at: start)
    }

    @Test func `a pool waits longer after each connect in vain, until one is authenticated`()
        throws
    {
        var pool = try pool()
        var random = SplitMix64(seed: 1)
        for _ in 0..<2 {
            for ceiling in [1, 2, 4, 8, 16, 32, 60, 60] {
                pool.connectFailed(at: start, hasReachedAPNs: false, random: &random)
                let wait = pool.connectAt - start
                #expect(wait >= .milliseconds(100 * ceiling) && wait <= .seconds(ceiling))
            }
            pool.authenticated()
        }
    }

    @Test func `a pool forgets its failed connects once it is idle, but not their back-off`() throws
    {
        var pool = try pool()
        var random = SplitMix64(seed: 1)
        for _ in 0..<5 { pool.connectFailed(at: start, hasReachedAPNs: false, random: &random) }
        pool.turned(at: start + .seconds(59))
        #expect(pool.failuresSinceIdle == 5)
        pool.turned(at: start + .seconds(60))
        let push = start + .seconds(3600)
        pool.usedAt = push
        pool.turned(at: push)
        #expect(pool.failuresSinceIdle == 0)
        pool.connectFailed(at: push, hasReachedAPNs: false, random: &random)
        #expect(pool.failuresSinceIdle == 1)
        #expect(pool.connectAt - push >= .milliseconds(3200), "the sixth of its back-off")
        pool.authenticated()
        #expect(pool.failuresSinceIdle == 0)
    }

    @Test func `a delivery thread tells of a failed connect on one line that is bounded`() {
        let counters = TransportCounters(pools: 1)
        counters.connectFailed(String(repeating: "a\n", count: 500), of: PoolID(rawValue: 0))
        let error = counters.connectError(of: PoolID(rawValue: 0)) ?? ""
        #expect(error.count == 300 && error.hasSuffix("…") && !error.contains("\n"))
    }

    @Test func `a pool reads the trusted roots anew after a minute, and keeps them when it cannot`()
        throws
    {
        let directory = try ScratchDirectory()
        let file = directory.file("ca.pem")
        var pool = try pool(caFile: file)
        #expect(throws: TLSError.self) { try pool.trust(at: start) }
        try CertificateAuthority().certificatePEM.write(
            toFile: file, atomically: true, encoding: .utf8)
        let first = try pool.trust(at: start)
        #expect(try pool.trust(at: start + .seconds(59)) === first)
        let second = try pool.trust(at: start + .seconds(60))
        #expect(second !== first)
        try "".write(toFile: file, atomically: true, encoding: .utf8)
        #expect(try pool.trust(at: start + .seconds(121)) === second)
    }

    @Test func `wants connections while it has pushes, and a minute longer`() throws {
        var pool = try pool()
        let idle = start + .seconds(60)
        var wants = [
            pool.wantsConnections(at: idle - .nanoseconds(1)), pool.wantsConnections(at: idle),
        ]
        pool.sent(1)
        wants.append(pool.wantsConnections(at: idle))
        pool.returned(1)
        let states = UnsafeMutablePointer<SlotState>.allocate(capacity: 1)
        defer { states.deallocate() }
        states.initialize(to: SlotState())
        pool.waiting.append(0, isPatient: true, states)
        wants.append(pool.wantsConnections(at: idle))
        #expect(wants == [true, false, true, true])
    }
}

@Suite struct `Lists of slots` {
    @Test func `lists of slots keep their order whatever is done to them`() {
        let states = UnsafeMutablePointer<SlotState>.allocate(capacity: 32)
        defer { states.deallocate() }
        states.initialize(repeating: SlotState(), count: 32)
        var list = SlotList()
        var model: [PushSlot] = []
        var random = SplitMix64(seed: 7)
        for _ in 0..<5000 {
            let slot = PushSlot(random.next(below: 32))
            switch random.next(below: 4) {
            case 0 where !model.contains(slot):
                list.append(slot, states)
                model.append(slot)
            case 1 where !model.contains(slot):
                list.prepend(slot, states)
                model.insert(slot, at: 0)
            case 2 where model.contains(slot):
                list.remove(slot, states)
                model.removeAll { $0 == slot }
            case 3 where random.next(below: 2) == 0:
                let taken = list.popFirst(states)
                #expect(taken == model.first)
                if taken != nil { model.removeFirst() }
            case 3:
                let taken = list.popLast(states)
                #expect(taken == model.last)
                _ = model.popLast()
            default: break
            }
            #expect(list.count == model.count && list.isEmpty == model.isEmpty)
            #expect(list.first == model.first ?? SlotList.none)
        }
    }
}
