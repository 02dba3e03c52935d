// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import Synchronization

/// What one delivery thread has done since it started. The counts only grow.
package struct TransportCounts: Sendable, Equatable {
    package var requests: UInt64 = 0
    /// Requests that APNs refused unprocessed.
    package var refused: UInt64 = 0
    /// Requests whose streams APNs reset, other than to refuse them.
    package var resets: UInt64 = 0
    package var timeouts: UInt64 = 0
    package var bytesSent: UInt64 = 0
    package var bytesReceived: UInt64 = 0

    package init() {}
}

/// What has become of the connections of a pool since the start. The counts only grow.
package struct ConnectionCounts: Sendable, Equatable {
    package var connects: UInt64 = 0
    /// Connects that failed, whatever the cause. The next two count two of the causes.
    package var connectFailures: UInt64 = 0
    package var certificatesRefused: UInt64 = 0
    package var http2Refused: UInt64 = 0
    package var goAways: UInt64 = 0
    /// Connections that ended while they had requests in flight.
    package var connectionsLost: UInt64 = 0
    /// Connections that were replaced because their requests failed.
    package var retiredForFailures: UInt64 = 0
    /// Connections that were replaced because they answered nothing while others did.
    package var retiredForSilence: UInt64 = 0

    package init() {}

    package mutating func add(_ other: ConnectionCounts) {
        connects += other.connects
        connectFailures += other.connectFailures
        certificatesRefused += other.certificatesRefused
        http2Refused += other.http2Refused
        goAways += other.goAways
        connectionsLost += other.connectionsLost
        retiredForFailures += other.retiredForFailures
        retiredForSilence += other.retiredForSilence
    }
}

/// The connections of one pool on one delivery thread.
package struct PoolStreams: Sendable, Equatable {
    /// The connections on which APNs has accepted the provider token.
    package var connections = 0
    /// The requests in flight, those on connections that are about to end included.
    package var inFlight = 0
    /// How many requests `connections` may carry at once.
    package var limit = 0
    /// The connects in a row on none of which APNs has accepted the provider token, since the pool
    /// last wanted no connection.
    package var failedConnects = 0
    /// Whether the latest of them was established, so that APNs can be reached.
    package var hasReachedAPNs = false
    /// How many connections have had faults in at least three of their last eight requests.
    package var ill = 0

    package init() {}

    package init(
        connections: Int, inFlight: Int, limit: Int, failedConnects: Int, hasReachedAPNs: Bool,
        ill: Int
    ) {
        self.ill = ill
        self.connections = connections
        self.inFlight = inFlight
        self.limit = limit
        self.failedConnects = failedConnects
        self.hasReachedAPNs = hasReachedAPNs
    }
}

/// Publishes what a delivery thread has done, and the state of its pools, to other threads, once
/// per turn.
package final class TransportCounters: Sendable {
    private let counts = Mutex(TransportCounts())
    private let connecting = Mutex(LatencyHistogram())
    private let pools: [PoolGauge]

    /// - Parameter pools: the number of pools.
    package init(pools: Int) { self.pools = (0..<pools).map { _ in PoolGauge() } }

    package var snapshot: TransportCounts { counts.withLock { $0 } }

    /// How long each connect took that succeeded: name look-up, TCP and TLS.
    package var connectTimes: LatencyHistogram { connecting.withLock { $0 } }

    package func connections(of pool: PoolID) -> ConnectionCounts {
        pools[Int(pool.rawValue)].connectionCounts.withLock { $0 }
    }

    package func streams(of pool: PoolID) -> PoolStreams { pools[Int(pool.rawValue)].streams }

    /// Why the latest connect of a pool failed that never was a connection, on one line of at most
    /// `connectErrorMax` characters; nil before the first. It stays when a later connect succeeds.
    package func connectError(of pool: PoolID) -> String? {
        pools[Int(pool.rawValue)].connectError.withLock { $0 }
    }

    /// Four addresses, each with its error.
    private static let connectErrorMax = 300

    // MARK: The delivery thread's side

    func publish(_ new: TransportCounts) {
        counts.withLock { $0 = new }
    }

    func connected(after time: Duration) {
        connecting.withLock { $0.add(nanoseconds: time.nanoseconds) }
    }

    func publish(_ streams: PoolStreams, of pool: PoolID) {
        pools[Int(pool.rawValue)].set(streams)
    }

    /// Counts something that has become of a connection of a pool, which is seldom.
    func count(_ what: WritableKeyPath<ConnectionCounts, UInt64>, of pool: PoolID) {
        pools[Int(pool.rawValue)].connectionCounts.withLock { $0[keyPath: what] &+= 1 }
    }

    func connectFailed(_ why: String, of pool: PoolID) {
        let line = why.printable
        let bounded =
            line.count > Self.connectErrorMax ? line.prefix(Self.connectErrorMax - 1) + "…" : line
        pools[Int(pool.rawValue)].connectError.withLock { $0 = bounded }
    }

    /// Values that may be of different turns.
    private final class PoolGauge: Sendable {
        private let connections = Atomic<Int>(0)
        private let inFlight = Atomic<Int>(0)
        private let limit = Atomic<Int>(0)
        private let failedConnects = Atomic<Int>(0)
        private let hasReachedAPNs = Atomic<Bool>(false)
        private let ill = Atomic<Int>(0)
        let connectError = Mutex<String?>(nil)
        let connectionCounts = Mutex(ConnectionCounts())

        var streams: PoolStreams {
            PoolStreams(
                connections: connections.load(ordering: .relaxed),
                inFlight: inFlight.load(ordering: .relaxed),
                limit: limit.load(ordering: .relaxed),
                failedConnects: failedConnects.load(ordering: .relaxed),
                hasReachedAPNs: hasReachedAPNs.load(ordering: .relaxed),
                ill: ill.load(ordering: .relaxed))
        }

        func set(_ streams: PoolStreams) {
            connections.store(streams.connections, ordering: .relaxed)
            inFlight.store(streams.inFlight, ordering: .relaxed)
            limit.store(streams.limit, ordering: .relaxed)
            failedConnects.store(streams.failedConnects, ordering: .relaxed)
            hasReachedAPNs.store(streams.hasReachedAPNs, ordering: .relaxed)
            ill.store(streams.ill, ordering: .relaxed)
        }
    }
}
