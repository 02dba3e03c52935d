// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Glibc
import LinuxIO
import OpenSSL
import TestCertificates

/// A TLS proxy before an embedded Kafka with one broker, or another server. It replaces the
/// broker's port by its own in answers.
final class KafkaTLSFront: Sendable {
    let port: UInt16
    private let brokerPort: UInt16
    private let listener: CInt
    private let context: TLSContext

    init(before bootstrap: String, _ certificate: ServerCertificate) throws {
        BrokenPipe.ignoreSignal()
        brokerPort = UInt16(bootstrap.split(separator: ":").last!)!
        context = try TLSContext.server(
            certificatePEM: certificate.certificatePEM, keyPEM: certificate.keyPEM)
        let listener = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        var address = KafkaSASLGate.loopback(0)
        KafkaSASLGate.lend(&address) { _ = bind(listener, $0, $1) }
        listen(listener, 64)
        KafkaSASLGate.lend(&address) { address, length in
            var length = length
            _ = getsockname(listener, address, &length)
        }
        self.listener = listener
        port = UInt16(bigEndian: address.sin_port)
        try NamedThread.detach(name: "tls-front") { [self] in
            while case let client = accept(listener, nil, nil), client >= 0 {
                try? NamedThread.detach(name: "tls-client") { [self] in serve(client) }
            }
        }
    }

    func close() { shutdown(listener, CInt(SHUT_RDWR)) }

    var bootstrap: String { "127.0.0.1:\(port)" }

    private func serve(_ client: CInt) {
        let broker = socket(AF_INET, CInt(SOCK_STREAM.rawValue), 0)
        defer {
            Glibc.close(client)
            Glibc.close(broker)
        }
        var address = KafkaSASLGate.loopback(brokerPort)
        KafkaSASLGate.lend(&address) { _ = connect(broker, $0, $1) }
        _ = fcntl(client, F_SETFL, O_NONBLOCK)
        var tls = TLSStream(context: context, descriptor: client, serverName: nil)
        shaking: while true {
            switch tls.handshake() {
            case .done: break shaking
            case .wantsRead: Self.wait(client, POLLIN)
            case .wantsWrite: Self.wait(client, POLLOUT)
            case .failed: return
            }
        }
        var received: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16_384)
        while true {
            switch buffer.withUnsafeMutableBytes({ tls.read(into: $0) }) {
            case .bytes(let count): received += buffer[..<count]
            case .wantsRead: Self.wait(client, POLLIN)
            case .wantsWrite: Self.wait(client, POLLOUT)
            case .closed, .failed: return
            }
            while let request = Frame(taking: &received) {
                guard request.send(to: broker), let answer = Frame(from: broker) else { return }
                guard write(answer.naming(port, insteadOf: brokerPort), to: &tls, client) else {
                    return
                }
            }
        }
    }

    private func write(_ answer: Frame, to tls: inout TLSStream, _ client: CInt) -> Bool {
        var bytes = answer.framed[...]
        while !bytes.isEmpty {
            switch bytes.withUnsafeBytes({ tls.write($0) }) {
            case .bytes(let count): bytes = bytes.dropFirst(count)
            case .wantsRead: Self.wait(client, POLLIN)
            case .wantsWrite: Self.wait(client, POLLOUT)
            case .closed, .failed: return false
            }
        }
        return true
    }

    private static func wait(_ descriptor: CInt, _ events: Int32) {
        var request = pollfd(fd: descriptor, events: Int16(events), revents: 0)
        _ = poll(&request, 1, 10_000)
    }
}
