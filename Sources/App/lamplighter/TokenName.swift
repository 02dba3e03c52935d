// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import OpenSSL
import PushModel

/// The name shown in place of a device token: the first 16 hexadecimal digits of its SHA-256.
struct TokenName: Hashable, CustomStringConvertible {
    let description: String

    /// - Parameter token: the bytes of the token, not hexadecimal digits.
    init(_ token: [UInt8]) { description = Hexadecimal.encode(SHA256Digest.of(token).prefix(8)) }

    /// The name as a number, of which a set takes less memory.
    var number: UInt64 { UInt64(description, radix: 16)! }

    init(number: UInt64) {
        let digits = String(number, radix: 16)
        description = String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// The number in the first 8 bytes of a token's SHA-256.
    static func number(_ digest: [UInt8]) -> UInt64 {
        digest.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Parses a name that a user wrote; nil unless it is 16 hexadecimal digits.
    init?(written text: String) {
        guard let bytes = Hexadecimal.decode(text), bytes.count == 8 else { return nil }
        description = Hexadecimal.encode(bytes)
    }
}

/// Makes untrusted text safe for a terminal: nothing in it can move the cursor, hide other text or
/// look like another line.
enum TerminalText {
    /// Quotes and backslashes are escaped too, so that the text may stand in quotes.
    static func visible(_ text: String) -> String {
        visible(
            sentence: text.unicodeScalars.reduce(into: "") { escaped, scalar in
                if scalar == "\\" || scalar == "\"" { escaped += "\\" }
                escaped.unicodeScalars.append(scalar)
            })
    }

    /// Of a sentence of ours that has such text in it.
    static func visible(sentence: String) -> String {
        sentence.unicodeScalars.reduce(into: "") { visible, scalar in
            if isVisible(scalar) {
                visible.unicodeScalars.append(scalar)
            } else {
                visible += "\\u{\(String(scalar.value, radix: 16))}"
            }
        }
    }

    /// Makes bytes visible; those that are not UTF-8 become escapes such as `\xff`.
    static func visible(_ bytes: [UInt8]) -> String {
        if let text = String(validating: bytes, as: UTF8.self) { return visible(text) }
        return bytes.map { byte in
            (0x20...0x7E).contains(byte)
                ? visible(String(UnicodeScalar(byte))) : "\\x" + Hexadecimal.encode([byte])
        }.joined()
    }

    /// JSON with escapes in place of the control characters that JSON itself allows in a text.
    static func visible(json: String) -> String {
        guard json.unicodeScalars.contains(where: { !isVisible($0) }) else { return json }
        var visible = ""
        for scalar in json.unicodeScalars {
            if isVisible(scalar) {
                visible.unicodeScalars.append(scalar)
            } else {
                for unit in String(scalar).utf16 {
                    let digits = String(unit, radix: 16)
                    visible += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                }
            }
        }
        return visible
    }

    private static func isVisible(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator,
            .paragraphSeparator:
            false
        case .spaceSeparator: scalar == " "
        default: true
        }
    }
}
