// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel
internal import Testing

@Suite struct `The circuit breakers of pools and routes` {
    private static let backoff = Backoff(least: .seconds(10), most: .seconds(600))
    private static let routing = {
        var routing = RoutingTable()
        routing.add(
            credential: "team", apps: ["one", "two"], environments: [.production, .development])
        return routing
    }()

    private func breakers() -> CircuitBreakers {
        CircuitBreakers(
            routing: Self.routing, backoff: Self.backoff, tokenBackoff: Self.backoff,
            limits: TokenGuard.Limits(), seed: 7)
    }

    private func route(
        _ app: String = "one", _ environment: PushEnvironment = .production
    ) -> RouteID {
        Self.routing.route(
            environment: environment, app: Self.routing.app(named: app)!, tokenClass: .control)!
    }

    private func answer(
        _ answer: PoolHealth.Answer, _ number: UInt32, _ breakers: inout CircuitBreakers,
        at seconds: Int = 0
    ) {
        [UInt8(truncatingIfNeeded: number)].withUnsafeBytes { bytes in
            breakers.received(
                answer, route(), token: TokenID(rawValue: number), bytes: bytes,
                now: .after(.seconds(seconds)))
        }
        breakers.checkInvariants()
    }

    private func held(
        _ number: UInt8, _ breakers: borrowing CircuitBreakers, at seconds: Int
    ) -> Bool {
        [number].withUnsafeBytes { bytes in
            breakers.held(bytes, route(), now: .after(.seconds(seconds))) != nil
        }
    }

    @Test func `a refused topic blocks its route alone`() {
        var breakers = breakers()
        breakers.topicRefused(route(), .topicDisallowed, now: .after(.zero))
        let closed = [breakers.isClosed(route()), breakers.isClosed(route("two"))]
        #expect(closed == [false, true])
        let blocking = breakers.isBlocking(route(), now: .after(.zero))
        #expect(blocking)
        let opened = (breakers.poolsOpened, breakers.routesOpened)
        #expect(opened == (0, 1))
        breakers.topicTaken(route())
        let isClosed = breakers.isClosed(route())
        #expect(isClosed)
    }

    @Test func `the word of a refusal is no other cause's`() {
        var breakers = breakers()
        breakers.credentialRefused(route(), .unknown, word: "KeyTooNew", now: .after(.zero))
        let refused = breakers.tripped(Self.routing, now: .after(.zero)).map(\.unknownReason)
        #expect(refused == ["KeyTooNew"])
        breakers.credentialTaken(route())
        for token in 0..<50 as Range<UInt32> { answer(.fault, token, &breakers) }
        let ill = breakers.tripped(Self.routing, now: .after(.zero))
        #expect(ill.map(\.cause) == [.ill] && ill.map(\.unknownReason) == [nil])
    }

    @Test func `a refused credential blocks all routes of its pool, and of no other`() {
        var breakers = breakers()
        breakers.credentialRefused(route(), .invalidProviderToken, now: .after(.zero))
        let closed = [route(), route("two"), route("one", .development)].map {
            breakers.isClosed($0)
        }
        #expect(closed == [false, false, true])
        let names = breakers.tripped(Self.routing, now: .after(.zero)).map(\.name)
        #expect(names == ["credential team in production"])
    }

    @Test func `the phases are those of all credentials and of the topics that have been refused`()
    {
        var breakers = breakers()
        func phases() -> [BreakerOwner: CircuitBreaker.Phase] {
            Dictionary(uniqueKeysWithValues: breakers.phases.map { ($0.of, $0.phase) })
        }
        let pool = breakers.pool(of: route())
        let other = breakers.pool(of: route("one", .development))
        #expect(phases() == [.pool(pool): .closed, .pool(other): .closed])
        for _ in 0..<3 {
            breakers.credentialRefused(route(), .invalidProviderToken, now: .after(.zero))
        }
        breakers.topicRefused(route("two"), .topicDisallowed, now: .after(.zero))
        let topic = BreakerOwner.route(route("two"))
        #expect(phases() == [.pool(pool): .open, .pool(other): .closed, topic: .open])
        let counted = breakers.credentialRefusals(of: pool)
        #expect(counted == 3)
        _ = breakers.allowance(of: pool, now: .after(.seconds(3600)))
        breakers.topicTaken(route("two"))
        #expect(phases() == [.pool(pool): .halfOpen, .pool(other): .closed, topic: .closed])
    }

    @Test func `a refused credential is probed soon, however long APNs was ill before`() throws {
        var breakers = CircuitBreakers(
            routing: Self.routing,
            backoff: Backoff(least: .milliseconds(100), most: .seconds(900)),
            tokenBackoff: Self.backoff, limits: TokenGuard.Limits(), seed: 7)
        let pool = breakers.pool(of: route())
        for token in 0..<60 as Range<UInt32> { answer(.fault, token, &breakers) }
        var seconds = 0
        for token in 100..<106 as Range<UInt32> {
            seconds += 60
            let probes = breakers.allowance(of: pool, now: .after(.seconds(seconds)))
            #expect(probes == 1)
            answer(.fault, token, &breakers, at: seconds)
        }
        seconds += 60
        _ = breakers.allowance(of: pool, now: .after(.seconds(seconds)))
        breakers.credentialRefused(
            route(), .expiredProviderToken, now: .after(.seconds(seconds)))
        let tripped = breakers.tripped(Self.routing, now: .after(.seconds(seconds)))
        let wait = try #require(tripped.first?.probeIn)
        #expect(wait >= .seconds(20) && wait <= .seconds(40))
    }

