// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// What one HTTP/2 connection may do next: facts go in, permissions come out. A struct with a
/// phase rather than an enum, since the stream count is touched for every batch of pushes.
package struct ConnectionMachine: Sendable {
    package enum Phase: Sendable {
        /// Name lookup, TCP, TLS. No stream. *Can transition to:* settingsAwaited, closed.
        case connecting
        /// The preface is out; HTTP/2 would allow any number of streams, APNs would not, so none.
        /// *Can transition to:* warming, draining, closed.
        case settingsAwaited
        /// APNs serves one stream until it has seen a valid provider token.
        /// *Can transition to:* open, draining, closed.
        case warming
        /// As many streams as announced. *Can transition to:* draining, closed.
        case open
        /// No new stream; those in flight finish. *Can transition to:* closed.
        case draining
        /// Final.
        case closed
    }

    /// What is due. The driver does it and reports the fact.
    package enum Due: Hashable, Sendable {
        case nothing
        /// Check by PING whether the connection is alive.
        case ping
        /// Send nothing more on the connection; open another.
        case retire
        /// Close the connection now: the outcome of what is in flight on it is unknown.
        case abort(AbortReason)
    }

    package enum AbortReason: String, Hashable, Sendable {
        case connectTimeout = "no SETTINGS within the connect timeout"
        case pingTimeout = "no answer to PING"
        case requestTimeouts = "requests time out and nothing is answered"
    }

    package private(set) var phase = Phase.connecting
    package private(set) var streamsInFlight = 0
    private let limits: ConnectionLimits
    /// When the connect began, with the look-up of the host's name.
    package let startedAt: MonotonicTime
    private let retireAt: MonotonicTime
    private var heardAt: MonotonicTime
    private var pingSentAt: MonotonicTime?
    /// The limit that SETTINGS last announced, at most `streamsMax`.
    private var streamLimit = 0
    private var timeoutsInARow = 0

    /// - Parameter jitter: 0…1; spreads the ages at which connections are replaced.
    package init(limits: ConnectionLimits, at now: MonotonicTime, jitter: Double) {
        assert((0...1).contains(jitter), "the jitter is from 0 to 1")
        self.limits = limits
        startedAt = now
        heardAt = now
        let age = limits.ageMax.nanoseconds
        // Nine tenths plus up to two tenths: plus or minus a tenth.
        retireAt = now + .nanoseconds(age / 10 * 9 + Int64(Double(age / 5) * jitter))
    }

    // MARK: Facts

    /// TLS is up and the preface is written.
    package mutating func connected(at now: MonotonicTime) {
        guard phase == .connecting else { return }
        phase = .settingsAwaited
        heardAt = now
    }

    /// SETTINGS came; `announced` is the concurrent-stream limit in force after it.
    package mutating func settingsArrived(announced: UInt32, at now: MonotonicTime) {
        let previous = streamLimit
        streamLimit = min(Int(announced), limits.streamsMax)
        switch phase {
        case .settingsAwaited: phase = .warming
        // The limit goes up once APNs has seen a valid provider token.
        case .warming: if streamLimit > previous { phase = .open }
        case .connecting, .open, .draining, .closed: break
        }
    }

    /// Bytes arrived.
    package mutating func heard(at now: MonotonicTime) {
        heardAt = now
    }

    package mutating func streamsOpened(_ count: Int) {
        assert(
            phase == .warming || phase == .open,
            "streams are opened only while warming or open, not in phase \(phase)")
        assert(
            count >= 0 && count <= streamsFree, "no more streams are opened than the server allows")
        streamsInFlight &+= count
    }

    /// - Parameters:
    ///   - answered: how many of them ended with an answer.
    ///   - authenticated: how many of those had no status 403: the provider token is accepted.
    package mutating func streamsEnded(_ count: Int, answered: Int, authenticated: Int) {
        streamsInFlight &-= count
        assert(streamsInFlight >= 0, "no more streams end than were opened")
        assert(
            authenticated <= answered && answered <= count,
            "of the streams that end some are answered, of these some authenticated")
        if answered > 0 { timeoutsInARow = 0 }
        if authenticated > 0, phase == .warming { phase = .open }
    }

    package mutating func streamTimedOut() {
        streamsInFlight &-= 1
        assert(streamsInFlight >= 0, "no more streams time out than were opened")
        timeoutsInARow += 1
    }

    package mutating func pingSent(at now: MonotonicTime) {
        pingSentAt = now
    }

    package mutating func pingAnswered() {
        pingSentAt = nil
    }

    /// GOAWAY came, or an answer said to leave, or the driver is draining.
    package mutating func retired() {
        if phase != .closed { phase = .draining }
    }

    package mutating func closed() {
        phase = .closed
        streamsInFlight = 0
    }

    // MARK: Permissions

    /// How many streams may be opened now.
    package var streamsFree: Int {
        guard pingSentAt == nil else { return 0 }
        switch phase {
        case .open: return max(0, streamLimit &- streamsInFlight)
        case .warming: return max(0, min(1, streamLimit) &- streamsInFlight)
        case .connecting, .settingsAwaited, .draining, .closed: return 0
        }
    }

    /// How many of the streams patient pushes leave free.
    package var streamsKept: Int { phase == .open ? PatientShare.kept(of: streamLimit) : 0 }

    /// What this connection adds to its pool's capacity.
    package var capacity: Int {
        switch phase {
        case .open: streamLimit
        case .warming: min(1, streamLimit)
        case .connecting, .settingsAwaited, .draining, .closed: 0
        }
    }

    /// Whether this is one of the connections that the pool wants.
    package var isWanted: Bool { phase != .draining && phase != .closed }

    package var isDrained: Bool { phase == .draining && streamsInFlight == 0 }

    /// Whether to send a PING before the connection is used: after a silence the peer may be gone
    /// without a trace.
    package func wantsPing(at now: MonotonicTime) -> Bool {
        pingSentAt == nil && (phase == .open || phase == .warming)
            && now - heardAt >= limits.pingAfterSilence
    }

    package func due(at now: MonotonicTime) -> Due {
        if timeoutsInARow >= limits.timeoutsMax, phase != .closed {
            return .abort(.requestTimeouts)
        }
        guard now >= nextDeadline else { return .nothing }
        switch phase {
        case .connecting, .settingsAwaited: return .abort(.connectTimeout)
        case .warming, .open:
            if pingIsLate(now) { return .abort(.pingTimeout) }
            return now >= retireAt ? .retire : .ping
        case .draining: return .abort(.pingTimeout)
        case .closed: return .nothing
        }
    }

    /// The next time at which `due` may change without a further fact.
    package var nextDeadline: MonotonicTime {
        switch phase {
        case .connecting, .settingsAwaited: return startedAt + limits.connectTimeout
        case .warming, .open: return min(retireAt, pingDeadline ?? heardAt + limits.pingWhenIdle)
        case .draining: return pingDeadline ?? .distantFuture
        case .closed: return .distantFuture
        }
    }

    private var pingDeadline: MonotonicTime? { pingSentAt.map { $0 + limits.pingTimeout } }

    private func pingIsLate(_ now: MonotonicTime) -> Bool {
        pingDeadline.map { now >= $0 } ?? false
    }
}
