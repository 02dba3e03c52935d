// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Delivery
package import PushModel

/// What one libcurl connection may do next: facts go in, permissions come out. libcurl hides
/// SETTINGS and GOAWAY, so unlike `ConnectionMachine` this machine relies on answers alone.
package struct CurlConnectionMachine: Sendable {
    package enum Phase: Sendable {
        /// libcurl connects with the first request. *Can transition to:* warming, retiring, closed.
        case cold
        /// One request at a time: it connects and proves that APNs accepts the provider token, or,
        /// after a silence, that the peer is alive. *Can transition to:* open, retiring, closed.
        case warming
        /// Sends as many requests as the bounds allow. *Can transition to:* warming, retiring,
        /// closed.
        case open
        /// Sends no new request; those in flight finish. *Can transition to:* closed.
        case retiring
        /// There is no connection. Final.
        case closed
    }

    /// How a request ended.
    package enum RequestEnd: Sendable {
        /// APNs answered and accepted the provider token.
        case authenticated
        /// APNs answered with a 403, or otherwise refused the provider token.
        case forbidden
        case timedOut
        /// The server reset the stream.
        case reset
        /// The connection broke, or was never established.
        case lost
    }

    package private(set) var phase = Phase.cold
    package private(set) var requestsInFlight = 0
    private var bytesInFlight = 0
    private let limits: ConnectionLimits
    private let retireAt: MonotonicTime
    private var heardAt: MonotonicTime
    private var unansweredInARow = 0

    /// libcurl looks at every request of a connection at each event of its socket; beyond this many
    /// that costs more than the concurrency gains.
    package static let requestsMax = 100
    /// Half of HTTP/2's initial window of 65,535 bytes: the server may have read the other half
    /// without having sent a WINDOW_UPDATE. With the window exhausted libcurl 7.88 spins at full
    /// CPU (curl issue 10618).
    package static let bytesMax = 32_767

    /// How many of them patient pushes leave free: the largest body that APNs accepts. It costs large
    /// audiences with payloads a sixth of the bytes in flight, and at most that of the throughput.
    package static let bytesKept = 5_120

    /// - Parameter jitter: from 0 to 1; spreads the ages at which connections are replaced.
    package init(limits: ConnectionLimits, at now: MonotonicTime, jitter: Double) {
        assert((0...1).contains(jitter), "the jitter is from 0 to 1")
        self.limits = limits
        heardAt = now
        let age = limits.ageMax.nanoseconds
        // Nine tenths plus up to two tenths: plus or minus a tenth.
        retireAt = now + .nanoseconds(age / 10 * 9 + Int64(Double(age / 5) * jitter))
    }

    // MARK: Facts

    /// Tells the machine that its connection is about to be used. After a silence the peer may be
    /// gone, and libcurl sends no PING, so the next request is sent alone.
    package mutating func wanted(at now: MonotonicTime) {
        guard phase == .open, requestsInFlight == 0, now - heardAt >= limits.pingAfterSilence
        else { return }
        phase = .warming
    }

    package mutating func requestSent(bytes: Int) {
        assert(requestsFree > 0, "a request is sent only while the connection has one free")
        assert(bytes >= 0 && hasRoom(for: bytes), "a request's bytes fit into the server's window")
        if phase == .cold { phase = .warming }
        requestsInFlight &+= 1
        bytesInFlight &+= bytes
    }

    package mutating func requestEnded(_ end: RequestEnd, bytes: Int, at now: MonotonicTime) {
        requestsInFlight &-= 1
        bytesInFlight &-= bytes
        assert(requestsInFlight >= 0, "no more requests end than were sent")
        assert(
            bytesInFlight >= 0 && (requestsInFlight > 0 || bytesInFlight == 0),
            "the bytes in flight are never below 0, and 0 without a request in flight")
        switch end {
        case .authenticated:
            heard(at: now)
            if phase == .warming { phase = .open }
        case .forbidden: heard(at: now)
        case .timedOut:
            unansweredInARow &+= 1
            if phase == .warming { phase = .retiring }
        case .reset: unansweredInARow &+= 1
        case .lost: retired()
        }
    }

    /// Tells the machine that the connection takes no new request: an answer demanded it, the
    /// server ended the connection, or the driver is draining.
    package mutating func retired() {
        if phase != .closed { phase = .retiring }
    }

    package mutating func closed() {
        phase = .closed
        requestsInFlight = 0
        bytesInFlight = 0
    }

    // MARK: Permissions

    /// How many requests may be sent now, apart from the bound on bytes.
    package var requestsFree: Int { max(0, requestLimit &- requestsInFlight) }

    /// Whether a body of this size fits. The largest body that APNs accepts (5,120 bytes) always
    /// fits a connection that carries nothing else.
    package func hasRoom(for bytes: Int) -> Bool {
        requestsInFlight == 0 || bytesInFlight &+ bytes <= Self.bytesMax
    }

    /// Whether a push with a body of this size may be sent now.
    /// - Parameter isKeptBack: whether it must leave free what is kept for prompt pushes.
    package func takes(bodyBytes: Int, isKeptBack: Bool) -> Bool {
        guard isKeptBack, phase == .open else { return requestsFree > 0 && hasRoom(for: bodyBytes) }
        return requestsFree > PatientShare.kept(of: requestLimit)
            && hasRoom(for: bodyBytes &+ Self.bytesKept)
    }

    /// How many pushes this connection adds to its pool's capacity.
    package var capacity: Int { phase == .cold ? 0 : requestLimit }

    /// Whether this connection counts towards the connections that its pool wants.
    package var isWanted: Bool { phase != .retiring && phase != .closed }

    package var isDrained: Bool { phase == .retiring && requestsInFlight == 0 }

    /// Whether so many requests in a row timed out or were reset that the connection must be closed
    /// now.
    package var isDead: Bool { unansweredInARow >= limits.timeoutsMax && phase != .closed }

    package func isOld(at now: MonotonicTime) -> Bool { isWanted && now >= retireAt }

    /// The next time at which `isOld` changes.
    package var nextDeadline: MonotonicTime { isWanted ? retireAt : .distantFuture }

    private var requestLimit: Int {
        switch phase {
        case .cold, .warming: 1
        case .open: min(Self.requestsMax, limits.streamsMax)
        case .retiring, .closed: 0
        }
    }

    private mutating func heard(at now: MonotonicTime) {
        heardAt = now
        unansweredInARow = 0
    }
}
