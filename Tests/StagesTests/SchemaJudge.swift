// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation

/// A JSON value that distinguishes `true` from `1`, unlike `JSONSerialization`.
enum JSON: Decodable, Equatable {
    case null
    case bool(Bool)
    case number(Double)
    case string(String)
    case array([JSON])
    case object([String: JSON])

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            self = .null
        } else if let value = try? container.decode(Bool.self) {
            self = .bool(value)
        } else if let value = try? container.decode(Double.self) {
            self = .number(value)
        } else if let value = try? container.decode(String.self) {
            self = .string(value)
        } else if let value = try? container.decode([JSON].self) {
            self = .array(value)
        } else {
            self = .object(try container.decode([String: JSON].self))
        }
    }

    static func parsed(_ text: String) throws -> JSON {
        try JSONDecoder().decode(JSON.self, from: Data(text.utf8))
    }

    /// JSON again, of numbers that are exact.
    var text: String {
        switch self {
        case .null: "null"
        case .bool(let value): "\(value)"
        case .number(let value): Int64(exactly: value).map(String.init) ?? "\(value)"
        case .string(let value):
            String(decoding: try! JSONEncoder().encode(value), as: UTF8.self)
        case .array(let items): "[" + items.map(\.text).joined(separator: ",") + "]"
        case .object(let members):
            "{" + members.map { "\"\($0)\":" + $1.text }.joined(separator: ",") + "}"
        }
    }

    var object: [String: JSON]? { if case .object(let members) = self { members } else { nil } }

    func isOf(type: String) -> Bool {
        switch (type, self) {
        case ("null", .null), ("boolean", .bool), ("number", .number), ("string", .string),
            ("array", .array), ("object", .object):
            true
        case ("integer", .number(let value)): value == value.rounded()
        default: false
        }
    }
}

/// Validates with the part of JSON Schema 2020-12 that our schemas use. A keyword outside it is an
/// error, so that no demand of a schema goes unheard.
struct SchemaJudge {
    struct UnknownKeyword: Error {
        let keyword: String
    }

    let root: JSON

    func accepts(_ value: JSON) throws -> Bool { try accepts(value, root) }

    private func accepts(_ value: JSON, _ schema: JSON) throws -> Bool {
        guard let keywords = schema.object else { throw UnknownKeyword(keyword: "\(schema)") }
        for (keyword, demand) in keywords
        where try !meets(value, keyword, demand, beside: keywords) {
            return false
        }
        return true
    }

    private func meets(
        _ value: JSON, _ keyword: String, _ demand: JSON, beside keywords: [String: JSON]
    ) throws -> Bool {
        switch (keyword, demand) {
        case ("$schema", _), ("$id", _), ("$defs", _), ("title", _), ("description", _),
            ("then", _):
            return true
        case ("type", .string(let type)): return value.isOf(type: type)
        case ("type", .array(let types)):
            return types.contains {
                if case .string(let type) = $0 { value.isOf(type: type) } else { false }
            }
        case ("enum", .array(let values)): return values.contains(value)
        case ("const", _): return value == demand
        case ("anyOf", .array(let schemas)): return try schemas.contains { try accepts(value, $0) }
        case ("allOf", .array(let schemas)):
            return try schemas.allSatisfy { try accepts(value, $0) }
        case ("not", _): return try !accepts(value, demand)
        case ("if", _):
            return try !accepts(value, demand) || accepts(value, keywords["then"] ?? .object([:]))
        case ("$ref", .string(let reference)):
            let name = String(reference.dropFirst("#/$defs/".count))
            return try accepts(value, root.object?["$defs"]?.object?[name] ?? .null)
        default: return try fits(value, keyword, demand, beside: keywords)
        }
    }

    /// Keywords that say something about one kind of value only.
    private func fits(
        _ value: JSON, _ keyword: String, _ demand: JSON, beside keywords: [String: JSON]
    ) throws -> Bool {
        switch (keyword, demand, value) {
        case ("minimum", .number(let bound), .number(let number)): return number >= bound
        case ("maximum", .number(let bound), .number(let number)): return number <= bound
        case ("minLength", .number(let bound), .string(let text)):
            return text.unicodeScalars.count >= Int(bound)
        case ("maxLength", .number(let bound), .string(let text)):
            return text.unicodeScalars.count <= Int(bound)
        case ("pattern", .string(let pattern), .string(let text)):
            return text.range(of: pattern, options: .regularExpression) != nil
        case ("minItems", .number(let bound), .array(let items)): return items.count >= Int(bound)
        case ("maxItems", .number(let bound), .array(let items)): return items.count <= Int(bound)
        case ("items", _, .array(let items)):
            return try items.allSatisfy { try accepts($0, demand) }
        case ("required", .array(let names), .object(let members)):
            return names.allSatisfy {
                if case .string(let name) = $0 { members[name] != nil } else { false }
            }
        case ("properties", .object(let schemas), .object(let members)):
            return try members.allSatisfy { name, value in
                try schemas[name].map { try accepts(value, $0) } ?? true
            }
        case ("additionalProperties", .bool(false), .object(let members)):
            let known = keywords["properties"]?.object ?? [:]
            return members.keys.allSatisfy { known[$0] != nil }
        case ("minimum", _, _), ("maximum", _, _), ("minLength", _, _), ("maxLength", _, _),
            ("pattern", _, _), ("minItems", _, _), ("maxItems", _, _), ("items", _, _),
            ("required", _, _), ("properties", _, _), ("additionalProperties", _, _):
            return true
        default: throw UnknownKeyword(keyword: keyword)
        }
    }
}
