// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Base64 of RFC 4648, section 5, without padding: the form of JSON Web Tokens, Apple's among
/// them, and of what the registrar issues.
package enum Base64URL {
    package static func encode(_ bytes: [UInt8]) -> String {
        let text = Base64.encode(bytes).utf8.compactMap { character -> UInt8? in
            switch character {
            case UInt8(ascii: "+"): UInt8(ascii: "-")
            case UInt8(ascii: "/"): UInt8(ascii: "_")
            case UInt8(ascii: "="): nil
            default: character
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    /// Nil for anything but what `encode` writes: a text has one value, and a value one text.
    package static func decode(_ text: some StringProtocol) -> [UInt8]? {
        var digits: [UInt8] = []
        digits.reserveCapacity(text.utf8.count + 3)
        for character in text.utf8 {
            switch character {
            case UInt8(ascii: "-"): digits.append(UInt8(ascii: "+"))
            case UInt8(ascii: "_"): digits.append(UInt8(ascii: "/"))
            case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="): return nil
            default: digits.append(character)
            }
        }
        while digits.count % 4 != 0 { digits.append(UInt8(ascii: "=")) }
        guard let bytes = digits.withUnsafeBytes({ Base64.decode($0) }), encode(bytes) == text
        else { return nil }
        return bytes
    }
}
