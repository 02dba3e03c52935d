// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Glibc
import LinuxIO
import Synchronization

/// A Kafka that requires SASL, by default OAUTHBEARER. It forwards to an embedded Kafka with a
/// single broker, lets clients through that show an accepted token, and replaces the broker's port
/// by its own in answers.
final class KafkaSASLGate: Sendable {
    struct Shown: Hashable {
        var token: String
        var extensions: [String]
    }

    private struct State {
        var shown: [Shown] = []
        var clients: [CInt] = []
        var taken: @Sendable (String) -> Bool = { _ in true }
    }

    let port: UInt16
    private let brokerPort: UInt16
    private let listener: CInt
    private let state = Mutex(State())

    /// - Parameter bootstrap: `127.0.0.1:port` of the embedded Kafka.
    private let mechanism: String

    /// - Parameter mechanism: the only one that it has.
    init(before bootstrap: String, mechanism: String = "OAUTHBEARER") throws {
        self.mechanism = mechanism
        brokerPort = UInt16(bootstrap.split(separator: ":").last!)!
        let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        var address = Self.loopback(0)
        Self.lend(&address) { _ = bind(listener, $0, $1) }
        listen(listener, 64)
        Self.lend(&address) { address, length in
            var length = length
            _ = getsockname(listener, address, &length)
        }
        self.listener = listener
        port = UInt16(bigEndian: address.sin_port)
        try NamedThread.detach(name: "gate") { [self] in
            while case let client = accept(listener, nil, nil), client >= 0 {
                state.withLock { $0.clients.append(client) }
                try? NamedThread.detach(name: "gate-client") { [self] in serve(client) }
            }
        }
    }

    /// Ends every connection and every thread.
    func close() {
        shutdown(listener, CInt(SHUT_RDWR))
        dropClients()
    }

    var bootstrap: String { "127.0.0.1:\(port)" }

    /// Everything that clients have shown, in order.
    var shown: [Shown] { state.withLock { $0.shown } }

    /// Sets which tokens are accepted from now on; others are refused.
    func take(_ taken: @escaping @Sendable (String) -> Bool) { state.withLock { $0.taken = taken } }

    /// Drops all clients, so that they must authenticate again.
    func dropClients() {
        state.withLock { state in
            for client in state.clients { shutdown(client, CInt(SHUT_RDWR)) }
        }
    }

    // MARK: One client

    private func serve(_ client: CInt) {
        let broker = connectToBroker()
        var isIn = false
        while let request = Frame(from: client) {
            let answer: Frame?
            switch request.apiKey {
            case 17:
                let name = Array(mechanism.utf8)
                // UNSUPPORTED_SASL_MECHANISM, or none, and what there is.
                let isKnown = Array(request.body.dropFirst(2)) == name
                answer = request.answer(
                    [0, isKnown ? 0 : 33, 0, 0, 0, 1, 0, UInt8(name.count)] + name)
            case 36:
                isIn = judge(request)
                // SASL_AUTHENTICATION_FAILED, or none; no message; no bytes.
                answer = request.answer((isIn ? [0, 0] : [0, 58]) + [0xFF, 0xFF, 0, 0, 0, 0])
            case 18:
                answer = forward(request, to: broker)?.addingSASL(version: request.apiVersion)
            default:
                answer = isIn ? forward(request, to: broker) : nil
            }
            guard let answer, answer.naming(port, insteadOf: brokerPort).send(to: client) else {
                break
            }
        }
        state.withLock { state in
            state.clients.removeAll { $0 == client }
            Glibc.close(client)
        }
        Glibc.close(broker)
    }

    /// `n,,\u{1}auth=Bearer TOKEN\u{1}name=value\u{1}\u{1}` of RFC 7628, after its length.
    private func judge(_ request: Frame) -> Bool {
        let text = String(decoding: request.body.dropFirst(4), as: UTF8.self)
        var pairs = text.split(separator: "\u{1}").dropFirst().map(String.init)
        guard let auth = pairs.first, auth.hasPrefix("auth=Bearer ") else { return false }
        pairs.removeFirst()
        let token = String(auth.dropFirst("auth=Bearer ".count))
        let taken = state.withLock { state in
            state.shown.append(Shown(token: token, extensions: pairs))
            return state.taken
        }
        return taken(token)
    }

