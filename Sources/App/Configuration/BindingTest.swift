// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FoundationEssentials
internal import Intake
internal import PushModel
internal import RecordFormats

/// An example of a topic's records, and what its binding is to make of it: an entry of
/// `kafka.eventTests.<topic>`.
package struct BindingTest: Sendable, Hashable {
    package var name: String
    package private(set) var key: [UInt8]?
    package private(set) var value: [UInt8]?
    package private(set) var headers: [String: [UInt8]] = [:]
    package private(set) var expected: [String: String] = [:]

    package static let countMax = 1000
    private static let expectations = [
        "outcome", "subjects", "installation", "kinds", "classes", "pushType", "payload",
        "collapseID", "priority",
    ]

    /// - Parameter number: names a test without a name.
    init(_ source: PushTemplate.Source, number: Int) throws(Complaint) {
        guard case .map(let members) = source else {
            throw Complaint(
                wrong: "has a test that is no map", remedy: "write name, key, value and expect")
        }
        name = "test \(number)"
        for (member, value) in members {
            switch (member, value) {
            case ("name", .text(let text)): name = text
            case ("name", .literal(let text)): name = text
            case ("key", _): key = Self.bytes(value)
            case ("value", _): self.value = Self.bytes(value)
            case ("headers", .map(let headers)):
                for (name, value) in headers { self.headers[name] = Self.bytes(value) ?? [] }
            case ("expect", .map(let expected)):
                for (word, value) in expected {
                    guard Self.expectations.contains(word) else {
                        throw Complaint(
                            wrong: "\(name) expects \(word), which nobody looks at",
                            remedy: "it is one of \(Self.expectations.joined(separator: ", "))")
                    }
                    self.expected[word] = Self.canonical(value.json)
                }
            default:
                throw Complaint(
                    wrong: "\(name) has \(member), which a test has not",
                    remedy: "write name, key, value, headers and expect")
            }
        }
        guard !expected.isEmpty else {
            throw Complaint(
                wrong: "\(name) expects nothing",
                remedy: "add expect, with \(Self.expectations.joined(separator: ", "))")
        }
    }

    /// Text as it is; anything else as JSON.
    private static func bytes(_ source: PushTemplate.Source) -> [UInt8]? {
        switch source {
        case .nothing: nil
        case .text(let text): Array(text.utf8)
        default: Array(source.json.utf8)
        }
    }

    /// JSON in one form, so that two texts of one value are equal.
    package static func canonical(_ json: String) -> String {
        guard let value = try? JSONDecoder().decode(AnyJSON.self, from: Data(json.utf8)) else {
            return json
        }
        return value.text
    }
}

/// A JSON value that is written in one form.
private enum AnyJSON: Decodable {
    case scalar(String)
    case list([AnyJSON])
    case map([String: AnyJSON])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .scalar("null")
        } else if let value = try? container.decode(Bool.self) {
            self = .scalar("\(value)")
        } else if let value = try? container.decode(Int64.self) {
            self = .scalar("\(value)")
        } else if let value = try? container.decode(Double.self) {
            self = .scalar("\(value)")
        } else if let value = try? container.decode(String.self) {
            self = .scalar(JSONText.string(value).line)
        } else if let items = try? container.decode([AnyJSON].self) {
            self = .list(items)
        } else {
            self = .map(try container.decode([String: AnyJSON].self))
        }
    }

    var text: String {
        switch self {
        case .scalar(let text): text
        case .list(let items): "[" + items.map(\.text).joined(separator: ",") + "]"
        case .map(let members):
            "{"
                + members.sorted { $0.key < $1.key }
                .map { JSONText.string($0.key).line + ":" + $0.value.text }.joined(separator: ",")
                + "}"
        }
    }
}
