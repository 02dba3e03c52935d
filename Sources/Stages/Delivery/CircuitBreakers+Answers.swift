// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

extension CircuitBreakers {
    // MARK: What answers say of pools

    /// A request was answered, or sent and not answered.
    /// - Parameters:
    ///   - token: the audience's number of the token.
    ///   - bytes: the bytes of the token.
    package mutating func received(
        _ answer: PoolHealth.Answer, _ route: RouteID, token: TokenID,
        bytes: UnsafeRawBufferPointer, now: MonotonicTime
    ) {
        let pool = Int(routes[Int(route.rawValue)].pool.rawValue)
        let isIll = pools[pool].health.received(answer, of: token, now: now)
        if answer == .healthy {
            recovered(bytes, route)
        } else if answer == .fault || !pools[pool].breaker.isClosed {
            pools[pool].tokenHealth.faulted(
                hash(bytes, route), accepted: pools[pool].accepted, backoff: tokenBackoff, now: now,
                random: &random)
            hasTokenFaults = true
        }
        if !pools[pool].breaker.isClosed, answer != .healthy {
            // A probe failed.
            let isSilence = answer == .silence && pools[pool].cause == .silent
            fail(pool, atMost: isSilence ? Self.silenceMost : nil, now: now)
        } else if isIll {
            open(pool, by: .ill, now: now)
        }
    }

    /// A request failed on one connection of the route's pool, while the others do not fail: nothing
    /// is wrong with the pool or with the token.
    package mutating func receivedFromOutlier(_ route: RouteID) {
        pools[Int(routes[Int(route.rawValue)].pool.rawValue)].health.heard()
    }

    /// An answer shows that APNs accepts the credential.
    package mutating func credentialTaken(_ route: RouteID) {
        pools[Int(routes[Int(route.rawValue)].pool.rawValue)].breaker.recovered()
    }

    /// An answer shows that APNs accepts the route's APNs topic.
    package mutating func topicTaken(_ route: RouteID) {
        routes[Int(route.rawValue)].breaker.recovered()
    }

    /// - Parameter word: the reason as APNs spells it, where it is unknown.
    package mutating func credentialRefused(
        _ route: RouteID, _ reason: APNSReason, word: String? = nil, now: MonotonicTime
    ) {
        let pool = Int(routes[Int(route.rawValue)].pool.rawValue)
        pools[pool].refusals += 1
        open(pool, by: .credentialRefused(reason), word: word, now: now)
    }

    package mutating func topicRefused(_ route: RouteID, _ reason: APNSReason, now: MonotonicTime) {
        routesOpened += 1
        routes[Int(route.rawValue)].hasOpened = true
        routes[Int(route.rawValue)].cause = .topicRefused(reason)
        routes[Int(route.rawValue)].breaker.failed(
            now: now, atMost: Self.refusedMost, random: &random)
    }

    /// The pool signs with another key. If the old key had been refused, a probe is sent at once.
    package mutating func keyChanged(of pool: PoolID, now: MonotonicTime) {
        guard case .credentialRefused = pools[Int(pool.rawValue)].cause else { return }
        pools[Int(pool.rawValue)].breaker.mayProbe(now: now)
    }

    /// Opens the breakers of pools that have gone silent. Called once a turn.
    package mutating func lookForSilence(now: MonotonicTime) {
        for pool in pools.indices where pools[pool].breaker.isClosed {
            if pools[pool].health.isSilent(inFlight: pools[pool].inFlight, now: now) {
                open(pool, by: .silent, now: now)
            }
        }
    }

    /// How long the pool has had pushes in flight of which APNs has answered none; nil if none is in
    /// flight, or the pool's breaker is not closed.
    package func silence(of pool: PoolID, now: MonotonicTime) -> Duration? {
        let pool = pools[Int(pool.rawValue)]
        return pool.breaker.isClosed ? pool.health.silence(now: now) : nil
    }

    /// How many faults the pool has had since the last answer that was none.
    package func faultsInARow(of pool: PoolID) -> Int {
        pools[Int(pool.rawValue)].health.faultsInARow
    }

    /// Whether APNs has answered pushes of this route's pool with nothing but faults for a while: one
    /// more says nothing of a push.
    package func isFailingAll(_ route: RouteID, now: MonotonicTime) -> Bool {
        pools[Int(routes[Int(route.rawValue)].pool.rawValue)].health.isFailingAll(now: now)
    }

