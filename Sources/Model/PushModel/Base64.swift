// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Base64 of RFC 4648, with padding.
package enum Base64 {
    private static let alphabet = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// The number of characters that encode this many bytes.
    package static func digits(bytes: Int) -> Int { (bytes + 2) / 3 * 4 }

    package static func encode(_ bytes: [UInt8]) -> String {
        var text: [UInt8] = []
        text.reserveCapacity(digits(bytes: bytes.count))
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = bytes[start..<min(start + 3, bytes.count)]
            let bits = group.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - group.count))
            for digit in 0..<4 {
                let padding = digit > group.count
                text.append(padding ? UInt8(ascii: "=") : alphabet[bits >> (18 - 6 * digit) & 63])
            }
        }
        assert(
            text.count == digits(bytes: bytes.count),
            "the text has room for exactly the digits of the bytes")
        return String(decoding: text, as: UTF8.self)
    }

    /// Decodes whole groups of four digits, padded where the last is short; nil for any other text.
    package static func decode(_ text: UnsafeRawBufferPointer) -> [UInt8]? {
        guard text.count % 4 == 0 else { return nil }
        var bytes: [UInt8] = []
        for start in stride(from: 0, to: text.count, by: 4) {
            let group = text[start..<start + 4]
            let digits = group.prefix { $0 != UInt8(ascii: "=") }
            let isLast = start + 4 == text.count
            guard digits.count == 4 || isLast && digits.count >= 2,
                group.dropFirst(digits.count).allSatisfy({ $0 == UInt8(ascii: "=") })
            else { return nil }
            var bits = 0
            for digit in digits {
                guard let value = alphabet.firstIndex(of: digit) else { return nil }
                bits = bits << 6 | value
            }
            bits <<= 6 * (4 - digits.count)
            for place in 0..<digits.count - 1 {
                bytes.append(UInt8(truncatingIfNeeded: bits >> (16 - 8 * place)))
            }
        }
        return bytes
    }

    /// Decodes a text with padding; nil for anything but what `encode` writes.
    package static func decode(exactly text: String) -> [UInt8]? {
        guard let bytes = Array(text.utf8).withUnsafeBytes({ decode($0) }), encode(bytes) == text
        else { return nil }
        return bytes
    }
}
