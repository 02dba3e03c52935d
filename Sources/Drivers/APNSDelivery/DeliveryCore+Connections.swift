// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import LinuxIO
internal import Logging
internal import PushModel

/// A connection of a pool, or room for one: the part of it that the core uses.
protocol PooledConnection: ~Copyable {
    /// Makes a vacant one.
    init(pool: Int, settings: PoolSettings)

    var pool: Int { get }
    /// What it has answered of late.
    var health: ConnectionHealth { get set }
    /// The address that it is connected to, where the transport knows it.
    var address: SocketAddress? { get }
    /// Whether the connection is open for pushes or opening.
    var isWanted: Bool { get }
    /// Whether nothing is open or opening here.
    var isVacant: Bool { get }
    /// Whether the connection is open for pushes, now or when others have ended, and APNs has
    /// accepted the provider token on it.
    var isServing: Bool { get }
    /// How many pushes the connection may carry at once.
    var capacity: Int { get }
    var inFlightCount: Int { get }
    /// Whether the connection can take a push with a body of this size now.
    /// - Parameter isKeptBack: whether the push must leave free what is kept for prompt ones.
    func takes(bodyBytes: Int, isKeptBack: Bool) -> Bool
    /// The provider tokens that were sent on this connection.
    var shownTokens: ShownProviderTokens { get }

    /// Makes the connection take no new push.
    mutating func retire()
}

/// The connections of a thread at fixed addresses, those of one pool next to each other.
typealias ConnectionTable<Connection: ~Copyable> = UnsafeMutableBufferPointer<Connection>

/// Applies the state of the connections to pools and their pushes.
extension DeliveryCore {
    /// Makes the connections of all pools, all vacant. The caller must deinitialize and deallocate them.
    func makeConnections<Connection: PooledConnection & ~Copyable>() -> ConnectionTable<Connection>
    {
        let count = pools.indices.last.map { pools[$0].connections.upperBound } ?? 0
        let connections = ConnectionTable<Connection>.allocate(capacity: count)
        for pool in pools.indices {
            for index in pools[pool].connections {
                connections.initializeElement(
                    at: index, to: Connection(pool: pool, settings: pools[pool].settings))
            }
        }
        return connections
    }

    /// Gets this turn's provider token for each pool with something to send, and retires the
    /// connections that must not see it, because they have seen another key, or another token too
    /// recently. If a token cannot be made, the pool has none and sends nothing.
    mutating func refreshTokens<Connection: PooledConnection & ~Copyable>(
        for connections: ConnectionTable<Connection>
    ) {
        for pool in pools.indices where !pools[pool].waiting.isEmpty {
            do {
                let token = try pools[pool].settings.providerTokens.current(now: now)
                pools[pool].token = token
                for index in pools[pool].connections {
                    let mayGoOn = connections[index].shownTokens.allow(
                        key: token.keyGeneration, generation: token.generation, at: now.monotonic)
                    if !mayGoOn { connections[index].retire() }
                }
            } catch {
                pools[pool].token = nil
                pools[pool].log.write(
                    .providerToken, .error, "there is no provider token", ["cause": "\(error)"],
                    remedy: error.remedy, at: now.monotonic)
            }
        }
    }

    /// Gives waiting pushes back to the planner: all of them while draining or stopping, otherwise
    /// those that have waited longer than a pool may keep them. The cause of the wait does not
    /// matter (an open connection may have a stream limit of 0, or an answer every ten seconds):
    /// only the planner can defer a waiting push.
    mutating func giveBackWaiting() {
        for pool in pools.indices where !pools[pool].waiting.isEmpty {
            giveBackWaiting(of: pool, isPatient: false)
            giveBackWaiting(of: pool, isPatient: true)
        }
    }

    private mutating func giveBackWaiting(of pool: Int, isPatient: Bool) {
        let limit = now.monotonic - pools[pool].settings.limits.waitMax
        while !pools[pool].waiting[isPatient: isPatient].isEmpty {
            let slot = pools[pool].waiting[isPatient: isPatient].first
            guard phase != .running || states[Int(slot)].since <= limit else { break }
            pools[pool].waiting[isPatient: isPatient].remove(slot, states)
            outcomes.append(PushOutcome(slot: slot, kind: .unprocessed))
        }
    }

    /// When `giveBackWaiting` has to be called again, at the latest.
    func nextGiveBack() -> MonotonicTime {
        var next = MonotonicTime.distantFuture
        for pool in pools.indices where !pools[pool].waiting.isEmpty {
            let oldest = min(
                since(pools[pool].waiting.prompt), since(pools[pool].waiting.patient))
            next = min(next, oldest + pools[pool].settings.limits.waitMax)
        }
        return next
    }

    /// Since when the first push of the list waits.
    private func since(_ list: SlotList) -> MonotonicTime {
        list.isEmpty ? .distantFuture : states[Int(list.first)].since
    }