    private mutating func open(
        _ pool: Int, by cause: TrippedBreaker.Cause, word: String? = nil, now: MonotonicTime
    ) {
        if pools[pool].breaker.isClosed { poolsOpened += 1 }
        // Many failures of one cause say nothing of another one's first, whose wait is longer.
        if cause.isOfCredential, !pools[pool].cause.isOfCredential {
            pools[pool].breaker.forgetFailures()
        }
        pools[pool].cause = cause
        pools[pool].unknownReason = word
        let most: Duration? =
            switch cause {
            case .silent: Self.silenceMost
            // Where there is a shortest time, the limit is Apple's, and nobody mends it.
            case .credentialRefused(let reason):
                AnswerTable.credentialWaitMin(reason) == .zero ? Self.refusedMost : nil
            case .ill, .topicRefused: nil
            }
        fail(pool, atMost: most, now: now)
        pools[pool].health.reset()
    }

    /// How long a pool that answers nothing is left alone at most. Apple asks for up to 15 minutes
    /// after a 5xx, which costs it something; a probe that nobody answers costs nothing, and each
    /// further second is one that all pushes wait after APNs is back.
    private static let silenceMost = Duration.seconds(30)

    /// How long a pool or a route that is refused is left alone at most, where somebody has to mend
    /// it. A refused push costs APNs little; each further second is one that all pushes wait after it
    /// was mended, which `LamplighterCredentialRefused` says within two minutes.
    private static let refusedMost = Duration.seconds(90)

    private mutating func fail(_ pool: Int, atMost most: Duration?, now: MonotonicTime) {
        // Pushes that were in flight when the breaker opened say nothing new.
        guard !pools[pool].breaker.isBlocking(now: now) else { return }
        var least = Duration.zero
        if case .credentialRefused(let reason) = pools[pool].cause {
            least = AnswerTable.credentialWaitMin(reason)
        }
        pools[pool].breaker.failed(now: now, atLeast: least, atMost: most, random: &random)
        pools[pool].tokenHealth.parked(until: pools[pool].breaker.nextChange)
    }

    // MARK: What answers say of tokens

    /// APNs called a token bad.
    /// - Returns: whether to believe it.
    package mutating func believesRejection(_ route: RouteID, now: MonotonicTime) -> Bool {
        routes[Int(route.rawValue)].tokenGuard.tokenRejected(now: now)
    }

    /// APNs called a token dead.
    /// - Returns: whether to believe it.
    package mutating func believesDeath(_ route: RouteID, now: MonotonicTime) -> Bool {
        routes[Int(route.rawValue)].tokenGuard.tokenDied(now: now)
    }

    /// APNs called a token dead that was registered after its death.
    /// - Returns: whether it has said so often and for long enough to be believed after all.
    package mutating func struck(_ route: RouteID, token: [UInt8], now: MonotonicTime) -> Bool {
        routes[Int(route.rawValue)].strikes.strike(token: token, now: now)
    }

    /// Until when pushes to this token wait; nil if they need not. In that case the token's next
    /// push is about to be handed over and, if the token has a fault of its own, its other pushes
    /// wait for the answer.
    package mutating func heldOrHandedOver(
        _ token: UnsafeRawBufferPointer, _ route: RouteID, now: MonotonicTime
    ) -> MonotonicTime? {
        let pool = Int(routes[Int(route.rawValue)].pool.rawValue)
        guard !pools[pool].tokenHealth.isEmpty else { return nil }
        let hash = hash(token, route)
        if let until = pools[pool].tokenHealth.held(hash, now: now) { return until }
        pools[pool].tokenHealth.handedOver(hash, backoff: tokenBackoff, now: now)
        return nil
    }

    /// Until when pushes to this token wait; nil where they need not.
    package func held(
        _ token: UnsafeRawBufferPointer, _ route: RouteID, now: MonotonicTime
    ) -> MonotonicTime? {
        let pool = Int(routes[Int(route.rawValue)].pool.rawValue)
        guard !pools[pool].tokenHealth.isEmpty else { return nil }
        return pools[pool].tokenHealth.held(hash(token, route), now: now)
    }

    /// A push to this token was answered by anything but a 5xx.
    package mutating func recovered(_ token: UnsafeRawBufferPointer, _ route: RouteID) {
        let pool = Int(routes[Int(route.rawValue)].pool.rawValue)
        guard !pools[pool].tokenHealth.isEmpty else { return }
        pools[pool].tokenHealth.recovered(hash(token, route))
        // Only now: nearly all calls are about other tokens, and there may be many pools.
        if pools[pool].tokenHealth.isEmpty { lookForTokenFaults() }
    }

    /// Forgets the tokens without a recent fault. Called once a turn.
    package mutating func sweep(now: MonotonicTime) {
        guard hasTokenFaults else { return }
        for pool in pools.indices { pools[pool].tokenHealth.sweep(now: now) }
        lookForTokenFaults()
    }

