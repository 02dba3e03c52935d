// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Logging
internal import OpenSSL
internal import PushModel

/// One pool of a delivery thread: what waits to be sent, and when it may connect.
struct ConnectionPool: ~Copyable {
    let settings: PoolSettings
    /// The pool's places in the thread's table of connections.
    let places: Range<Int>
    var waiting = SlotList()
    private(set) var inFlight = 0
    /// The token of this turn.
    var token: ProviderToken?
    private var tls: (context: TLSContext, madeAt: MonotonicTime)?
    /// Connects are held back until then.
    var connectAt = MonotonicTime(nanoseconds: 0)
    /// Connects in a row that led to no accepted request.
    var failures = 0
    /// Takes the addresses of a host in turn.
    var addressTurn = 0
    /// When there was last something to send.
    var usedAt: MonotonicTime
    var publishedCapacity = -1
    var log: ConnectionLog
    var sizing: PoolSizing
    private let backoff: Backoff

    /// A pool without traffic does not reconnect for its own sake: opening and closing is what
    /// Apple calls an attack. A busy one does so ahead of need.
    static let idleAfter = Duration.seconds(60)
    private static let rootsAgeMax = Duration.seconds(60)
    /// What a pool without an open connection takes all the same, so that its first pushes are
    /// at hand when one is open.
    static let coldCapacity = 32

    init(settings: PoolSettings, places: Range<Int>, log: ConnectionLog, at now: MonotonicTime) {
        precondition(
            places.count == Self.placesNeeded(settings), "each pool has the places it needs")
        precondition(settings.connections.lowerBound > 0, "a pool without a connection")
        self.settings = settings
        self.places = places
        self.log = log
        usedAt = now
        sizing = PoolSizing(bounds: settings.connections, at: now)
        backoff = Backoff(
            least: settings.limits.reconnectMin, most: settings.limits.reconnectMax)
    }

    /// Places for the most connections, for as many that drain after being replaced as there are
    /// at least, and two more, so that one GOAWAY after another does not leave a pool without.
    static func placesNeeded(_ settings: PoolSettings) -> Int {
        settings.connections.upperBound + settings.connections.lowerBound + 2
    }

    /// So many pushes were given to its connections.
    mutating func sent(_ count: Int) {
        assert(count >= 0, "pushes are sent or none")
        inFlight &+= count
    }

    /// So many pushes have an outcome, or wait again.
    mutating func returned(_ count: Int) {
        inFlight &-= count
        assert(inFlight >= 0, "more pushes come back than were sent")
    }

    func wantsConnections(at now: MonotonicTime) -> Bool {
        !waiting.isEmpty || inFlight > 0 || now - usedAt < Self.idleAfter
    }

    /// What a connect begins with. It reads the trusted roots from disk, anew where the last time
    /// was long ago: roots are replaced under a worker that lives for months. If they cannot be
    /// read then, those from before stay.
    mutating func trust(at now: MonotonicTime) throws(TLSError) -> TLSContext {
        if let tls, now - tls.madeAt < Self.rootsAgeMax { return tls.context }
        do {
            let context = try TLSContext.client(caFile: settings.caFile)
            tls = (context, now)
            return context
        } catch {
            guard let tls else { throw error }
            log.write(
                .rootsUnreadable, .error, "cannot read the trusted roots again: \(error)",
                remedy: "restore the CA file; the roots read before stay in use", at: now)
            return tls.context
        }
    }

    mutating func connectFailed(at now: MonotonicTime, random: inout SplitMix64) {
        connectAt = now + backoff.delay(attempt: failures, random: &random)
        failures += 1
    }

    mutating func authenticated() { failures = 0 }
}
