// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

extension RecordFormat {
    /// The text of docs/records.md: an introduction and the field tables.
    package static var reference: String {
        let body = all.map(\.section).joined(separator: "\n\n")
        return [introduction, PageContents.list(of: body), body].joined(separator: "\n\n") + "\n"
    }

    private static let introduction = """
        <!-- Written by `make docs` from the field tables in Sources/Model/RecordFormats. -->

        # Records

        What Lamplighter writes to its own Kafka topics and reads from them: the value of each record \
        is one JSON object. The same tables are in [schemas](schemas) as JSON Schemas.

        Instants are RFC 3339, such as `2026-11-21T06:12:00.123Z`. Lengths of strings count UTF-8 \
        bytes. Where a table does not say otherwise, null counts as absent, members that it does not \
        name are ignored, and if a name occurs twice, the last member is read.
        """

    private var section: String {
        let rows = Self.lines(of: fields, isClosed: isClosed)
        return """
            ## \(title)

            \(summary)\(isClosed ? " It has no other members, and none is null." : "") Schema: \
            [\(name).schema.json](schemas/\(name).schema.json).

            | field | required | value | meaning |
            |---|---|---|---|
            \(rows.joined(separator: "\n"))

            ```
            key    \(String(decoding: example.key, as: UTF8.self))
            value  \(String(decoding: example.value, as: UTF8.self))
            ```
            """
    }

    /// One line for each field; the fields of a nested object follow its own line.
    private static func lines(
        of fields: [FieldRow], within path: String = "", isClosed: Bool
    ) -> [String] {
        fields.flatMap { row -> [String] in
            let name = path + row.name
            let cells = [
                "`\(name)`", row.isRequired ? "yes" : "", row.type.notation(isClosed: isClosed),
                row.summary,
            ]
            let line = "| " + cells.joined(separator: " | ") + " |"
            switch row.type {
            case .object(let inner):
                return [line] + lines(of: inner, within: name + ".", isClosed: isClosed)
            case .array(.object(let inner), _):
                return [line] + lines(of: inner, within: name + "[].", isClosed: isClosed)
            default: return [line]
            }
        }
    }
}

extension FieldType {
    fileprivate func notation(isClosed: Bool) -> String {
        switch self {
        case .version: "`\(RecordLimits.version)`"
        case .flag: "`true`"
        case .bool: "`true`, `false`"
        case .any: "anything"
        case .openWord: "string"
        case .text(let bytes): "string, \(Self.notation(of: bytes)) bytes"
        case .base64(let bytesMax): "base64 of at most \(bytesMax) bytes"
        case .instant: "instant"
        case .integer(let range) where range.upperBound == .max:
            "integer, at least \(range.lowerBound)"
        case .integer(let range): "integer, \(range.lowerBound) to \(range.upperBound)"
        case .oneOf(let words): words.map { "`\($0)`" }.joined(separator: ", ")
        case .oneOfNumbers(let numbers): numbers.map { "`\($0)`" }.joined(separator: ", ")
        case .environment:
            FieldType.oneOf(
                isClosed ? PushEnvironment.wordsWritten : PushEnvironment.wordsRead
            ).notation(isClosed: isClosed)
        case .keyPart:
            "1 to \(RecordLimits.keyPartBytesMax) of the characters `A-Z a-z 0-9 . _ ~ -`"
        case .tokenID: "16 hexadecimal digits"
        case .token: "1 to \(RecordLimits.tokenBytesMax) bytes in hexadecimal"
        case .targetToken:
            "1 to \(RecordLimits.tokenBytesMax) bytes in hexadecimal, of a channel in base64"
        case .collapseID:
            "1 to \(RecordLimits.collapseIDBytesMax) printable ASCII characters, no space at the ends"
        case .payload, .body: "object"
        case .pushType:
            FieldType.oneOf(PushType.builtIn.map(\.name)).notation(isClosed: isClosed)
        case .object: "object"
        case .array(.object, let count): "array" + Self.of(count, "objects")
        case .array(let element, let count):
            "array" + Self.of(count, "") + ", each: " + element.notation(isClosed: isClosed)
        }
    }

    private static func of(_ count: ClosedRange<Int>?, _ what: String) -> String {
        let objects = what.isEmpty ? "" : " \(what)"
        guard let count else { return what.isEmpty ? "" : " of" + objects }
        return " of \(notation(of: count))" + objects
    }

    private static func notation(of range: ClosedRange<Int>) -> String {
        switch (range.lowerBound, range.upperBound) {
        case (let least, .max): "at least \(least)"
        case (0, let most): "at most \(most)"
        case (let least, let most): "\(least) to \(most)"
        }
    }
}
