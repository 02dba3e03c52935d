// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import OpenSSL
internal import Testing

@Suite struct `An ES256 key` {
    @Test func `an ES256 key signs 64 bytes that its public half verifies and no other`() throws {
        let pair = try ES256Key.generate()
        let other = try ES256PublicKey(pem: ES256Key.generate().publicPEM)
        let key = try ES256Key(pem: pair.privatePEM)
        let publicKey = try ES256PublicKey(pem: pair.publicPEM)
        // Now and then r or s begins with a zero byte, and must be padded.
        for number in 0..<300 {
            let message = Array("message \(number)".utf8)
            let signature = try key.sign(message)
            #expect(signature.count == 64)
            #expect(publicKey.verify(message, signature: signature))
            if number == 0 {
                #expect(!other.verify(message, signature: signature))
                #expect(!publicKey.verify("another".utf8, signature: signature))
            }
        }
        #expect(try key.publicPEM() == pair.publicPEM)
    }

    @Test func `an ES256 key is understood by the openssl program, and understands its signatures`()
        throws
    {
        let scratch = try ScratchDirectory()
        let pair = try ES256Key.generate()
        let keyFile = try scratch.write(pair.privatePEM, "key.p8")
        let messageFile = try scratch.write("the message", "message")
        let signatureFile = scratch.url.appending(path: "signature")
        let run = try OpenSSLProgram.run([
            "dgst", "-sha256", "-sign", keyFile, "-out", signatureFile.path, messageFile,
        ])
        try #require(run.status == 0, "\(run.output)")
        let der = [UInt8](try Data(contentsOf: signatureFile))
        let publicKey = try ES256PublicKey(pem: pair.publicPEM)
        #expect(publicKey.verify("the message".utf8, signature: der))
        #expect(!publicKey.verify("the messagE".utf8, signature: der))
    }

    @Test func `an ES256 key refuses what is no key, no EC key, or on another curve, each by name`()
        throws
    {
        #expect(throws: ES256Error.self) { try ES256Key(pem: "") }
        let rsa = try OpenSSLProgram.run(["genpkey", "-algorithm", "RSA", "-quiet"])
        let wrongCurve = try OpenSSLProgram.run([
            "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384",
        ])
        #expect(throws: ES256Error.notEC) { try ES256Key(pem: Self.key(in: rsa.output)) }
        #expect(throws: ES256Error.wrongCurve) { try ES256Key(pem: wrongCurve.output) }
        do throws(ES256Error) {
            _ = try ES256Key(pem: "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
            Issue.record("garbage was read")
        } catch {
            guard case .unreadable = error else {
                Issue.record("\(error)")
                return
            }
        }
    }

    @Test(arguments: [
        ("", "it is not PEM, which has a line -----BEGIN PRIVATE KEY-----"),
        (
            "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            "its PEM is damaged or cut off"
        ),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "it holds a CERTIFICATE and no PRIVATE KEY"
        ),
        (
            "-----BEGIN PRIVAT\0E KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
            "its line -----BEGIN PRIVATE KEY----- is damaged"
        ),
        (
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
            "it is encrypted with a password, which cannot be given"
        ),
    ])
    func `an ES256 key says in words why a text is no key`(pem: String, words: String) {
        let error = #expect(throws: ES256Error.self) { try ES256Key(pem: pem) }
        #expect(error == .unreadable(words))
    }

    @Test func `an ES256 key leaves no error behind for other users of the library`() throws {
        let pair = try ES256Key.generate()
        _ = try? ES256Key(pem: "nonsense")
        #expect(try !ES256PublicKey(pem: pair.publicPEM).verify([1], signature: [2, 3]))
        // A later failure reports itself and not the one before.
        do throws(TLSError) {
            _ = try TLSContext.client(caFile: "/nowhere/ca.pem")
            Issue.record("a missing file was read")
        } catch {
            #expect(error.text.contains("No such file"), "\(error)")
        }
    }

    /// `genpkey` may print its progress before the key.
    private static func key(in output: String) -> String {
        output.range(of: "-----BEGIN").map { String(output[$0.lowerBound...]) } ?? output
    }
}
