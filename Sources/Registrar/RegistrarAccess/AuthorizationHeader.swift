// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The value of an `authorization` header, taken apart (RFC 9110, 11.4).
enum AuthorizationHeader: Equatable {
    case bearer(String)
    case appAttest(AppAttestParameters)
    /// A scheme that the registrar does not know.
    case other

    /// Longer values are refused unread: a token has at most 8 KiB, an assertion some 200 bytes.
    static let bytesMax = 12_288

    /// Nil for what is malformed.
    init?(_ value: String) {
        guard value.utf8.count <= Self.bytesMax,
            value.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
        else { return nil }
        let scheme = value.prefix { $0 != " " }
        let rest = value.dropFirst(scheme.count).drop { $0 == " " }
        switch scheme.lowercased() {
        case "bearer":
            guard !rest.isEmpty, rest.utf8.allSatisfy(Self.isTokenCharacter) else { return nil }
            self = .bearer(String(rest))
        case "appattest":
            guard let parameters = AppAttestParameters(rest) else { return nil }
            self = .appAttest(parameters)
        case "": return nil
        default: self = .other
        }
    }

    /// The characters of `b64token` in RFC 6750, 2.1.
    private static func isTokenCharacter(_ character: UInt8) -> Bool {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."),
            UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "+"), UInt8(ascii: "/"),
            UInt8(ascii: "="):
            true
        default: false
        }
    }
}

/// `credential="…", assertion="…", date="…"`, in any order. Parameters of other names are for
/// later versions, and ignored.
struct AppAttestParameters: Equatable {
    let credential: String
    let assertion: String
    let date: String

    private static let countMax = 8

    init?(_ text: Substring) {
        var values: [String: String] = [:]
        var rest = text
        while !rest.isEmpty {
            guard values.count < Self.countMax, let (name, value) = Self.parameter(&rest),
                values.updateValue(value, forKey: name) == nil
            else { return nil }
        }
        guard let credential = values["credential"], let assertion = values["assertion"],
            let date = values["date"]
        else { return nil }
        self.credential = credential
        self.assertion = assertion
        self.date = date
    }

    /// Takes `name="value"` and the comma after it. A value has no escapes: none of ours needs one.
    private static func parameter(_ rest: inout Substring) -> (name: String, value: String)? {
        let name = rest.prefix { $0.isASCII && $0.isLetter }
        rest = rest.dropFirst(name.count)
        guard !name.isEmpty, rest.hasPrefix("=\"") else { return nil }
        rest = rest.dropFirst(2)
        let value = rest.prefix { $0 != "\"" && $0 != "\\" }
        rest = rest.dropFirst(value.count)
        guard rest.first == "\"" else { return nil }
        rest = rest.dropFirst().drop { $0 == " " }
        if rest.first == "," {
            rest = rest.dropFirst().drop { $0 == " " }
            // A comma announces another parameter.
            guard !rest.isEmpty else { return nil }
        } else if !rest.isEmpty {
            return nil
        }
        return (name.lowercased(), String(value))
    }
}
