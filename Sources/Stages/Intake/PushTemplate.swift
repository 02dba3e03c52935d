// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats
internal import Simdjson

/// The payload of a binding's pushes: JSON in which fields of the record are filled in. Whatever the
/// fields hold, the result is JSON: text is escaped, and values keep their types.
package struct PushTemplate: Sendable, Equatable {
    /// A value of the template as it was written.
    package indirect enum Source: Sendable, Equatable {
        case nothing
        /// A number, `true` or `false`, as JSON.
        case literal(String)
        case text(String)
        case list([Source])
        case map([(name: String, value: Source)])

        package static func == (left: Source, right: Source) -> Bool { left.json == right.json }

        /// The template as one line of JSON.
        package var json: String { written.line }

        private var written: JSONText {
            switch self {
            case .nothing: .literal("null")
            case .literal(let text): .literal(text)
            case .text(let text): .string(text)
            case .list(let items): .array(items.map(\.written))
            case .map(let members): .object(members.map { ($0.name, $0.value.written) })
            }
        }
    }

    package enum FieldType: String, CaseIterable, Sendable {
        case string, integer, number, boolean, object, array
    }

    indirect enum Node: Sendable, Equatable {
        case literal([UInt8])
        /// Literal text with values in it.
        case text([Part])
        case value(Value)
        case list([Node])
        case map([Member])
    }

    enum Part: Sendable, Equatable {
        case literal(String)
        case value(Origin)
    }

    struct Member: Sendable, Equatable {
        let name: String
        let node: Node
    }

    /// A value of the record that keeps its type.
    struct Value: Sendable, Equatable {
        let origin: Origin
        var type: FieldType?
        /// What stands for a value that is missing; nil makes that a mistake.
        var standIn: StandIn?
    }

    enum StandIn: Sendable, Equatable {
        case json([UInt8])
        /// The member is left out.
        case nothing
    }

    /// Where a value comes from.
    enum Origin: Sendable, Equatable {
        case key
        case header(String)
        case field(FieldPath)
        /// The record's time in whole seconds since 1970.
        case time

        init?(_ text: String) {
            switch text {
            case "key": self = .key
            case "time": self = .time
            default:
                if text.hasPrefix("header:"), text.count > "header:".count {
                    self = .header(String(text.dropFirst("header:".count)))
                } else if let path = FieldPath(text) {
                    self = .field(path)
                } else {
                    return nil
                }
            }
        }

        var text: String {
            switch self {
            case .key: "the record's key"
            case .header(let name): "header \(name)"
            case .field(let path): path.text
            case .time: "time"
            }
        }
    }

    /// The template as it was written, as JSON.
    package let text: String
    let root: Node

    package init(_ source: Source) throws(PushTemplateError) {
        text = source.json
        root = try Self.node(source, at: "")
        guard case .map = root else {
            throw PushTemplateError(place: "", problem: "a payload is a map")
        }
    }

    // MARK: Parsing

    private static func node(_ source: Source, at place: String) throws(PushTemplateError) -> Node {
        switch source {
        case .nothing: return .literal(Array("null".utf8))
        case .literal(let text): return .literal(Array(text.utf8))
        case .text(let text): return try Self.text(text, at: place)
        case .list(let items):
            var nodes: [Node] = []
            for (index, item) in items.enumerated() {
                nodes.append(try node(item, at: "\(place)/\(index)"))
            }
            return .list(nodes)
        case .map(let members):
            if members.contains(where: { $0.name == "$field" }) {
                return .value(try value(members, at: place))
            }
            var written: [Member] = []
            for member in members {
                written.append(
                    Member(
                        name: member.name,
                        node: try node(member.value, at: "\(place)/\(member.name)")))
            }
            return .map(written)
        }
    }

    private static func value(
        _ members: [(name: String, value: Source)], at place: String
    ) throws(PushTemplateError) -> Value {
        var value: Value?
        var type: FieldType?
        var standIn: StandIn?
        var written: Source?
        for member in members {
            switch (member.name, member.value) {
            case ("$field", .text(let text)):
                guard let origin = Origin(text) else { throw badOrigin(text, place) }
                value = Value(origin: origin)
            case ("type", .text(let word)):
                guard let known = FieldType(rawValue: word) else {
                    throw PushTemplateError(
                        place: place,
                        problem: "type is one of "
                            + FieldType.allCases.map(\.rawValue).joined(separator: ", "))
                }
                type = known
            case ("default", .nothing): standIn = .nothing
            case ("default", let source):
                standIn = .json(Array(source.json.utf8))
                written = source
            default:
                throw PushTemplateError(
                    place: place, problem: "beside $field there can be type and default alone")
            }
        }
        guard var value else { throw badOrigin("", place) }
        if let type, let written, !type.matches(written) {
            throw PushTemplateError(
                place: place,
                problem: "the default \(written.json) is not of type \(type.rawValue)")
        }
        value.type = type
        value.standIn = standIn
        return value
    }

    private static func badOrigin(_ text: String, _ place: String) -> PushTemplateError {
        PushTemplateError(
            place: place,
            problem: "'\(text)' is no JSON pointer such as /order/id, nor key, header:name or time")
    }

    /// Text in which `{…}` stands for a value. Text that is one value and nothing else keeps the
    /// value's type. A brace is written twice where it is meant as one.
    private static func text(_ text: String, at place: String) throws(PushTemplateError) -> Node {
        var parts: [Part] = []
        var literal = ""
        var rest = Substring(text)
        while let character = rest.popFirst() {
            if character != "{", character != "}" {
                literal.append(character)
                continue
            }
            if rest.first == character {
                rest.removeFirst()
                literal.append(character)
                continue
            }
            guard character == "{", let close = rest.firstIndex(of: "}") else {
                throw PushTemplateError(
                    place: place,
                    problem: "a brace has no partner; one that is meant is written twice")
            }
            let inside = String(rest[..<close])
            guard let origin = Origin(inside) else { throw badOrigin(inside, place) }
            if !literal.isEmpty { parts.append(.literal(literal)) }
            literal = ""
            parts.append(.value(origin))
            rest = rest[rest.index(after: close)...]
        }
        if parts.isEmpty {
            return .literal(Array(JSONText.string(literal).line.utf8))
        }
        if !literal.isEmpty { parts.append(.literal(literal)) }
        if parts.count == 1, case .value(let origin) = parts[0] {
            return .value(Value(origin: origin))
        }
        return .text(parts)
    }

    // MARK: What it needs

    /// The fields that it reads.
    var fields: [FieldPath] {
        root.origins.compactMap { if case .field(let path) = $0 { path } else { nil } }
    }

    /// The fields that something else stands for where they are missing.
    var fieldsWithDefault: [FieldPath] {
        root.values.compactMap { value in
            guard value.standIn != nil, case .field(let path) = value.origin else { return nil }
            return path
        }
    }

    /// Whether `{key}` is part of it.
    var namesKey: Bool { root.origins.contains(.key) }

    /// The names of the headers that it needs.
    var headers: [String] {
        root.origins.compactMap { if case .header(let name) = $0 { name } else { nil } }
    }
}

