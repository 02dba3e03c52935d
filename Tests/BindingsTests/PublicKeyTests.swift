// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import OpenSSL
internal import Testing

@Suite struct `A public key made of its numbers` {
    @Test func `a P-256 key is made of its point, and only of one on the curve`() throws {
        let pair = try ES256Key.generate()
        let key = try ES256Key(pem: pair.privatePEM)
        let point = try #require(try ES256PublicKey(pem: pair.publicPEM).point)
        #expect(point.count == 65 && point.first == 4)
        let made = try ES256PublicKey(point: point)
        #expect(made.point == point)
        let message = Array("message".utf8)
        #expect(made.verify(message, signature: try key.sign(message)))
        let der = try key.signDER(message)
        #expect(made.verify(message, der: der))
        #expect(!made.verify(message, der: try key.sign(message)))
        #expect(!made.verify(message + [0], der: der) && !made.verify(message, der: []))
        var changed = point
        changed[64] ^= 1
        for wrong in [
            changed, [], Array(point.dropLast()), point + [0], [2] + point[1...32],
            [6] + point.dropFirst(), [4] + [UInt8](repeating: 0, count: 64),
        ] {
            #expect(throws: ES256Error.self) { try ES256PublicKey(point: wrong) }
        }
    }

    @Test(arguments: [2048, 3072])
    func `an RSA key verifies what the openssl program signs with it`(bits: Int) throws {
        let scratch = try ScratchDirectory()
        let keyFile = scratch.url.appending(path: "key.pem").path
        let made = try OpenSSLProgram.run([
            "genpkey", "-quiet", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:\(bits)", "-out",
            keyFile,
        ])
        try #require(made.status == 0, "\(made.output)")
        let printed = try OpenSSLProgram.run(["rsa", "-in", keyFile, "-noout", "-modulus"])
        let modulus = try #require(Self.bytes(printed.output))
        let file = try scratch.write("the message", "message")
        func signature(_ digest: String) throws -> [UInt8] {
            let output = scratch.url.appending(path: "signature")
            _ = try OpenSSLProgram.run([
                "dgst", digest, "-sign", keyFile, "-out", output.path, file,
            ])
            return [UInt8](try Data(contentsOf: output))
        }
        let key = try RS256PublicKey(modulus: [0] + modulus, exponent: [0, 1, 0, 1])
        let message = Array("the message".utf8)
        let right = try signature("-sha256")
        #expect(key.verify(message, signature: right))
        #expect(!key.verify(message + [0], signature: right))
        #expect(!key.verify(message, signature: right.dropLast()))
        #expect(!key.verify(message, signature: try signature("-sha512")))
        #expect(!key.verify(message, signature: []))
        #expect(throws: RS256Error.exponent) {
            try RS256PublicKey(modulus: modulus, exponent: [2])
        }
        #expect(throws: RS256Error.exponent) {
            try RS256PublicKey(modulus: modulus, exponent: [1])
        }
        #expect(throws: RS256Error.exponent) {
            try RS256PublicKey(modulus: modulus, exponent: [1, 0, 0, 0, 1])
        }
        #expect(throws: RS256Error.exponent) { try RS256PublicKey(modulus: modulus, exponent: []) }
    }

    @Test(arguments: [(2047, false), (2048, true), (8192, true), (8193, false), (0, false)])
    func `an RSA key has 2048 to 8192 bits`(bits: Int, isAccepted: Bool) {
        var modulus = [UInt8](repeating: 0xFF, count: (bits + 7) / 8)
        if !modulus.isEmpty { modulus[0] = 0xFF >> UInt8(modulus.count * 8 - bits) }
        if isAccepted {
            #expect(throws: Never.self) {
                try RS256PublicKey(modulus: modulus, exponent: [1, 0, 1])
            }
        } else {
            #expect(throws: RS256Error.modulusBits(bits)) {
                try RS256PublicKey(modulus: modulus, exponent: [1, 0, 1])
            }
        }
    }

    private static func bytes(_ output: String) -> [UInt8]? {
        let digits = Array(output.dropFirst("Modulus=".count).trimmingCharacters(in: .newlines))
        let pairs = stride(from: 0, to: digits.count, by: 2)
        let bytes = pairs.compactMap { UInt8(String(digits[$0..<$0 + 2]), radix: 16) }
        return bytes.count == digits.count / 2 ? bytes : nil
    }
}
