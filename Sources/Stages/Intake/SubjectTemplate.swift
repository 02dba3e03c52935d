// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// How the subject of an event is composed from a producer's own record: literal text, `{key}`,
/// `{header:name}` and fields such as `{/order/id}` or `{key:/id}`, as in `order-{/order/id}`. Braces
/// cannot be written literally.
package struct SubjectTemplate: Sendable, Hashable {
    enum Part: Sendable, Hashable {
        case literal([UInt8])
        case key
        case header(String)
        case field(FieldPath)
    }

    /// The template as it was written.
    package let text: String
    let parts: [Part]

    /// The record's key.
    static let key = SubjectTemplate(text: "{key}", parts: [.key])

    var isKey: Bool { parts == [.key] }

    /// Whether the record's value must be parsed.
    package var needsJSON: Bool { fields.contains { $0.version != .key } }

    /// The fields that it reads.
    var fields: [FieldPath] {
        parts.compactMap { if case .field(let path) = $0 { path } else { nil } }
    }

    private init(text: String, parts: [Part]) {
        self.text = text
        self.parts = parts
    }

    package init(_ text: String) throws(SubjectTemplateError) {
        self.text = text
        let bytes = Array(text.utf8)
        guard !bytes.isEmpty else { throw SubjectTemplateError(.empty, position: 0) }
        var parts: [Part] = []
        var position = 0
        while position < bytes.count {
            let rest = bytes[position...]
            if bytes[position] == UInt8(ascii: "{") {
                guard let close = rest.firstIndex(of: UInt8(ascii: "}")) else {
                    throw SubjectTemplateError(.unclosedBrace, position: position)
                }
                let inside = String(decoding: bytes[(position + 1)..<close], as: UTF8.self)
                parts.append(try Self.placeholder(inside, position: position))
                position = close + 1
            } else {
                let end = rest.firstIndex { $0 == UInt8(ascii: "{") || $0 == UInt8(ascii: "}") }
                guard end.map({ bytes[$0] }) != UInt8(ascii: "}") else {
                    throw SubjectTemplateError(.strayBrace, position: end!)
                }
                parts.append(.literal(Array(rest[..<(end ?? bytes.count)])))
                position = end ?? bytes.count
            }
        }
        guard parts.contains(where: { if case .literal = $0 { false } else { true } }) else {
            throw SubjectTemplateError(.constant, position: 0)
        }
        assert(!parts.contains(.literal([])), "a template's literals are not empty")
        self.parts = parts
    }

    private static func placeholder(
        _ inside: String, position: Int
    ) throws(SubjectTemplateError) -> Part {
        if inside == "key" { return .key }
        if inside.hasPrefix("header:") {
            let name = String(inside.dropFirst("header:".count))
            guard !name.isEmpty else {
                throw SubjectTemplateError(.emptyHeaderName, position: position)
            }
            return .header(name)
        }
        let isPath =
            inside == "key:"
            || ([""] + FieldPath.Version.byPrefix.map(\.key)).contains {
                inside.hasPrefix($0 + "/")
            }
        guard isPath else {
            throw SubjectTemplateError(.unknownPlaceholder, position: position)
        }
        guard let path = FieldPath(inside) else {
            throw SubjectTemplateError(.invalidPointer, position: position)
        }
        return .field(path)
    }
}

/// What is wrong with a subject template, where, and what to write instead.
package struct SubjectTemplateError: Error, Sendable, Equatable {
    package enum Problem: Sendable {
        case empty, unclosedBrace, strayBrace, emptyHeaderName, unknownPlaceholder
        case invalidPointer, constant
    }

    package let problem: Problem
    /// Where the problem is, in bytes from the start of the template.
    package let position: Int

    init(_ problem: Problem, position: Int) {
        self.problem = problem
        self.position = position
    }

    package var message: String {
        let (cause, remedy) = words
        return "subject template, position \(position): \(cause); \(remedy)"
    }

    private var words: (cause: String, remedy: String) {
        switch problem {
        case .empty: ("it is empty", "leave it out, or write {key}")
        case .unclosedBrace: ("{ is never closed", "add }")
        case .strayBrace: ("} closes nothing", "remove it; braces cannot be literal text")
        case .emptyHeaderName: ("the header has no name", "write {header:name}")
        case .unknownPlaceholder:
            ("unknown placeholder", "write {key}, {header:name} or a JSON pointer {/field}")
        case .invalidPointer:
            ("not an RFC 6901 pointer", "write ~ as ~0 and a / inside a name as ~1")
        case .constant:
            ("every record would have the same subject", "use {key}, {header:name} or {/field}")
        }
    }
}
