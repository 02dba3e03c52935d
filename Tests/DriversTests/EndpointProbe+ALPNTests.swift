// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import FleetKit
internal import Foundation
internal import OpenSSL
internal import PushModel
import TestCertificates
internal import Testing

extension `A probe of an endpoint` {
    @Test func `a probe tells a server without ALPN by that, not by an old HTTP`() throws {
        let server = try ServerWithoutALPN()
        let tokens = try ProviderTokens(
            teamID: DeliveryBench.teamID, keyID: DeliveryBench.keyID,
            pem: try ES256Key.generate().privatePEM)
        let finding = EndpointProbe(
            PoolSettings(
                id: PoolID(rawValue: 0), host: "127.0.0.1", port: server.port,
                serverName: "localhost", caFile: server.caFile, providerTokens: tokens)
        ).finding()
        #expect(finding.wrong == "does not speak HTTP/2 (ALPN)")
        #expect(finding.remedy.contains("apns.endpoints"))
    }
}

/// `openssl s_server`, which takes TLS connections, negotiates no protocol and sends something that
/// is no HTTP/1.1, as a server of HTTP/2 alone does. It ends with the test.
private final class ServerWithoutALPN {
    private let process = Process()
    private let input = Pipe()
    private let directory: ScratchDirectory
    private(set) var port: UInt16 = 0
    var caFile: String { directory.file("ca.pem") }

    init() throws {
        directory = try ScratchDirectory()
        let authority = try CertificateAuthority()
        let made = try authority.serverCertificate(names: ["localhost"], addresses: [])
        for (name, text) in [
            ("ca.pem", authority.certificatePEM), ("cert.pem", made.certificatePEM),
            ("key.pem", made.keyPEM), ("output", ""),
        ] { try text.write(toFile: directory.file(name), atomically: true, encoding: .utf8) }
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = [
            "openssl", "s_server", "-accept", "0", "-cert", directory.file("cert.pem"), "-key",
            directory.file("key.pem"),
        ]
        process.standardInput = input
        let output = try FileHandle(forWritingTo: URL(filePath: directory.file("output")))
        process.standardOutput = output
        process.standardError = output
        try process.run()
        // Sent to whoever connects.
        input.fileHandleForWriting.write(Data("frames, not HTTP/1.1\n".utf8))
        try waitForPort()
    }

    deinit {
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// It says `ACCEPT [::]:43211`.
    private func waitForPort() throws {
        let patience = Patience()
        while port == 0 {
            guard !patience.isOver else {
                throw Timeout(description: "openssl s_server does not start")
            }
            let text = try String(contentsOfFile: directory.file("output"), encoding: .utf8)
            if let said = text.firstMatch(of: #/ACCEPT \S+:(\d+)\n/#) {
                port = UInt16(said.output.1) ?? 0
            }
            usleep(5000)
        }
    }
}
