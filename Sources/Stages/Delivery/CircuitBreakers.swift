// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
package import PushModel

/// The circuit breakers of all pools and routes, with what opens them: the health of each pool, the
/// guard on each route's complaints about tokens, and the tokens that have a fault of their own.
///
/// A push is sent only while the breakers of both its pool and its route let it. What is in flight
/// is counted, so that a breaker that is half-open lets one probe out and one that has just closed
/// starts slowly.
package struct CircuitBreakers: ~Copyable {
    var routes: [RouteState]
    var pools: [PoolState]
    /// Whether any pool has a token with a fault. It is asked for each push, where a look at the
    /// pool's dictionary would cost a retain and a release.
    package internal(set) var hasTokenFaults = false
    /// How often the breaker of a pool has opened since the start.
    package internal(set) var poolsOpened = 0
    /// How often the breaker of a route has opened since the start.
    package internal(set) var routesOpened = 0

    /// Backs off tokens with a fault of their own.
    var tokenBackoff: Backoff
    /// How many pushes each quota lets go; the first two are without limit and none.
    var quotas = [SendingQuota.unlimited, SendingQuota.none]
    /// Whether an operator drops the pushes of any route.
    package internal(set) var hasDrops = false
    private var limits: TokenGuard.Limits
    let seed: UInt64
    var random: SplitMix64
    private let byAddress = PassedByAddress()

    struct RouteState {
        let pool: PoolID
        var breaker: CircuitBreaker
        var tokenGuard: TokenGuard
        var strikes = StrikeBook()
        var inFlight = 0
        /// What opened the breaker last.
        var cause = TrippedBreaker.Cause.ill
        var hasOpened = false
        /// The position of the quota that an operator has given the route.
        var quota = SendingQuota.unlimitedRow
        /// Whether an operator drops the route's pushes.
        var isDropping = false
    }

    struct PoolState {
        let isForBroadcasts: Bool
        var breaker: CircuitBreaker
        var health = PoolHealth()
        var tokenHealth = TokenHealth()
        var accepted: UInt64 = 0
        /// How many answers have refused the credential.
        var refusals = 0
        var inFlight = 0
        /// What opened the breaker last.
        var cause = TrippedBreaker.Cause.ill
        /// The reason of the last refusal as APNs spells it, where it is none that is known.
        var unknownReason: String?
        var lastHandedOverAt = MonotonicTime(nanoseconds: .min)
    }

    /// - Parameters:
    ///   - backoff: how long breakers stay open.
    ///   - tokenBackoff: how long tokens wait that have a fault of their own.
    ///   - seed: seeds the jitter and the tokens' hashes.
    package init(
        routing: RoutingTable, backoff: Backoff, tokenBackoff: Backoff, limits: TokenGuard.Limits,
        seed: UInt64
    ) {
        routes = routing.routes.map { route in
            RouteState(
                pool: route.pool, breaker: CircuitBreaker(backoff: backoff),
                tokenGuard: TokenGuard(limits: limits))
        }
        pools = routing.pools.map {
            PoolState(
                isForBroadcasts: $0.isForBroadcasts, breaker: CircuitBreaker(backoff: backoff))
        }
        self.tokenBackoff = tokenBackoff
        self.limits = limits
        self.seed = seed
        random = SplitMix64(seed: seed)
    }

    /// Adopts changed settings. A breaker that is open stays open for as long as it was to. If the
    /// limits change, each route gathers a new window of answers before it believes a 400.
    package mutating func adopt(
        backoff: Backoff, tokenBackoff: Backoff, limits: TokenGuard.Limits
    ) {
        for route in routes.indices { routes[route].breaker.backoff = backoff }
        for pool in pools.indices { pools[pool].breaker.backoff = backoff }
        self.tokenBackoff = tokenBackoff
        guard limits != self.limits else { return }
        self.limits = limits
        for route in routes.indices { routes[route].tokenGuard = TokenGuard(limits: limits) }
    }

    /// Whether the breaker of any pool is not closed.
    package var isAnyPoolOpen: Bool { pools.contains { !$0.breaker.isClosed } }

    package var poolCount: Int { pools.count }
    package func pool(of route: RouteID) -> PoolID { routes[Int(route.rawValue)].pool }

    // MARK: Who may be sent to

    /// How many more pushes of this pool may be handed over now.
    package mutating func allowance(of pool: PoolID, now: MonotonicTime) -> Int {
        let row = Int(pool.rawValue)
        return max(0, pools[row].breaker.allowance(now: now) - pools[row].inFlight)
    }

    /// Whether the route's breaker and quota let one more push go, as far as the route alone is
    /// concerned.
    package mutating func allowsOneMore(_ route: RouteID, now: MonotonicTime) -> Bool {
        let row = Int(route.rawValue)
        return routes[row].breaker.allowance(now: now) > routes[row].inFlight
            && (routes[row].quota == SendingQuota.unlimitedRow
                || quotas[routes[row].quota].left > 0)
    }

    /// Whether the breakers of this route and of its pool are closed, and no operator has paused it.
    package func isClosed(_ route: RouteID) -> Bool {
        routes[Int(route.rawValue)].quota != SendingQuota.noneRow && areClosed(route)
    }

    /// Whether the breakers of this route and of its pool are closed.
    package func areClosed(_ route: RouteID) -> Bool {
        let state = Int(route.rawValue)
        return routes[state].breaker.isClosed
            && pools[Int(routes[state].pool.rawValue)].breaker.isClosed
    }

    /// Whether the breaker of this pool is closed.
    package func isClosed(_ pool: PoolID) -> Bool { pools[Int(pool.rawValue)].breaker.isClosed }

    /// Whether no push of this route may be sent now, not even a probe.
    package func isBlocking(_ route: RouteID, now: MonotonicTime) -> Bool {
        let state = Int(route.rawValue)
        return routes[state].breaker.isBlocking(now: now) || quotas[routes[state].quota].left <= 0
            || pools[Int(routes[state].pool.rawValue)].breaker.isBlocking(now: now)
    }

    /// The earliest time from `time` on at which a push of this route may go.
    package func sendable(_ route: RouteID, from time: MonotonicTime) -> MonotonicTime {
        let state = Int(route.rawValue)
        let changes = [
            routes[state].breaker.nextChange,
            pools[Int(routes[state].pool.rawValue)].breaker.nextChange,
        ]
        return changes.reduce(time) { $1 < .distantFuture ? max($0, $1) : $0 }
    }

    /// When the first of the breakers that block now may let a push through.
    package func nextDue(now: MonotonicTime) -> MonotonicTime {
        var due = MonotonicTime.distantFuture
        for pool in pools where pool.breaker.nextChange > now {
            due = min(due, pool.breaker.nextChange)
        }
        for route in routes where route.breaker.nextChange > now {
            due = min(due, route.breaker.nextChange)
        }
        return due
    }

    // MARK: Pushes go out

    /// A push of this route was taken out of its queue, to be handed over.
    package mutating func taken(_ route: RouteID) {
        let row = Int(route.rawValue)
        routes[row].inFlight += 1
        if routes[row].quota != SendingQuota.unlimitedRow { spend(1, of: routes[row].quota) }
    }

    /// A push that was taken is not handed over after all.
    package mutating func notSent(_ route: RouteID) {
        let row = Int(route.rawValue)
        routes[row].inFlight -= 1
        if routes[row].quota != SendingQuota.unlimitedRow { spend(-1, of: routes[row].quota) }
        assert(routes[row].inFlight >= 0, "a push that is not sent was taken before")
    }

    /// The pool's pushes that were taken have been handed over, `count` of them.
    package mutating func handedOver(_ count: Int, of pool: PoolID, now: MonotonicTime) {
        assert(count >= 0, "the number of pushes handed over is at least 0")
        let row = Int(pool.rawValue)
        pools[row].inFlight += count
        if count > 0 { pools[row].lastHandedOverAt = now }
    }

    /// Whether the pool has been handed a push since `time`.
    package func wasUsed(_ pool: PoolID, since time: MonotonicTime) -> Bool {
        pools[Int(pool.rawValue)].lastHandedOverAt > time
    }

    /// The push was accepted.
    package mutating func accepted(_ route: RouteID, token: TokenID, now: MonotonicTime) {
        let row = Int(route.rawValue)
        routes[row].inFlight -= 1
        routes[row].tokenGuard.accepted(now: now)
        routes[row].breaker.recovered()
        let pool = Int(routes[row].pool.rawValue)
        pools[pool].inFlight -= 1
        assert(
            pools[pool].inFlight >= 0 && routes[row].inFlight >= 0,
            "no more pushes come back than were handed over")
        pools[pool].accepted &+= 1
        pools[pool].breaker.recovered()
        _ = pools[pool].health.received(.healthy, of: token, now: now)
    }

    /// The push has come back with any outcome except an acceptance.
    package mutating func landed(_ route: RouteID) {
        let row = Int(route.rawValue)
        let pool = Int(routes[row].pool.rawValue)
        routes[row].inFlight -= 1
        pools[pool].inFlight -= 1
        assert(
            pools[pool].inFlight >= 0 && routes[row].inFlight >= 0,
            "no more pushes come back than were handed over")
    }
}

extension CircuitBreakers {
    package func checkInvariants() {
        for (number, pool) in pools.enumerated() {
            let inFlight = routes.reduce(0) {
                Int($1.pool.rawValue) == number ? $0 + $1.inFlight : $0
            }
            precondition(
                inFlight == pool.inFlight,
                "what is in flight in pool \(number) is the sum of its routes")
        }
        precondition(
            routes.allSatisfy { $0.inFlight >= 0 },
            "no more pushes come back than were handed over")
        precondition(
            hasTokenFaults == pools.contains { !$0.tokenHealth.isEmpty },
            "hasTokenFaults says whether any pool has tokens with a fault")
    }
}