    @Test func `a key that has changed lets a probe out at once, where the old one was refused`() {
        for isRefused in [true, false] {
            var breakers = breakers()
            if isRefused {
                breakers.credentialRefused(route(), .invalidProviderToken, now: .after(.zero))
            } else {
                for token in 0..<50 as Range<UInt32> { answer(.fault, token, &breakers) }
            }
            let pool = breakers.pool(of: route())
            breakers.keyChanged(of: pool, now: .after(.zero))
            let allowance = breakers.allowance(of: pool, now: .after(.zero))
            #expect(allowance == (isRefused ? 1 : 0))
        }
    }

    @Test func `faults of many tokens open the pool's breaker once`() {
        var breakers = breakers()
        for token in 0..<60 as Range<UInt32> { answer(.fault, token, &breakers) }
        let opened = breakers.poolsOpened
        let isAnyOpen = breakers.isAnyPoolOpen
        #expect(opened == 1 && isAnyOpen)
        let due = breakers.nextDue(now: .after(.zero))
        let sendable = breakers.sendable(route(), from: .after(.zero))
        #expect(due == sendable && due > .after(.zero))
    }

    @Test func `a token whose fault comes back while others are accepted waits by itself`() {
        var breakers = breakers()
        answer(.fault, 1, &breakers)
        breakers.taken(route())
        breakers.handedOver(1, of: breakers.pool(of: route()), now: .after(.zero))
        breakers.accepted(route(), token: TokenID(rawValue: 2), now: .after(.zero))
        answer(.fault, 1, &breakers)
        let waits = [held(1, breakers, at: 0), held(2, breakers, at: 0)]
        #expect(waits == [true, false])
        let hadFaults = breakers.hasTokenFaults
        answer(.healthy, 1, &breakers)
        let hasFaults = breakers.hasTokenFaults
        #expect(hadFaults && !hasFaults)
    }

    @Test func `what is in flight counts against a breaker that has just closed`() {
        var breakers = breakers()
        let pool = breakers.pool(of: route())
        breakers.credentialRefused(route(), .invalidProviderToken, now: .after(.zero))
        breakers.credentialTaken(route())
        let first = breakers.allowance(of: pool, now: .after(.zero))
        for _ in 0..<first { breakers.taken(route()) }
        breakers.handedOver(first, of: pool, now: .after(.zero))
        breakers.checkInvariants()
        let none = breakers.allowance(of: pool, now: .after(.zero))
        breakers.landed(route())
        breakers.checkInvariants()
        let one = breakers.allowance(of: pool, now: .after(.zero))
        #expect(first > 0 && none == 0 && one == 1)
        let used = [1, -1].map { breakers.wasUsed(pool, since: .after(.seconds($0))) }
        #expect(used == [false, true])
    }

    @Test func `a pool that answers nothing is taken for ill`() {
        var breakers = breakers()
        breakers.taken(route())
        breakers.handedOver(1, of: breakers.pool(of: route()), now: .after(.zero))
        for seconds in [0, 9, 10] {
            breakers.lookForSilence(now: .after(.seconds(seconds)))
            let cause = breakers.tripped(Self.routing, now: .after(.zero)).first?.cause
            #expect(cause == (seconds == 10 ? .silent : nil))
        }
    }

    /// After an hour without an answer all pushes would otherwise wait for minutes after APNs is back.
    @Test(arguments: [PoolHealth.Answer.silence, .fault])
    func `a pool that answers nothing is asked every half minute, one that answers 5xx less often`(
        answers: PoolHealth.Answer
    ) throws {
        var breakers = breakers()
        let pool = breakers.pool(of: route())
        breakers.taken(route())
        breakers.handedOver(1, of: pool, now: .after(.zero))
        for seconds in [0, 10] { breakers.lookForSilence(now: .after(.seconds(seconds))) }
        breakers.landed(route())
        var now = 10
        var longest = 0
        for number in UInt32(1)...20 {
            let wait = try #require(
                breakers.tripped(Self.routing, now: .after(.seconds(now))).first?.probeIn)
            longest = max(longest, Int(wait / .seconds(1)))
            now += Int(wait / .seconds(1)) + 1
            let allowed = breakers.allowance(of: pool, now: .after(.seconds(now)))
            #expect(allowed == 1)
            breakers.taken(route())
            breakers.handedOver(1, of: pool, now: .after(.seconds(now)))
            answer(answers, number, &breakers, at: now)
            breakers.landed(route())
        }
        #expect(answers == .silence ? longest <= 30 : longest > 60)
    }

    @Test func `a pool is known to answer nothing until its breaker opens`() {
        var breakers = breakers()
        let pool = breakers.pool(of: route())
        var silences: [Duration?] = []
        breakers.taken(route())
        breakers.handedOver(1, of: pool, now: .after(.zero))
        for seconds in [0, 3, 10] {
            breakers.lookForSilence(now: .after(.seconds(seconds)))
            silences.append(breakers.silence(of: pool, now: .after(.seconds(seconds))))
        }
        #expect(silences == [.zero, .seconds(3), nil])
    }

    @Test func `other limits begin another window of answers`() {
        var breakers = breakers()
        var limits = TokenGuard.Limits()
        limits.window = 2
        limits.badShareMax = 0.5
        breakers.adopt(backoff: Self.backoff, tokenBackoff: Self.backoff, limits: limits)
        let early = breakers.believesRejection(route(), now: .after(.zero))
        breakers.taken(route())
        breakers.handedOver(1, of: breakers.pool(of: route()), now: .after(.zero))
        breakers.accepted(route(), token: TokenID(rawValue: 1), now: .after(.zero))
        let later = breakers.believesRejection(route(), now: .after(.zero))
        #expect(!early && later)
    }
}
