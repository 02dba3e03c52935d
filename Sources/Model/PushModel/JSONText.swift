// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Just enough JSON to print a schema or a line of the log, its members in the order given.
package indirect enum JSONText: ExpressibleByStringInterpolation, Sendable {
    case string(String)
    /// A number, `true` or `false`, printed as it is.
    case literal(String)
    case array([JSONText])
    case object([(String, JSONText)])

    package init(stringLiteral value: String) { self = .string(value) }

    /// A word that YAML would read as a number is one in the schema too.
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

    /// Without a line break or a space.
    package var line: String {
        switch self {
        case .string(let text): Self.quoted(text)
        case .literal(let text): text
        case .array(let items): "[" + items.map(\.line).joined(separator: ",") + "]"
        case .object(let members):
            "{" + members.map { Self.quoted($0) + ":" + $1.line }.joined(separator: ",") + "}"
        }
    }

    /// What a terminal would obey is escaped too, beyond what JSON demands.
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
