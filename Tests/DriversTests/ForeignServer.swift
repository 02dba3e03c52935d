// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Delivery
internal import FleetKit
internal import Foundation
internal import LinuxIO
internal import OpenSSL
import TestCertificates

/// A server program on a free port with a certificate of its own; ended with the test.
final class ForeignServer {
    struct Files {
        let folder: String
        let key: String
        let certificate: String
    }

    private let process = Process()
    private let input = Pipe()
    private let directory: ScratchDirectory
    let port: UInt16

    /// The program may not listen yet when this returns; the transport tries again.
    /// - Parameter text: what it reads from its standard input.
    init(
        input text: String = "",
        command: (Files, String) -> (name: String, arguments: [String])
    ) throws {
        directory = try ScratchDirectory()
        let authority = try CertificateAuthority()
        let made = try authority.serverCertificate()
        let files = Files(
            folder: directory.path, key: directory.file("key.pem"),
            certificate: directory.file("cert.pem"))
        for (path, pem) in [
            (directory.file("ca.pem"), authority.certificatePEM), (files.key, made.keyPEM),
            (files.certificate, made.certificatePEM),
        ] { try pem.write(toFile: path, atomically: true, encoding: .utf8) }
        port = try Socket.listening(onLoopbackPort: 0).localPort()
        let (name, arguments) = command(files, String(port))
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [name] + arguments
        process.standardInput = input
        let log = KeptLogs.output(of: name)
        process.standardOutput = log
        process.standardError = log
        try process.run()
        try input.fileHandleForWriting.write(contentsOf: Data(text.utf8))
    }

    /// Answers every request with 200 and its own body.
    static func nghttpd(address: String = "127.0.0.1") throws -> ForeignServer {
        try ForeignServer { files, port in
            (
                "nghttpd",
                ["--echo-upload", "--address=\(address)", port, files.key, files.certificate]
            )
        }
    }

    /// Says one thing to the first that connects, and listens when this returns.
    static func openssl(_ options: [String] = [], saying text: String = "") throws -> ForeignServer
    {
        let server = try ForeignServer(input: text) { files, port in
            let fixed = [
                "s_server", "-quiet", "-accept", "127.0.0.1:\(port)", "-cert", files.certificate,
                "-key", files.key,
            ]
            return ("openssl", fixed + options)
        }
        server.waitUntilListening()
        return server
    }

    deinit {
        // SIGTERM would wait for ever: tests run on threads that block it, and a child inherits that.
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// Not by connecting, which might be the one connection that it takes.
    private func waitUntilListening() {
        let place = "0100007F:" + String(format: "%04X", port)
        let patience = Patience()
        while !patience.isOver {
            let sockets = try? String(contentsOfFile: "/proc/net/tcp", encoding: .utf8)
            if sockets?.contains(place + " 00000000:0000 0A") == true { return }
            usleep(2000)
        }
    }

    /// In the folder that its files are in.
    func file(_ name: String) -> String { directory.file(name) }

    /// It does nothing until `thaw()`.
    func freeze() { kill(process.processIdentifier, SIGSTOP) }

    func thaw() { kill(process.processIdentifier, SIGCONT) }

    func bench(
        _ kind: TransportKind, limits: ConnectionLimits = DeliveryBench.brisk(),
        host: String = "127.0.0.1"
    ) throws -> DeliveryBench {
        try DeliveryBench(
            kind, to: port, caFile: directory.file("ca.pem"),
            privatePEM: try ES256Key.generate().privatePEM, host: host, limits: limits)
    }
}
