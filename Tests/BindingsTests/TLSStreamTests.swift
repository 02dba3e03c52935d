// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import OpenSSL
import TestCertificates
internal import Testing

@Suite struct `A TLS stream` {
    private let scratch: ScratchDirectory
    private let authority: CertificateAuthority
    private let trusting: TLSContext

    init() throws {
        scratch = try ScratchDirectory()
        authority = try CertificateAuthority()
        trusting = try .client(caFile: try scratch.write(authority.certificatePEM, "ca.pem"))
    }

    private func server(expired: Bool = false, by other: CertificateAuthority? = nil) throws
        -> TLSContext
    {
        let made = try (other ?? authority).serverCertificate(
            names: ["push.example.com", "*.wild.example.com"], addresses: ["127.0.0.1"],
            expired: expired)
        return try .server(certificatePEM: made.certificatePEM, keyPEM: made.keyPEM)
    }

    @Test(arguments: ["push.example.com", "a.wild.example.com", "127.0.0.1"])
    func `a TLS stream trusts a certificate that bears the name, and speaks h2`(name: String) throws
    {
        let pair = try TLSPair(client: trusting, server: try server(), name: name)
        #expect(pair.shakeHands() == nil)
        #expect(pair.client.negotiatedProtocol == "h2")
        #expect(pair.server.negotiatedProtocol == "h2")
        #expect(pair.client.version == "TLSv1.3")
    }

    @Test(arguments: [
        ("other.example.com", "hostname mismatch"), ("127.0.0.2", "IP address mismatch"),
        ("a.b.wild.example.com", "hostname mismatch"),
    ])
    func `a TLS stream refuses a certificate that does not bear the name`(
        name: String, words: String
    ) throws {
        let pair = try TLSPair(client: trusting, server: try server(), name: name)
        let error = try #require(pair.shakeHands())
        #expect(error.verification == words)
        #expect(error.code != 0)
    }

    @Test func `a TLS stream refuses an expired certificate and an unknown authority`() throws {
        let late = try TLSPair(
            client: trusting, server: try server(expired: true), name: "push.example.com")
        #expect(late.shakeHands()?.verification == "certificate has expired")
        let stranger = try CertificateAuthority(name: "A Stranger")
        let strange = try TLSPair(
            client: trusting, server: try server(by: stranger), name: "push.example.com")
        #expect(strange.shakeHands()?.verification?.contains("issuer certificate") ?? false)
    }

    @Test(arguments: [
        ("wrong version number", "the server does not speak TLS on this port"),
        ("unexpected eof while reading", "the peer closed the connection"),
        ("tlsv1 alert no application protocol", "the server does not speak HTTP/2 (ALPN)"),
        ("a reason of a later OpenSSL", "a reason of a later OpenSSL"),
    ])
    func `failures of TLS are told in a sentence`(reason: String, sentence: String) {
        #expect(TLSError.sentence(of: reason) == sentence)
    }

    @Test func `failures of TLS are told without OpenSSL's numbers`() throws {
        let late = try TLSPair(
            client: trusting, server: try server(expired: true), name: "push.example.com")
        let error = try #require(late.shakeHands())
        #expect(error.description == "the certificate is refused: certificate has expired")
        #expect(!error.text.contains("routines"))
        let missing = #expect(throws: TLSError.self) {
            _ = try TLSContext.client(caFile: "/nowhere.pem")
        }
        #expect(
            missing?.text == "no trusted certificates in /nowhere.pem: No such file or directory")
    }

    @Test func `a TLS stream refuses an empty server name, which would switch the check off`()
        throws
    {
        let pair = try TLSPair(client: trusting, server: try server(), name: "")
        #expect(pair.shakeHands()?.text == "the server name is empty")
    }

    @Test func `a TLS stream carries many records in order and tells an orderly end from a cut`()
        throws
    {
        let pair = try TLSPair(client: trusting, server: try server(), name: "127.0.0.1")
        try #require(pair.shakeHands() == nil)
        let bytes = (0..<200_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        #expect(pair.send(bytes) == bytes)
        pair.client.close()
        #expect(pair.serverReads() == .closed)
    }

    @Test func `a TLS stream is accepted by the openssl program's own verification`() throws {
        let made = try authority.serverCertificate(
            names: ["push.example.com"], addresses: ["::1"])
        let certificate = try scratch.write(made.certificatePEM, "server.pem")
        let ca = scratch.url.appending(path: "ca.pem").path
        for check in [["-verify_hostname", "push.example.com"], ["-verify_ip", "::1"]] {
            let run = try OpenSSLProgram.run(
                ["verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", ca] + check
                    + [certificate])
            #expect(run.status == 0, "\(run.output)")
        }
        let wrong = try OpenSSLProgram.run([
            "verify", "-CAfile", ca, "-verify_hostname", "other.example.com", certificate,
        ])
        #expect(wrong.status != 0)
    }
}
