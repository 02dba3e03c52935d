// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
package import PushModel

extension WorkerStatus {
    package struct Pool: Codable, Sendable {
        package var credential: String
        /// Its name: a newer worker may have others.
        package var environment: String
        /// `broadcasts` of the pool that sends to channels; nil of one that sends to devices.
        @Nullable package var service: String? = nil
        /// The `host:port` that it connects to.
        package var endpoint: String
        /// Connections on which APNs has accepted the provider token.
        package var connections = 0
        /// How many connections have had faults in at least three of their last eight requests.
        var connectionsIll = 0
        /// How many requests were answered with 5xx, or not at all, since the last answer that was neither.
        var faultsInARow = 0
        /// Requests in flight.
        package var streams = 0
        /// How many streams the open connections allow together.
        package var streamsMax = 0
        /// The connects in a row that have failed; 0 where no connection is wanted.
        var failedConnects = 0
        /// Why the latest connect failed that never was a connection; nil if none has lately.
        @Nullable package var connectError: String? = nil
        /// Whether the latest of them was established, so that APNs can be reached.
        var hasReachedAPNs = false
        /// Whether its circuit breaker is open because APNs does not answer.
        var isGivenUpAsSilent = false
        /// Whether its circuit breaker is not closed, whatever the cause.
        var isTripped = false
        /// How long until the next probe; nil while one is out, and if the circuit breaker is closed.
        @Seconds package var probeIn: Duration? = nil
        /// How long it has had pushes to send of which APNs has answered none; nil if it has none,
        /// or if its circuit breaker is not closed.
        @Seconds package var silence: Duration? = nil
        /// How long ago the provider token in use was made; nil before the first one.
        @Seconds package var providerTokenAge: Duration? = nil
        /// Whether another service makes its provider tokens.
        var isTokenReady = false
        /// Whether its signing key is in none of its places any more.
        var isKeyGone = false
        /// How many answers have refused the credential.
        var refusals = 0
        /// What has become of its connections since the start.
        var connected = ConnectionCounts()
        /// The name of `state`, as a report has it: a newer worker may have others.
        package var toldState = ""

        private enum CodingKeys: String, CodingKey {
            case credential, environment, service, endpoint, connectError
            case connections, streams, streamsMax
            case toldState = "state"
            case probeIn = "nextProbeSeconds"
            case silence = "silentSeconds"
            case providerTokenAge = "providerTokenAgeSeconds"
        }

        /// As it is reported.
        var told: Pool {
            var pool = self
            pool.toldState = state.rawValue
            return pool
        }

        /// Takes over why a connect failed, which begins with the address that was tried. An endpoint
        /// that is written as an address is not named twice.
        mutating func connectFailed(_ text: String) {
            let address = endpoint + ": "
            connectError =
                text.hasPrefix(address) ? String(text.dropFirst(address.count)) : text
        }

        /// The name of its circuit breaker.
        var breakerName: String {
            PushModel.Pool.breakerName(credential, in: environment, for: service)
        }

        enum State: String {
            /// No connection is open, and none is wanted.
            case idle
            /// The first connection is on its way, or awaits APNs's first answer.
            case connecting
            /// APNs takes pushes.
            case open
            /// APNs can be reached and answers nothing.
            case stalled
            /// A connection is wanted, and none can be made.
            case unconnected
            /// Its circuit breaker is not closed: pushes wait, except for one probe at a time.
            case paused
        }

        /// How long APNs may leave a pool without an answer. A round trip takes milliseconds, across
        /// the world 0.3 s, and the first answer on a new connection four of them.
        static let stallMax = Duration.milliseconds(1500)

        var state: State {
            let isSilent = isGivenUpAsSilent || (silence ?? .zero) >= Self.stallMax
            let isReached = connections > 0 || streams > 0 || hasReachedAPNs
            if !isReached, isSilent || failedConnects > 0 { return .unconnected }
            if isSilent { return .stalled }
            if isTripped { return .paused }
            if connections > 0 { return .open }
            return streams > 0 || failedConnects > 0 || silence != nil ? .connecting : .idle
        }
    }
}
