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
        switch self {
        case .string(let text): Self.quoted(text)
        case .literal(let text): text
        case .array(let items): "[" + items.map(\.line).joined(separator: ",") + "]"
        case .object(let members):
            "{" + members.map { Self.quoted($0) + ":" + $1.line }.joined(separator: ",") + "}"
        }
    }

    /// Escapes, beyond what JSON demands, the characters that a terminal would obey.
    private static func quoted(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": escaped += "\\\""
            case "\\": escaped += "\\\\"
            case "\n": escaped += "\\n"
            case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}", "\u{2028}", "\u{2029}":
                let digits = String(scalar.value, radix: 16)
                escaped += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return "\"" + escaped + "\""
    }
}
