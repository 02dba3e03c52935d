// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import RecordFormats

/// Makes subjects of a row's columns: `user-{id}`. A column with several texts makes several subjects,
/// one without a text none. `{{` and `}}` stand for braces.
package struct SubjectTemplate: Hashable, Sendable {
    private enum Part: Hashable, Sendable {
        case text(String)
        case column(String)
    }

    private let parts: [Part]

    /// - Throws: what is wrong with the text.
    package init(_ template: String) throws(SourceProblem) {
        var parts: [Part] = []
        var text = ""
        var rest = Substring(template)
        while let character = rest.popFirst() {
            switch character {
            case "{" where rest.first == "{", "}" where rest.first == "}":
                text.append(character)
                rest.removeFirst()
            case "{":
                guard let end = rest.firstIndex(of: "}"), end > rest.startIndex else {
                    throw SourceProblem(
                        reason: "'\(template)' has a { that names no column: close it with }")
                }
                if !text.isEmpty { parts.append(.text(text)) }
                text = ""
                parts.append(.column(String(rest[..<end])))
                rest = rest[rest.index(after: end)...]
            case "}":
                throw SourceProblem(
                    reason: "'\(template)' has a } that closes nothing: write }} for a brace")
            default: text.append(character)
            }
        }
        if !text.isEmpty { parts.append(.text(text)) }
        guard !parts.isEmpty else { throw SourceProblem(reason: "a template is empty") }
        self.parts = parts
    }

    package var columns: [String] {
        parts.compactMap { if case .column(let name) = $0 { name } else { nil } }
    }

    /// - Parameter texts: what a column has.
    func subjects(_ texts: (String) -> [String]) throws(RowProblem) -> [String] {
        var subjects = [""]
        for part in parts {
            let ends =
                switch part {
                case .text(let text): [text]
                case .column(let name): texts(name).filter { !$0.isEmpty }
                }
            guard subjects.count * ends.count <= RowMapper.subjectsMax else {
                throw RowProblem("it makes more than \(RowMapper.subjectsMax) subjects")
            }
            var longer: [String] = []
            for subject in subjects {
                for end in ends { longer.append(try Self.joined(subject, end)) }
            }
            subjects = longer
        }
        assert(
            subjects.allSatisfy { !$0.isEmpty }, "a subject made by a template is not empty")
        return subjects
    }

    /// Bounds each as it grows: a thousand long ones would be gigabytes.
    private static func joined(_ one: String, _ other: String) throws(RowProblem) -> String {
        guard one.utf8.count + other.utf8.count <= RecordLimits.subjectBytesMax else {
            throw RowProblem("a subject is longer than \(RecordLimits.subjectBytesMax) bytes")
        }
        return one + other
    }
}
