// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// The address of a listener, who may use it, and its limits.
package struct HTTPListenerSettings: Sendable {
    /// The section of the configuration that it comes from: `health` or `admin`.
    package var name: String
    package var host: String
    /// 0 lets the system choose.
    package var port: Int
    /// The token that a client must send as `Authorization: Bearer`; nil needs none.
    package var token: Secret?
    /// The paths that are answered without the token: a browser cannot send one when it opens a
    /// page.
    package var openPaths: Set<String> = []
    package var limits: Limits
    /// What TLS is spoken with; nil for plain HTTP.
    package var certificate: ListenerCertificate?
    /// Whether each request carries credentials of its own, which `answer` checks. Then a request that
    /// names another host, as one that a proxy has passed on, is answered.
    package var checksCallers = false
    /// Whether `answer` is asked about methods other than GET, PUT, POST and DELETE, too.
    package var passesAllMethods = false
    /// Decides on a request by its head, on the listener's thread. With it strangers' connections give
    /// way to each other, and the bodies of all connections have one budget; nil reads each body.
    package var admission: (@Sendable (HTTPRequest) -> HTTPAdmission)?
    /// Of those before it, where there is `admission`.
    package var proxies = TrustedProxies()
    /// Is told of each request that is answered by its head alone. Where there is `admission`.
    package var refused: (@Sendable (_ method: String, _ status: Int) -> Void)?
    /// Gives an answer by which the listener itself refuses a request the form that its clients
    /// expect; nil leaves it a line of text.
    package var formatRefusal: (@Sendable (HTTPAnswer) -> HTTPAnswer)?
    package var priority = Priority.low

    /// How the listener's thread gets its share of cores that are all busy.
    package enum Priority: Sendable {
        /// As the other threads of the process.
        case normal
        /// SCHED_BATCH with nice 10, see sched(7): it takes the core from nobody when it wakes up, and gets a
        /// ninth of what another thread gets. Less, as SCHED_IDLE gives, leaves operators without an answer
        /// for minutes where several threads want each core.
        case low
    }

    package struct Limits: Sendable {
        /// Open connections. Further ones wait in the system's queue.
        package var connectionsMax = 64
        /// Further connections that were accepted, and wait until it is their turn; for `firstHeadTimeMax` at
        /// most. Where there is `admission`.
        package var waitingConnectionsMax = 64
        /// Open connections of one address; further ones are closed at once. An eighth of
        /// `connectionsMax` is reserved for addresses that connect regularly and send few requests,
        /// as a probe does.
        package var connectionsPerPeerMax = 16
        /// The requests of one address that are answered in a second, after a burst of as many;
        /// further ones wait. All addresses together get five times as many. nil sets no bound.
        package var requestsPerSecondMax: Int? = 100
        package var headersMax = 64
        package var headerBytesMax = 16 << 10
        /// A longer body is refused; with 0 every body is, before a byte of it is read.
        package var bodyBytesMax = 64 << 10
        /// Bytes of the bodies of all connections together, until they are answered, and of all answers
        /// that their clients have not read. Where there is `admission`.
        package var bodyBytesOfAllMax = 16 << 20
        package var unreadBytesMax = 8 << 20
        /// How long a new connection may take until the head of its first request is there, the TLS
        /// handshake included.
        package var firstHeadTimeMax: Duration = .seconds(5)
        /// How long a connection may wait for the head of its next request.
        package var idleTimeout: Duration = .seconds(10)
        /// How long the rest of a request may take after its head.
        package var requestTimeMax: Duration = .seconds(5)
        /// How long a client may take to read an answer.
        package var answerTimeMax: Duration = .seconds(10)
        /// After it the connection ends as soon as no request on it waits for its answer.
        package var connectionLifetimeMax: Duration = .seconds(60)
        /// The kernel's buffer of a connection for what is sent, which keeps what a client does not
        /// read. Left to itself it grows to megabytes; the kernel doubles the number.
        package var sendBufferBytes = 64 << 10

        package init() {}

        /// For clients that ask a short question without a body and then leave.
        package static var probes: Limits {
            var limits = Limits()
            limits.bodyBytesMax = 0
            limits.requestsPerSecondMax = 20
            limits.connectionLifetimeMax = .seconds(10)
            return limits
        }
    }

    package init(name: String, host: String, port: Int, token: Secret? = nil) {
        precondition((0...65_535).contains(port), "a port is from 0 to 65,535")
        self.name = name
        self.host = host
        self.port = port
        self.token = token
        limits = Limits()
    }

    /// Whether only processes on this host can connect.
    package var isOnLoopback: Bool { Self.isLoopback(host) }

    package static func isLoopback(_ host: String) -> Bool {
        if ["localhost", "::1", "[::1]"].contains(host) { return true }
        // A name may begin like such an address.
        let numbers = host.split(separator: ".", omittingEmptySubsequences: false)
        return numbers.count == 4 && numbers[0] == "127" && numbers.allSatisfy { UInt8($0) != nil }
    }
}
