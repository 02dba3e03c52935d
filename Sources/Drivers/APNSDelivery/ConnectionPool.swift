// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import LinuxIO
internal import Logging
internal import OpenSSL
internal import PushModel

/// One pool of a delivery thread: what waits to be sent, and when it may connect.
struct ConnectionPool: ~Copyable {
    let settings: PoolSettings
    /// The positions of the pool's connections in the thread's table.
    let connections: Range<Int>
    var waiting = WaitingPushes()
    private(set) var inFlight = 0
    /// The provider token that this turn sends with; nil if none could be made.
    var token: ProviderToken?
    private var tls: (context: TLSContext, madeAt: MonotonicTime)?
    /// No connection is opened before this time.
    var connectAt = MonotonicTime(nanoseconds: 0)
    /// Consecutive connects on none of which APNs has accepted the provider token.
    private(set) var failures = 0
    /// Those of them since the pool was last idle. APNs may have been back for hours when the next
    /// push comes, so that earlier ones say nothing of it; the back-off goes on from them, since
    /// otherwise a push a minute would have it begin anew each time.
    private(set) var failuresSinceIdle = 0
    /// Whether the latest of them was established.
    private(set) var hasReachedAPNs = false
    /// Rotates through the addresses of a host, so that connections spread over them.
    private var addressTurn = 0
    /// When the pool last had something to send.
    var usedAt: MonotonicTime
    var publishedCapacity = -1
    var log: ConnectionLog
    var sizing: PoolSizing
    var outliers: OutlierDetection
    /// How many connections had faults when they were last judged.
    var ill = 0
    /// The index of the connection that failed last: among equals another is chosen next.
    var lastFailed: Int
    /// Addresses of which a connection was replaced because it failed, and until when others are
    /// preferred.
    private var shunned: [(address: SocketAddress, until: MonotonicTime)] = []
    private let backoff: Backoff

    /// How long after its last push a pool keeps replacing lost connections. An idle pool does not
    /// reconnect: Apple treats repeated opening and closing of connections as an attack.
    static let idleAfter = Duration.seconds(60)
    private static let rootsAgeMax = Duration.seconds(60)
    private static let shunnedFor = Duration.seconds(600)
    private static let shunnedMax = 8
    /// How many pushes a pool takes while it has no open connection, so that they are at hand once
    /// one is open.
    static let coldCapacity = 32

    init(settings: PoolSettings, connections: Range<Int>, log: ConnectionLog, at now: MonotonicTime)
    {
        precondition(
            connections.count == Self.connectionsNeeded(settings),
            "each pool has exactly the connections that it needs")
        precondition(settings.connections.lowerBound > 0, "a pool has at least one connection")
        self.settings = settings
        self.connections = connections
        self.log = log
        // Pushes to devices are expected, and find a connection. Of channels there may be none.
        usedAt = settings.isForBroadcasts ? now - Self.idleAfter : now
        sizing = PoolSizing(bounds: settings.connections, at: now)
        backoff = Backoff(
            least: settings.limits.reconnectMin, most: settings.limits.reconnectMax)
        outliers = OutlierDetection(backoff: backoff)
        lastFailed = connections.upperBound - 1
    }

    /// The entries of the table that a pool needs: one for each connection of the most, one for each of
    /// the fewest while replaced connections drain, and two more, so that a series of GOAWAYs leaves the pool
    /// with a connection.
    static func connectionsNeeded(_ settings: PoolSettings) -> Int {
        settings.connections.upperBound + settings.connections.lowerBound + 2
    }

    /// Notes that this many pushes were given to the pool's connections.
    mutating func sent(_ count: Int) {
        assert(count >= 0, "the number of pushes sent is at least 0")
        inFlight &+= count
    }

    /// Notes that this many pushes in flight got an outcome or went back to the queue.
    mutating func returned(_ count: Int) {
        inFlight &-= count
        assert(inFlight >= 0, "no more pushes come back than were sent")
    }

    func wantsConnections(at now: MonotonicTime) -> Bool {
        !waiting.isEmpty || inFlight > 0 || now - usedAt < Self.idleAfter
    }

    /// The TLS context for a new connection. The trusted roots are read from disk again when they
    /// are older than a minute, since they are replaced while a worker runs for months. If they
    /// cannot be read, the previous ones stay in use.
    mutating func trust(at now: MonotonicTime) throws(TLSError) -> TLSContext {
        if let tls, now - tls.madeAt < Self.rootsAgeMax { return tls.context }
        do {
            let context = try TLSContext.client(caFile: settings.caFile)
            tls = (context, now)
            return context
        } catch {
            guard let tls else { throw error }
            log.write(
                .rootsUnreadable, .error, "cannot read the trusted roots again",
                ["cause": "\(error)"],
                remedy: "restore the CA file; the roots read before stay in use", at: now)
            return tls.context
        }
    }

    /// Prefers other addresses than this one for a while.
    mutating func shun(_ address: SocketAddress, at now: MonotonicTime) {
        shunned.removeAll { $0.until <= now || $0.address == address }
        if shunned.count == Self.shunnedMax { shunned.removeFirst() }
        shunned.append((address, now + Self.shunnedFor))
    }

    /// The addresses in the order in which they are tried: each connect begins with another one, and
    /// those that are shunned come last.
    mutating func turn(_ addresses: [SocketAddress], at now: MonotonicTime) -> [SocketAddress] {
        let first = addressTurn % addresses.count
        addressTurn += 1
        let turned = addresses[first...] + addresses[..<first]
        let isShunned = { [shunned] (address: SocketAddress) in
            shunned.contains { $0.address == address && $0.until > now }
        }
        return turned.filter { !isShunned($0) } + turned.filter(isShunned)
    }

    /// The index of the connection that carries the least, by `load`, which is nil where none can take a
    /// push.
    func leastLoaded(_ load: (Int) -> Int?) -> Int? {
        var best: Int?
        var least = Int.max
        var index = lastFailed
        for _ in 0..<connections.count {
            index = index &+ 1 == connections.upperBound ? connections.lowerBound : index &+ 1
            if let load = load(index), load < least {
                least = load
                best = index
            }
        }
        return best
    }

    mutating func connectFailed(
        at now: MonotonicTime, hasReachedAPNs: Bool, random: inout SplitMix64
    ) {
        connectAt = now + backoff.delay(attempt: failures, random: &random)
        failures += 1
        failuresSinceIdle += 1
        self.hasReachedAPNs = hasReachedAPNs
    }

    mutating func authenticated() {
        failures = 0
        failuresSinceIdle = 0
        hasReachedAPNs = false
    }

    /// Notes a turn of the thread, of which there is at least one while the pool is idle: that of
    /// its next connect, which is then left out.
    mutating func turned(at now: MonotonicTime) {
        if !wantsConnections(at: now) { failuresSinceIdle = 0 }
    }
}
