// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Delivery
internal import Foundation
internal import LinuxIO
internal import OpenSSL
internal import Testing

/// Against servers that are not ours: nghttp2's and OpenSSL's.
@Suite struct `The libcurl transport and foreign servers` {
    @Test func `nghttpd answers every push on one connection`() throws {
        let server = try CurlForeignServer { files, port in
            (
                "nghttpd",
                ["--echo-upload", "--address=127.0.0.1", port, files.key, files.certificate]
            )
        }
        let bench = try server.bench()
        bench.submit(300)
        let outcomes = bench.collect(300)
        #expect(outcomes.count == 300)
        #expect(outcomes.allSatisfy { $0.kind == .answered && $0.status == 200 })
        #expect(bench.drain())
        #expect(bench.transport.counters.snapshot.connects == 1)
    }

    @Test func `a server without HTTP/2 is told from one that answers`() throws {
        let server = try CurlForeignServer(
            input: "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        ) { files, port in
            (
                "openssl",
                [
                    "s_server", "-accept", "127.0.0.1:\(port)", "-alpn", "http/1.1",
                    "-cert", files.certificate, "-key", files.key,
                ]
            )
        }
        let bench = try server.bench()
        bench.submit(1)
        #expect(bench.collect(1).map(\.kind) == [.unknown])
        #expect(bench.wait { bench.transport.counters.snapshot.http2Refused == 1 })
    }
}

/// A server program on a free port with a certificate of its own; ended with the test.
private final class CurlForeignServer {
    struct Files {
        let key: String
        let certificate: String
    }

    private let process = Process()
    private let input = Pipe()
    private let directory: CurlDirectory
    private let port: UInt16

    /// The program may not listen yet when this returns; the transport tries again.
    /// - Parameter text: what it reads from its standard input.
    init(
        input text: String = "",
        command: (Files, String) -> (name: String, arguments: [String])
    ) throws {
        directory = try CurlDirectory()
        let authority = try CertificateAuthority()
        let made = try authority.serverCertificate()
        let files = Files(key: directory.file("key.pem"), certificate: directory.file("cert.pem"))
        for (path, pem) in [
            (directory.file("ca.pem"), authority.certificatePEM), (files.key, made.keyPEM),
            (files.certificate, made.certificatePEM),
        ] { try pem.write(toFile: path, atomically: true, encoding: .utf8) }
        port = try Socket.listening(onLoopbackPort: 0).localPort()
        let (name, arguments) = command(files, String(port))
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [name] + arguments
        process.standardInput = input
        process.standardOutput = FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        try input.fileHandleForWriting.write(contentsOf: Data(text.utf8))
    }

    deinit {
        // SIGTERM would wait for ever: tests run on threads that block it, and a child inherits that.
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    func bench() throws -> CurlBench {
        try CurlBench(
            to: port, caFile: directory.file("ca.pem"), key: try ES256Key.generate())
    }
}