    private mutating func lookForTokenFaults() {
        hasTokenFaults = pools.contains { !$0.tokenHealth.isEmpty }
    }

    /// The hash by which `TokenHealth` knows a token. A `TokenID` may name another token by the
    /// next time.
    private func hash(_ token: UnsafeRawBufferPointer, _ route: RouteID) -> UInt64 {
        StableHash.hash64(token, seed: seed &+ UInt64(route.rawValue))
    }

    // MARK: For people

    /// How many answers have refused the pool's credential since the start.
    package func credentialRefusals(of pool: PoolID) -> Int { pools[Int(pool.rawValue)].refusals }

    /// The breakers that let nothing through at the moment but their probes.
    package func tripped(_ routing: RoutingTable, now: MonotonicTime) -> [TrippedBreaker] {
        pools.indices.compactMap { trippedPool($0, routing, now) }
            + routes.indices.compactMap { trippedRoute($0, routing, now) }
    }

    /// Those among them that pushes of this route wait for.
    package func tripped(
        _ route: RouteID, _ routing: RoutingTable, now: MonotonicTime
    ) -> [TrippedBreaker] {
        let number = Int(route.rawValue)
        return [
            trippedPool(Int(routes[number].pool.rawValue), routing, now),
            trippedRoute(number, routing, now),
        ].compactMap { $0 }
    }

    private func trippedPool(
        _ number: Int, _ routing: RoutingTable, _ now: MonotonicTime
    ) -> TrippedBreaker? {
        if pools[number].breaker.isClosed { return nil }
        return TrippedBreaker(
            name: routing.pools[number].breakerName,
            cause: pools[number].cause, probeIn: probeIn(pools[number].breaker, now),
            unknownReason: pools[number].unknownReason)
    }

    private func trippedRoute(
        _ number: Int, _ routing: RoutingTable, _ now: MonotonicTime
    ) -> TrippedBreaker? {
        if routes[number].breaker.isClosed { return nil }
        return TrippedBreaker(
            name: routing.routes[number].breakerName,
            cause: routes[number].cause, probeIn: probeIn(routes[number].breaker, now),
            app: routing.name(of: routing.routes[number].app))
    }

    /// Whether the pool counts. One for broadcasts does from its first push on: who has no channels
    /// never hears of it, and nothing is shared out to it.
    package func isInUse(_ pool: PoolID) -> Bool {
        let state = Int(pool.rawValue)
        return !pools[state].isForBroadcasts || pools[state].lastHandedOverAt.nanoseconds > .min
    }

    /// The phase of each breaker of a pool in use, and of those of the routes that have ever opened:
    /// there may be thousands of routes.
    package var phases: [(of: BreakerOwner, phase: CircuitBreaker.Phase)] {
        let ofPools = pools.indices.map { PoolID(rawValue: UInt16($0)) }.filter { isInUse($0) }
            .map { (BreakerOwner.pool($0), pools[Int($0.rawValue)].breaker.phase) }
        let ofRoutes = routes.indices.filter { routes[$0].hasOpened }.map { index in
            (BreakerOwner.route(RouteID(rawValue: UInt16(index))), routes[index].breaker.phase)
        }
        return ofPools + ofRoutes
    }

    private func probeIn(_ breaker: CircuitBreaker, _ now: MonotonicTime) -> Duration? {
        let next = breaker.nextChange
        return next == .distantFuture ? nil : max(.zero, next - now)
    }
}

extension Route {
    fileprivate var breakerName: String { "APNs topic \(apnsTopic) in \(environment.name)" }
}

/// Whose circuit breaker it is: a credential's in one environment, or an APNs topic's there.
package enum BreakerOwner: Sendable, Hashable {
    case pool(PoolID)
    case route(RouteID)
}

/// A circuit breaker that is open or half-open.
package struct TrippedBreaker: Sendable, Equatable {
    package enum Cause: Sendable, Equatable {
        case credentialRefused(APNSReason)
        case topicRefused(APNSReason)
        /// Half of the last answers were 5xx or did not arrive.
        case ill
        case silent

        var isOfCredential: Bool { if case .credentialRefused = self { true } else { false } }
    }

    /// The breaker's name, for people.
    package var name: String
    package var cause: Cause
    /// How long until the next probe; nil while a probe is out.
    package var probeIn: Duration?
    /// The app of an APNs topic; nil of a credential.
    package var app: String?
    /// The reason as APNs spells it, where it is none that is known.
    package var unknownReason: String?

    package init(
        name: String, cause: Cause, probeIn: Duration?, app: String? = nil,
        unknownReason: String? = nil
    ) {
        self.name = name
        self.cause = cause
        self.probeIn = probeIn
        self.app = app
        self.unknownReason = unknownReason
    }
}
