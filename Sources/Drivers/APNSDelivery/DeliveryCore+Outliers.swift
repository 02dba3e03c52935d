// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import LinuxIO
internal import Logging
internal import PushModel

/// Compares the connections of a pool, and replaces one that fails while the others do not.
extension DeliveryCore {
    /// A request on the connection failed, or was refused.
    /// - Returns: whether it was a fault that is the connection's, and says nothing of the pool.
    mutating func failed<Connection: PooledConnection & ~Copyable>(
        _ failure: ConnectionHealth.Failure, _ slot: PushSlot, on index: Int,
        of connections: ConnectionTable<Connection>
    ) -> Bool {
        let pool = connections[index].pool
        let token = StableHash.hash64(UnsafeRawBufferPointer(slab.token(slot)), seed: 0)
        connections[index].health.failed(failure, token: token)
        pools[pool].outliers.failed(failure, isLeft: !connections[index].isWanted)
        pools[pool].lastFailed = index
        guard failure == .fault else { return false }
        // What is left on a connection that was retired says nothing of those that it was left for.
        guard connections[index].isWanted else { return true }
        // A lone fault may be the token's, or the first of the pool's.
        return connections[index].health.isFaulting
            && !pools[pool].outliers.isOfPool(census(of: pool, connections), at: now.monotonic)
    }

    /// A connection is opened: what is presumed of it.
    mutating func presumption<Connection: PooledConnection & ~Copyable>(
        ofPool pool: Int, _ connections: ConnectionTable<Connection>
    ) -> ConnectionHealth {
        let wanted = census(of: pool, connections).connections
        return pools[pool].outliers.opened(others: wanted)
    }

    /// A connection ended with requests in flight.
    mutating func lostConnection<Connection: PooledConnection & ~Copyable>(
        _ index: Int, of connections: ConnectionTable<Connection>
    ) {
        let pool = connections[index].pool
        let left = census(of: pool, connections).connections - (connections[index].isWanted ? 1 : 0)
        pools[pool].outliers.lost(left: left)
    }

    /// Retires the connections that fail, or are silent, while the others are not.
    mutating func judgeConnections<Connection: PooledConnection & ~Copyable>(
        _ connections: ConnectionTable<Connection>
    ) {
        guard phase == .running else { return }
        for pool in pools.indices where pools[pool].outliers.isDue(at: now.monotonic) {
            forgetOld(pool, connections)
            var census = census(of: pool, connections)
            if pools[pool].outliers.began(census, at: now.monotonic) {
                for index in pools[pool].connections { connections[index].health.forget() }
                census = self.census(of: pool, connections)
            }
            pools[pool].ill = census.faulting
            for index in pools[pool].connections where connections[index].isWanted {
                let judgement = pools[pool].outliers.judge(
                    connections[index].health, inFlight: connections[index].inFlightCount,
                    in: census, at: now.monotonic)
                connections[index].health.isAvoided = judgement != .keep
                guard case .retire(let cause) = judgement else { continue }
                replace(index, cause, left: census.connections - 1, connections)
                break
            }
        }
    }

    /// How long what was answered tells of a connection: one that gets nothing for its failures must
    /// get something again.
    private static var memory: Duration { .seconds(60) }

    private func forgetOld<Connection: PooledConnection & ~Copyable>(
        _ pool: Int, _ connections: ConnectionTable<Connection>
    ) {
        for index in pools[pool].connections where connections[index].health.answers > 0 {
            let silence = now.monotonic - connections[index].health.answeredAt
            if silence >= Self.memory { connections[index].health.forget() }
        }
    }

    private mutating func replace<Connection: PooledConnection & ~Copyable>(
        _ index: Int, _ cause: OutlierDetection.Cause, left: Int,
        _ connections: ConnectionTable<Connection>
    ) {
        let pool = connections[index].pool
        let health = connections[index].health
        pools[pool].outliers.replaced(left: left, at: now.monotonic)
        if let address = connections[index].address {
            pools[pool].shun(address, at: now.monotonic)
        }
        connections[index].retire()
        count(cause == .silence ? \.retiredForSilence : \.retiredForFailures, of: pool)
        let why =
            cause == .silence
            ? "no answer for \((now.monotonic - health.quietSince).components.seconds) s"
            : "\(health.failures) of its last \(health.answers) requests have failed"
        pools[pool].log.write(
            .replaced, .warning, "replacing a connection",
            [
                "address": "\(connections[index].address.map { "\($0)" } ?? "unknown")",
                "cause": "\(why)",
                "others": "\(cause == .allFail ? "they fail, too" : "\(left) answer")",
            ],
            remedy: cause == .allFail
                ? nil : "wait; if it goes on, look at what is between here and that address",
            at: now.monotonic)
    }

    private func census<Connection: PooledConnection & ~Copyable>(
        of pool: Int, _ connections: ConnectionTable<Connection>
    ) -> OutlierDetection.Census {
        var census = OutlierDetection.Census()
        for index in pools[pool].connections where connections[index].isWanted {
            census.add(connections[index].health)
        }
        return census
    }
}
