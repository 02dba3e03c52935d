// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import Glibc
internal import LinuxIO
internal import OpenSSL
internal import Testing

/// An HTTP/2 client that writes frames as it is told and obeys no limit of the server's, unlike
/// every library: what a server enforces shows only against one that trespasses.
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
        let deadline = Date(timeIntervalSinceNow: 5)
        while tls.handshake() != .done {
            try #require(Date() < deadline, "no TLS")
            wait()
        }
        write(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + Self.frame(type: 4, stream: 0))
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
        var block: [UInt8] = []
        // 0: a field in full, that no table keeps.
        for field in request.headers {
            block += [0] + Self.text(field.name) + Self.text(field.value)
        }
        var bytes: [UInt8] = []
        for stream in streams {
            bytes += Self.frame(type: 1, flags: 4, stream: stream, block)
            bytes += Self.frame(type: 0, flags: 1, stream: stream, Array(request.body.utf8))
        }
        write(bytes)
    }

    func ping() { write(Self.frame(type: 6, stream: 0, Array(repeating: 7, count: 8))) }

    private static func frame(
        type: UInt8, flags: UInt8 = 0, stream: UInt32, _ payload: [UInt8] = []
    ) -> [UInt8] {
        [0, UInt8(payload.count >> 8), UInt8(payload.count & 255), type, flags]
            + [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: stream >> $0) } + payload
    }

    /// RFC 7541, sections 5.1 and 5.2: a length with a prefix of 7 bits, then the bytes.
    private static func text(_ text: String) -> [UInt8] {
        let bytes = Array(text.utf8)
        guard bytes.count >= 127 else { return [UInt8(bytes.count)] + bytes }
        var rest = bytes.count - 127
        var length: [UInt8] = [127]
        while rest >= 128 {
            length.append(UInt8(rest & 127 | 128))
            rest >>= 7
        }
        return length + [UInt8(rest)] + bytes
    }

    /// Less than a record, into a socket that has taken little: never short.
    private func write(_ bytes: [UInt8]) {
        let transfer = bytes.withUnsafeBytes { tls.write($0) }
        #expect(transfer == .bytes(bytes.count))
    }

    // MARK: Receiving

    /// Takes in what comes until the condition holds; false when it does not within `seconds`.
    func listen(for seconds: Double = 5, until condition: () -> Bool) -> Bool {
        let deadline = Date(timeIntervalSinceNow: seconds)
        while true {
            receive()
            if condition() { return true }
            if isClosed || Date() >= deadline { return false }
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
        while pending.count >= 9 {
            let end = 9 + Int(Self.number(pending[0..<3]))
            guard pending.count >= end else { return }
            // The top bit of a stream number is reserved, and 0.
            frameReceived(
                type: pending[3], flags: pending[4], stream: Self.number(pending[5..<9]),
                Array(pending[9..<end]))
            pending.removeFirst(end)
        }
    }

    private func frameReceived(type: UInt8, flags: UInt8, stream: UInt32, _ payload: [UInt8]) {
        switch type {
        case 0:
            struct Body: Decodable { let reason: String }
            let body = try? JSONDecoder().decode(Body.self, from: Data(payload))
            outcomes[stream] = .refused(body?.reason ?? "")
        // 0x88 is `:status: 200` (RFC 7541, appendix A); an error's body follows.
        case 1 where flags & 1 != 0:
            outcomes[stream] = payload.first == 0x88 ? .accepted : .refused("")
        case 3: outcomes[stream] = .reset(Self.number(payload[...]))
        case 4 where flags & 1 == 0:
            for setting in stride(from: 0, to: payload.count, by: 6)
            where Self.number(payload[setting..<setting + 2]) == 3 {
                streamLimits.append(Self.number(payload[setting + 2..<setting + 6]))
            }
        case 6 where flags & 1 != 0: pingAnswers += 1
        case 7: lastStreams.append(Self.number(payload[0..<4]))
        default: break
        }
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> UInt32 {
        bytes.reduce(0) { $0 << 8 | UInt32($1) }
    }
}
