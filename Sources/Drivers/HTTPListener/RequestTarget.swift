// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation

/// What a request asks for, as the client sent it (RFC 9112, 3.2).
struct RequestTarget {
    /// Percent-encoded.
    var path: String
    /// Without the question mark; empty for none.
    var query: String

    init(_ text: String) {
        var rest = text.utf8[...]
        // The absolute form, as a proxy is sent it, names the authority before the path.
        if rest.first != UInt8(ascii: "/"), let scheme = text.firstRange(of: "://") {
            rest = text.utf8[scheme.upperBound...].drop {
                $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?")
            }
        }
        let path = rest.prefix { $0 != UInt8(ascii: "?") }
        let query = rest[path.endIndex...].dropFirst().prefix { $0 != UInt8(ascii: "#") }
        self.path = path.isEmpty ? "/" : String(Substring(path))
        self.query = String(Substring(query))
    }

    /// The query's parameters, of which the values are decoded. If a name occurs twice, the first
    /// value counts.
    var parameters: [String: String] {
        var parts = query.utf8.split(
            separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
        if parts.last?.isEmpty == true { parts.removeLast() }
        var parameters: [String: String] = [:]
        for part in parts {
            let name = part.prefix { $0 != UInt8(ascii: "=") }
            let value = String(Substring(part[name.endIndex...].dropFirst()))
            let key = String(Substring(name))
            if parameters[key] == nil {
                parameters[key] = value.removingPercentEncoding ?? value
            }
        }
        return parameters
    }

    /// Whether the query is UTF-8 once its escapes are decoded. What is not would be replaced, and the
    /// question be about another name.
    var hasQueryOfUTF8: Bool {
        // NIO replaces what is not UTF-8 before it is encoded.
        if query.unicodeScalars.contains("\u{FFFD}") { return false }
        var bytes: [UInt8] = []
        var rest = query.utf8[...]
        while let byte = rest.popFirst() {
            let digits = String(rest.prefix(2)) ?? ""
            let escaped = digits.utf8.count == 2 ? UInt8(digits, radix: 16) : nil
            if byte == UInt8(ascii: "%"), let escaped {
                bytes.append(escaped)
                rest = rest.dropFirst(2)
            } else {
                bytes.append(byte)
            }
        }
        return String(validating: bytes, as: UTF8.self) != nil
    }
}