extension PushTemplate.Node {
    fileprivate var values: [PushTemplate.Value] {
        switch self {
        case .literal, .text: []
        case .value(let value): [value]
        case .list(let nodes): nodes.flatMap(\.values)
        case .map(let members): members.flatMap(\.node.values)
        }
    }

    fileprivate var origins: [PushTemplate.Origin] {
        switch self {
        case .literal: []
        case .text(let parts):
            parts.compactMap { if case .value(let origin) = $0 { origin } else { nil } }
        case .value(let value): [value.origin]
        case .list(let nodes): nodes.flatMap(\.origins)
        case .map(let members): members.flatMap(\.node.origins)
        }
    }
}

extension PushTemplate.FieldType {
    /// Whether a constant has this type.
    fileprivate func matches(_ source: PushTemplate.Source) -> Bool {
        switch (self, source) {
        case (.string, .text), (.object, .map), (.array, .list): true
        case (.boolean, .literal(let text)): text == "true" || text == "false"
        case (.integer, .literal(let text)): Int64(text) != nil
        case (.number, .literal(let text)): Double(text) != nil
        default: false
        }
    }
}

/// What is wrong with a template, and where: a JSON pointer into the payload.
package struct PushTemplateError: Error, Sendable, Equatable {
    package let place: String
    package let problem: String

    package var message: String { place.isEmpty ? problem : "\(place): \(problem)" }
}
