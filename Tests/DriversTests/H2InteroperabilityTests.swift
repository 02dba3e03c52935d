// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Delivery
internal import Foundation
internal import LinuxIO
internal import OpenSSL
internal import PushModel
internal import Testing

/// nghttpd (Debian's nghttp2-server): an HTTP/2 server that is not ours.
private final class ForeignServer {
    static let path = ["/usr/sbin/nghttpd", "/usr/bin/nghttpd"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    let port: UInt16
    let caFile: String
    private let process = Process()
    private let directory: URL

    init() throws {
        directory = FileManager.default.temporaryDirectory.appending(path: "nghttpd-\(UUID())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let authority = try CertificateAuthority()
        let server = try authority.serverCertificate(names: ["localhost"])
        caFile = directory.appending(path: "ca.pem").path
        let files = [
            ("ca.pem", authority.certificatePEM), ("cert.pem", server.certificatePEM),
            ("key.pem", server.keyPEM),
        ]
        for (name, text) in files {
            try text.write(
                to: directory.appending(path: name), atomically: true, encoding: .utf8)
        }
        port = try Socket.listening().localPort()
        process.executableURL = URL(fileURLWithPath: Self.path!)
        process.arguments = [
            "-a", "127.0.0.1", "-d", directory.path, String(port),
            directory.appending(path: "key.pem").path,
            directory.appending(path: "cert.pem").path,
        ]
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
    }

    deinit {
        // SIGTERM was seen to leave it running; it has nothing to save.
        kill(process.processIdentifier, SIGKILL)
        try? FileManager.default.removeItem(at: directory)
    }
}

@Suite struct `The nghttp2 transport and a foreign server` {
    @Test(.enabled(if: ForeignServer.path != nil))
    func `understand each other for 1000 pushes with bodies in the answers`() throws {
        let server = try ForeignServer()
        var limits = ConnectionLimits()
        limits.reconnectMin = .milliseconds(20)
        let bench = try DeliveryBench(port: server.port, caFile: server.caFile, limits: limits)
        bench.submit(1000)
        let outcomes = bench.collect(1000)
        #expect(outcomes.count == 1000)
        // It serves files and has none for a device: a 404 with a page that is not Apple's.
        #expect(outcomes.allSatisfy { $0.kind == .answered && $0.status == 404 })
        #expect(outcomes.allSatisfy { $0.reason == .none })
        #expect(bench.transport.counters.snapshot.connects == 1)
        withExtendedLifetime(server) {}
    }
}