    private func forward(_ request: Frame, to broker: CInt) -> Frame? {
        request.send(to: broker) ? Frame(from: broker) : nil
    }

    private func connectToBroker() -> CInt {
        let broker = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        var address = Self.loopback(brokerPort)
        Self.lend(&address) { _ = connect(broker, $0, $1) }
        return broker
    }

    static func lend(
        _ address: inout sockaddr_in,
        _ body: (UnsafeMutablePointer<sockaddr>, socklen_t) -> Void
    ) {
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
    }

    static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }
}

/// A request or an answer of the Kafka protocol, without its length.
struct Frame {
    var bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    init?(from descriptor: CInt) {
        guard let length = Self.read(4, from: descriptor) else { return nil }
        let count = length.reduce(0) { $0 << 8 | Int($1) }
        guard count < 1 << 26, let bytes = Self.read(count, from: descriptor) else { return nil }
        self.bytes = bytes
    }

    /// The first of what has been received, if it is all there.
    init?(taking received: inout [UInt8]) {
        guard received.count >= 4 else { return nil }
        let count = received[..<4].reduce(0) { $0 << 8 | Int($1) }
        guard received.count >= 4 + count else { return nil }
        bytes = Array(received[4..<4 + count])
        received.removeFirst(4 + count)
    }

    var apiKey: Int { Int(bytes[0]) << 8 | Int(bytes[1]) }
    var apiVersion: Int { Int(bytes[2]) << 8 | Int(bytes[3]) }

    /// Of a request with the classic header: key, version, correlation, client's name.
    var body: ArraySlice<UInt8> {
        let name = Int(bytes[8]) << 8 | Int(bytes[9])
        return bytes[(10 + name)...]
    }

    func answer(_ body: [UInt8]) -> Frame { Frame(Array(bytes[4..<8]) + body) }

    /// SaslHandshake 0 to 1 and SaslAuthenticate 0, in an answer to ApiVersions.
    func addingSASL(version: Int) -> Frame {
        let added: [[UInt8]] = [[0, 17, 0, 0, 0, 1], [0, 36, 0, 0, 0, 0]]
        // Correlation and error come first. Another version is asked for after UNSUPPORTED_VERSION.
        guard bytes[4] == 0, bytes[5] == 0 else { return self }
        var frame = self
        if version >= 3 {
            // Entries of 7 bytes after their number and one.
            let end = 7 + (Int(bytes[6]) - 1) * 7
            frame.bytes.insert(contentsOf: added.flatMap { $0 + [0] }, at: end)
            frame.bytes[6] += 2
        } else {
            let end = 10 + (Int(bytes[8]) << 8 | Int(bytes[9])) * 6
            frame.bytes.insert(contentsOf: added.flatMap { $0 }, at: end)
            frame.bytes[9] += 2
        }
        return frame
    }

    func naming(_ port: UInt16, insteadOf other: UInt16) -> Frame {
        func place(_ port: UInt16) -> [UInt8] {
            Array("127.0.0.1".utf8) + [0, 0, UInt8(port >> 8), UInt8(port & 0xFF)]
        }
        return Frame(bytes.replacing(place(other), with: place(port)))
    }

    /// After its length.
    var framed: [UInt8] {
        let length = UInt32(bytes.count)
        return (0..<4).map { UInt8(truncatingIfNeeded: length >> (24 - 8 * $0)) } + bytes
    }

    func send(to descriptor: CInt) -> Bool {
        let all = framed
        var sent = 0
        while sent < all.count {
            let count = all.withUnsafeBytes {
                Glibc.send(
                    descriptor, $0.baseAddress! + sent, all.count - sent, CInt(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    private static func read(_ count: Int, from descriptor: CInt) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        var filled = 0
        while filled < count {
            let read = bytes.withUnsafeMutableBytes {
                recv(descriptor, $0.baseAddress! + filled, count - filled, 0)
            }
            guard read > 0 else { return nil }
            filled += read
        }
        return bytes
    }
}