    /// Counts something that has become of a connection of the pool.
    func count(_ what: WritableKeyPath<ConnectionCounts, UInt64>, of pool: Int) {
        port.counters.count(what, of: pools[pool].settings.id)
    }

    /// Delays the pool's next connect, with back-off and jitter, because the last one failed.
    ///
    /// - Parameter hasReachedAPNs: whether it was established, and nothing was accepted on it.
    mutating func holdBackConnects(of pool: Int, hasReachedAPNs: Bool) {
        pools[pool].connectFailed(
            at: now.monotonic, hasReachedAPNs: hasReachedAPNs, random: &random)
    }

    /// The same for a connect that never was a connection.
    ///
    /// - Parameter why: what an operator is told; without a secret.
    mutating func holdBackConnects(of pool: Int, because why: String) {
        port.counters.connectFailed(why, of: pools[pool].settings.id)
        holdBackConnects(of: pool, hasReachedAPNs: false)
    }

    /// Tells the planner how many pushes each pool takes, if that has changed, publishes the state of
    /// each pool, and adjusts the number of its connections.
    func measurePools<Connection: PooledConnection & ~Copyable>(
        of connections: ConnectionTable<Connection>
    ) {
        for pool in pools.indices {
            var carried = 0
            var serving = 0
            var streams = 0
            for index in pools[pool].connections {
                let capacity = connections[index].capacity
                carried += capacity
                guard connections[index].isServing else { continue }
                serving += 1
                streams += capacity
            }
            resize(
                pool,
                for: PoolSizing.Load(
                    waiting: pools[pool].waiting.count, inFlight: pools[pool].inFlight,
                    serving: serving, streams: streams, isFull: isFull(pool, connections)),
                connections)
            publish(capacity: phase == .running ? Self.room(carried) : 0, of: pool)
            pools[pool].turned(at: now.monotonic)
            port.counters.publish(
                PoolStreams(
                    connections: serving, inFlight: pools[pool].inFlight, limit: streams,
                    failedConnects: pools[pool].failuresSinceIdle,
                    hasReachedAPNs: pools[pool].hasReachedAPNs, ill: pools[pool].ill),
                of: pools[pool].settings.id)
        }
    }

    /// Whether no connection would take the push that is next.
    func isFull<Connection: PooledConnection & ~Copyable>(
        _ pool: Int, _ connections: ConnectionTable<Connection>
    ) -> Bool {
        guard !pools[pool].waiting.isEmpty else { return false }
        let part = pools[pool].waiting.next
        let slot = pools[pool].waiting[isPatient: part.isPatient].first
        let bodyBytes = Int(slab.push(slot).pointee.bodyBytes)
        let isKeptBack = pools[pool].waiting.isKeptBack(part, at: now.monotonic)
        for index in pools[pool].connections
        where connections[index].isServing
            && connections[index].takes(bodyBytes: bodyBytes, isKeptBack: isKeptBack)
        {
            return false
        }
        return true
    }

    /// The pushes that a pool takes: what its connections carry, and an eighth more (at least 32),
    /// so that a freed stream finds its next push here instead of waiting for the planner.
    private static func room(_ carried: Int) -> Int {
        carried + max(ConnectionPool.coldCapacity, carried / 8)
    }

    private func publish(capacity: Int, of pool: Int) {
        guard capacity != pools[pool].publishedCapacity else { return }
        pools[pool].publishedCapacity = capacity
        port.publish(capacity: capacity, of: pools[pool].settings.id)
    }

    private func resize<Connection: PooledConnection & ~Copyable>(
        _ pool: Int, for load: PoolSizing.Load, _ connections: ConnectionTable<Connection>
    ) {
        let before = pools[pool].sizing.wanted
        pools[pool].sizing.turned(load, at: now.monotonic)
        let wanted = pools[pool].sizing.wanted
        if wanted > before {
            let milliseconds = pools[pool].sizing.meanAnswer.nanoseconds / 1_000_000
            pools[pool].log.write(
                .resized, .info, "more connections are wanted",
                [
                    "connections": "\(wanted)", "streams": "\(load.streams)",
                    "answerMilliseconds": "\(milliseconds)",
                ], at: now.monotonic)
        } else if load.serving > wanted {
            leastLoaded(of: pool, connections).map { connections[$0].retire() }
        }
    }

    private func leastLoaded<Connection: PooledConnection & ~Copyable>(
        of pool: Int, _ connections: ConnectionTable<Connection>
    ) -> Int? {
        pools[pool].connections.filter { connections[$0].isServing }
            .min { connections[$0].inFlightCount < connections[$1].inFlightCount }
    }

    func isEmpty<Connection: PooledConnection & ~Copyable>(
        _ connections: ConnectionTable<Connection>
    ) -> Bool {
        for index in pools.indices where !pools[index].waiting.isEmpty { return false }
        for index in connections.indices where !connections[index].isVacant { return false }
        for index in pools.indices {
            precondition(
                pools[index].inFlight == 0, "a pool without a connection has no pushes in flight")
        }
        return !port.hasSubmissions
    }
}
