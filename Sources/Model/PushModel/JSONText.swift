// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A JSON value that is printed as a schema or as a log line. Members keep their order.
package indirect enum JSONText: ExpressibleByStringInterpolation, Sendable {
    case string(String)
    /// A number, `true` or `false`, printed as it is.
    case literal(String)
    case array([JSONText])
    case object([(String, JSONText)])

    package init(stringLiteral value: String) { self = .string(value) }

    /// Makes a number of a word that YAML would read as a number, and a string of any other.
    package static func word(_ word: String) -> JSONText {
        Int(word) == nil ? .string(word) : .literal(word)
    }

    package func printed(indent: String = "") -> String {
        let inner = indent + "  "
        switch self {
        case .string(let text):
            return Self.quoted(text)
        case .literal(let text):
            return text
        case .array(let items):
            return "[" + items.map { $0.printed(indent: inner) }.joined(separator: ", ") + "]"
        case .object(let members) where members.isEmpty:
            return "{}"
        case .object(let members):
            let lines = members.map { inner + Self.quoted($0) + ": " + $1.printed(indent: inner) }
            return "{\n" + lines.joined(separator: ",\n") + "\n" + indent + "}"
        }
    }

    /// The JSON text without line breaks or spaces between its parts.
    package var line: String {
        var line = ""
        append(to: &line)
        return line
    }

    private func append(to line: inout String) {
        func list<Item>(_ items: [Item], _ append: (Item) -> Void) {
            for (index, item) in items.enumerated() {
                if index > 0 { line += "," }
                append(item)
            }
        }
        switch self {
        case .string(let text): Self.append(quoted: text, to: &line)
        case .literal(let text): line += text
        case .array(let items):
            line += "["
            list(items) { $0.append(to: &line) }
            line += "]"
        case .object(let members):
            line += "{"
            list(members) { name, value in
                Self.append(quoted: name, to: &line)
                line += ":"
                value.append(to: &line)
            }
            line += "}"
        }
    }

    private static func quoted(_ text: String) -> String {
        var quoted = ""
        append(quoted: text, to: &quoted)
        return quoted
    }

    /// Escapes, beyond what JSON demands, the characters that a terminal would obey.
    private static func append(quoted text: String, to line: inout String) {
        line += "\""
        if text.utf8.allSatisfy(isPlain) {
            line += text
        } else {
            for scalar in text.unicodeScalars { append(escaped: scalar, to: &line) }
        }
        line += "\""
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        (0x20...0x7E).contains(byte) && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
    }

    private static func append(escaped scalar: Unicode.Scalar, to line: inout String) {
        switch scalar {
        case "\"": line += "\\\""
        case "\\": line += "\\\\"
        case "\n": line += "\\n"
        case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}", "\u{2028}", "\u{2029}":
            let digits = String(scalar.value, radix: 16)
            line += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        default: line.unicodeScalars.append(scalar)
        }
    }
}
