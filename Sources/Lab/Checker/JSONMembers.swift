// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation

/// The members of a JSON object, read by Foundation's parser.
struct JSONMembers {
    private let members: [String: Any]

    init(_ line: Span<UInt8>) throws(LineProblem) {
        try self.init(data: line.withUnsafeBufferPointer { Data($0) })
    }

    init(data: Data) throws(LineProblem) {
        guard let members = try? JSONSerialization.jsonObject(with: data) as? [String: Any] else {
            throw LineProblem("not a JSON object")
        }
        self.members = members
    }

    private init(members: [String: Any]) { self.members = members }

    func has(_ name: String) -> Bool { members[name].map { !($0 is NSNull) } ?? false }

    func text(_ name: String) -> String? { members[name] as? String }

    /// A whole number; nil for another number, for `true` and `false`, and for other types.
    func integer(_ name: String) -> Int64? {
        // "c" is Foundation's type code of a Boolean; `is Bool` is true for 0 and 1 as well.
        guard let number = members[name] as? NSNumber,
            number.objCType.pointee != CChar(UInt8(ascii: "c"))
        else { return nil }
        // Foundation reads a whole number exactly, so nothing is rounded here.
        let value = number.int64Value
        return NSNumber(value: value) == number ? value : nil
    }

    /// Whether the member is `true`; false if it is absent.
    func flag(_ name: String) -> Bool { members[name] as? Bool ?? false }

    func object(_ name: String) -> JSONMembers? {
        (members[name] as? [String: Any]).map { JSONMembers(members: $0) }
    }

    /// An array of objects; nil for any other type.
    func objects(_ name: String) -> [JSONMembers]? {
        (members[name] as? [[String: Any]])?.map { JSONMembers(members: $0) }
    }

    /// The bytes of a string, or an object as JSON; nil for other types.
    func data(_ name: String) -> Data? {
        if let text = text(name) { return Data(text.utf8) }
        guard let object = members[name] as? [String: Any] else { return nil }
        return try? JSONSerialization.data(withJSONObject: object)
    }

    func texts(_ name: String) -> [String]? { members[name] as? [String] }

    func required(_ name: String) throws(LineProblem) -> Int64 {
        guard let value = integer(name) else { throw .missing(name) }
        return value
    }

    func required(_ name: String) throws(LineProblem) -> String {
        guard let value = text(name) else { throw .missing(name) }
        return value
    }

    func coordinates() throws(LineProblem) -> Coordinates {
        guard let partition = Int32(exactly: try required("partition") as Int64) else {
            throw .missing("partition")
        }
        return Coordinates(
            topic: try required("topic"), partition: partition, offset: try required("offset"))
    }

    /// An RFC 3339 instant in milliseconds since 1970.
    func instant(_ name: String) -> Int64? {
        guard let text = text(name) else { return nil }
        let date =
            (try? Date.ISO8601FormatStyle(includingFractionalSeconds: true).parse(text))
            ?? (try? Date.ISO8601FormatStyle().parse(text))
        return date.map { Int64(($0.timeIntervalSince1970 * 1000).rounded()) }
    }
}
