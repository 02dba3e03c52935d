// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FleetKit
internal import Foundation
internal import Glibc
internal import LinuxIO
internal import OpenSSL
internal import Testing

/// An HTTP/2 client that writes any frames and, unlike every library, ignores the server's limits,
/// to show that the server enforces them.
final class SimulatorFrameClient {
    enum Outcome: Hashable {
        case accepted
        /// Apple's `reason`.
        case refused(String)
        /// RST_STREAM, and its code.
        case reset(UInt32)
    }

    /// How the streams have ended that have.
    private(set) var outcomes: [UInt32: Outcome] = [:]
    /// Each SETTINGS_MAX_CONCURRENT_STREAMS that came.
    private(set) var streamLimits: [UInt32] = []
    /// The last stream of each GOAWAY.
    private(set) var lastStreams: [UInt32] = []
    private(set) var pingAnswers = 0
    private(set) var isClosed = false

    private let socket: Socket
    private var tls: TLSStream
    private var pending: [UInt8] = []

    init(_ fixture: SimulatorFixture) throws {
        socket = try Socket.connecting(to: .loopback(port: fixture.port))
        tls = TLSStream(
            context: try .client(caFile: fixture.caFile), descriptor: socket.descriptor,
            serverName: "localhost")
        let patience = Patience(.seconds(5))
        while tls.handshake() != .done {
            try #require(!patience.isOver, "no TLS")
            wait()
        }
        write(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + HTTP2Frame(.settings).bytes)
    }

    // MARK: Sending

    /// All in one write, so that the server can have said nothing in between.
    func push(on streams: [UInt32], bearer: String?) {
        var request = CurlRequest(bearer: bearer)
        // Pseudo-headers come first.
        request.headers.insert(
            contentsOf: [
                (":method", "POST"), (":scheme", "https"), (":authority", "localhost"),
                (":path", request.path),
            ], at: 0)
        let block = HTTP2Frame.block(request.headers.map { ($0.name, $0.value) })
        var bytes: [UInt8] = []
        for stream in streams {
            bytes +=
                HTTP2Frame(.headers, flags: HTTP2Frame.endOfHeaders, stream: stream, block).bytes
            bytes +=
                HTTP2Frame(
                    .data, flags: HTTP2Frame.endOfStream, stream: stream, Array(request.body.utf8)
                ).bytes
        }
        write(bytes)
    }

    func ping() { write(HTTP2Frame(.ping, Array(repeating: 7, count: 8)).bytes) }

    /// Writes bytes. They are less than a TLS record and the socket's buffer is nearly empty, so
    /// the write is never short.
    private func write(_ bytes: [UInt8]) {
        let transfer = bytes.withUnsafeBytes { tls.write($0) }
        #expect(transfer == .bytes(bytes.count))
    }

    // MARK: Receiving

    /// Takes in what comes until the condition holds; false when it does not within `seconds`.
    func listen(for seconds: Double = 5, until condition: () -> Bool) -> Bool {
        let patience = Patience(.seconds(seconds))
        while true {
            receive()
            if condition() { return true }
            if isClosed || patience.isOver { return false }
            wait()
        }
    }

    /// How each of the streams ended; fewer if some do not within five seconds.
    func outcomes(of streams: [UInt32]) -> [UInt32: Outcome] {
        _ = listen { streams.allSatisfy { outcomes[$0] != nil } }
        return outcomes.filter { streams.contains($0.key) }
    }

    private func wait() {
        var descriptor = pollfd(fd: socket.descriptor, events: Int16(POLLIN), revents: 0)
        poll(&descriptor, 1, 10)
    }

    private func receive() {
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while !isClosed {
            let transfer = buffer.withUnsafeMutableBytes { tls.read(into: $0) }
            switch transfer {
            case .bytes(let count): pending += buffer[..<count]
            case .wantsRead, .wantsWrite: return digest()
            case .closed, .failed: isClosed = true
            }
        }
        digest()
    }

    private func digest() {
        var start = 0
        while let frame = HTTP2Frame(reading: pending, from: &start) { received(frame) }
        pending.removeFirst(start)
    }

    private func received(_ frame: HTTP2Frame) {
        let payload = frame.payload
        switch frame.kind {
        case .data:
            struct Body: Decodable { let reason: String }
            let body = try? JSONDecoder().decode(Body.self, from: Data(payload))
            outcomes[frame.stream] = .refused(body?.reason ?? "")
        // 0x88 is `:status: 200` (RFC 7541, appendix A); an error's body follows.
        case .headers where frame.has(HTTP2Frame.endOfStream):
            outcomes[frame.stream] = payload.first == 0x88 ? .accepted : .refused("")
        case .reset: outcomes[frame.stream] = .reset(HTTP2Frame.number(payload[...]))
        case .settings where !frame.has(HTTP2Frame.acknowledgement):
            for setting in stride(from: 0, to: payload.count, by: 6)
            where HTTP2Frame.number(payload[setting..<setting + 2]) == 3 {
                streamLimits.append(HTTP2Frame.number(payload[setting + 2..<setting + 6]))
            }
        case .ping where frame.has(HTTP2Frame.acknowledgement): pingAnswers += 1
        case .goAway: lastStreams.append(HTTP2Frame.number(payload[0..<4]))
        default: break
        }
    }
}
