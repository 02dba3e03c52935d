// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Why numbers are not an RSA key that is accepted for RS256.
package enum RS256Error: Error, Hashable, Sendable, CustomStringConvertible {
    /// Fewer than 2048 bits, which RFC 7518, 3.3, forbids, or more than 8192, which take long.
    case modulusBits(Int)
    /// Even, below 3, or above 32 bits.
    case exponent
    /// OpenSSL did not take the numbers; with its text.
    case unreadable(String)

    package var description: String {
        switch self {
        case .modulusBits(let bits): "the RSA key has \(bits) bits; 2048 to 8192 are accepted"
        case .exponent: "the RSA key's exponent is even, below 3 or above 32 bits"
        case .unreadable(let text): "the RSA key cannot be read: \(text)"
        }
    }
}

/// An RSA key that verifies RSASSA-PKCS1-v1_5 over SHA-256 (RFC 7518, 3.3).
package struct RS256PublicKey: Sendable {
    private let key: EVPKey

    private static let modulusBits = 2048...8192
    private static let exponentBytesMax = 4

    /// Both big-endian, as a JSON Web Key has them.
    package init(modulus: [UInt8], exponent: [UInt8]) throws(RS256Error) {
        let modulus = Array(modulus.drop { $0 == 0 })
        let exponent = Array(exponent.drop { $0 == 0 })
        guard let low = exponent.last, low & 1 == 1, exponent != [1],
            exponent.count <= Self.exponentBytesMax
        else { throw .exponent }
        let bits = modulus.count * 8 - (modulus.first?.leadingZeroBitCount ?? 0)
        guard Self.modulusBits.contains(bits) else { throw .modulusBits(bits) }
        let numbers = DER.sequence([DER.integer(modulus), DER.integer(exponent)])
        let algorithm = DER.sequence([Self.rsaEncryption, DER.none])
        do throws(TLSError) {
            key = try EVPKey(publicKeyDER: DER.sequence([algorithm, DER.bitString(numbers)]))
        } catch { throw .unreadable(error.text) }
        guard key.isRSA, key.bits == bits else { throw .unreadable("it is another key") }
    }

    /// The object identifier 1.2.840.113549.1.1.1 (RFC 8017, A.1).
    private static let rsaEncryption: [UInt8] = [
        0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01,
    ]

    /// Whether `signature` is this key's for `message`.
    package func verify(_ message: [UInt8], signature: [UInt8]) -> Bool {
        key.verifySHA256(message, signature: signature)
    }
}

/// Writes the few kinds of ASN.1 DER values (X.690) that a public key is made of.
package enum DER {
    package static func sequence(_ parts: [[UInt8]]) -> [UInt8] {
        value(tag: 0x30, Array(parts.joined()))
    }

    /// A positive number, big-endian.
    package static func integer(_ magnitude: [UInt8]) -> [UInt8] {
        // A first bit that is set would make it negative.
        value(tag: 0x02, (magnitude.first ?? 0) & 0x80 == 0 ? magnitude : [0] + magnitude)
    }

    package static func bitString(_ bytes: [UInt8]) -> [UInt8] { value(tag: 0x03, [0] + bytes) }

    package static func octetString(_ bytes: [UInt8]) -> [UInt8] { value(tag: 0x04, bytes) }

    /// NULL, the parameters of an RSA key.
    static let none: [UInt8] = [0x05, 0x00]

    package static func value(tag: UInt8, _ content: [UInt8]) -> [UInt8] {
        [tag] + length(content.count) + content
    }

    private static func length(_ count: Int) -> [UInt8] {
        guard count >= 0x80 else { return [UInt8(count)] }
        var bytes: [UInt8] = []
        var rest = count
        while rest > 0 {
            bytes.insert(UInt8(truncatingIfNeeded: rest), at: 0)
            rest >>= 8
        }
        return [0x80 | UInt8(bytes.count)] + bytes
    }
}
