// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import FleetKit
internal import Foundation
internal import LinuxIO
internal import OpenSSL
internal import Synchronization
import TestCertificates

/// An HTTP/2 server whose frames the test writes, for behaviour that no real server can be made to
/// show. It follows the protocol only as its manners say. One thread serves all its connections.
final class FrameServer {
    enum Setting: UInt8, Sendable {
        case streamsMax = 3
        case initialWindow = 4
    }

    /// What the server does by itself.
    struct Manners: Sendable {
        /// The SETTINGS to send after the TLS handshake; nil for none.
        var settings: [Setting: UInt32]? = [.streamsMax: 100]
        /// Whether each byte of DATA is returned to the connection's window at once.
        var givesBackWindow = true
        /// Called on the server's thread for each request that has come as a whole.
        var serve: (@Sendable (FrameConnection, FrameConnection.Request) -> Void)?
    }

    /// The certificate that it shows.
    enum Identity {
        case sound, expired, otherHost
    }

    let port: UInt16
    private let shared: FrameServerState
    private let directory: ScratchDirectory

    /// - Parameter change: of its manners.
    init(
        identity: Identity = .sound, _ change: (inout Manners) -> Void = { _ in }
    ) throws {
        var manners = Manners()
        change(&manners)
        directory = try ScratchDirectory()
        let authority = try CertificateAuthority()
        try authority.certificatePEM.write(
            toFile: directory.file("ca.pem"), atomically: true, encoding: .utf8)
        let made =
            switch identity {
            case .sound: try authority.serverCertificate()
            case .expired: try authority.serverCertificate(expired: true)
            case .otherHost:
                try authority.serverCertificate(names: ["example.com"], addresses: [])
            }
        let socket = try Socket.listening(onLoopbackPort: 0)
        port = try socket.localPort()
        shared = FrameServerState(
            socket, manners: manners,
            context: try .server(certificatePEM: made.certificatePEM, keyPEM: made.keyPEM))
        try NamedThread.detach(name: "frame-server") { [shared] in
            do {
                try FramePump(shared).run()
            } catch {
                fatalError("the frame server cannot run: \(error)")
            }
            shared.ended()
        }
    }

    deinit { shared.end() }

    /// Breaks every connection and stops listening.
    func stop() {
        shared.end()
        let patience = Patience()
        while !shared.hasEnded, !patience.isOver { usleep(500) }
    }

    var caFile: String { directory.file("ca.pem") }
    var connections: [FrameConnection] { shared.connections }
    /// The streams of all complete requests, on all connections.
    var streams: [UInt32] { connections.flatMap(\.requests).map(\.stream) }
    /// How often each push was accepted.
    var acceptances: [Int: Int] { shared.ledger.acceptances }

    /// On the newest connection.
    func answer(_ status: Int, on stream: UInt32, isWhole: Bool = true) {
        connections.last?.answer(status, on: stream, isWhole: isWhole)
    }

    func bench(
        _ kind: TransportKind, limits: ConnectionLimits = DeliveryBench.brisk()
    ) throws -> DeliveryBench {
        try DeliveryBench(
            kind, to: port, caFile: caFile, privatePEM: try ES256Key.generate().privatePEM,
            limits: limits)
    }
}

/// What the test and the server's thread share.
final class FrameServerState: Sendable {
    private struct State {
        var connections: [FrameConnection] = []
        var isEnding = false
        var hasEnded = false
    }

    private let socket: Mutex<Socket?>
    let context: TLSContext
    let manners: FrameServer.Manners
    let waker = Waker()
    let ledger = AcceptanceLedger()
    private let state = Mutex(State())

    init(_ socket: consuming Socket, manners: FrameServer.Manners, context: TLSContext) {
        self.socket = Mutex(consume socket)
        self.manners = manners
        self.context = context
    }

    var connections: [FrameConnection] { state.withLock { $0.connections } }
    var isEnding: Bool { state.withLock { $0.isEnding } }
    var hasEnded: Bool { state.withLock { $0.hasEnded } }

    func end() {
        state.withLock { $0.isEnding = true }
        waker.wake()
    }

    // MARK: The server's thread

    /// The thread's to close.
    func takeSocket() -> Socket? { socket.withLock { $0.take() } }

    func ended() { state.withLock { $0.hasEnded = true } }

    /// TCP is up.
    func connected() -> FrameConnection {
        state.withLock { state in
            let connection = FrameConnection(
                number: state.connections.count + 1, manners: manners, ledger: ledger,
                waker: waker)
            state.connections.append(connection)
            return connection
        }
    }
}
