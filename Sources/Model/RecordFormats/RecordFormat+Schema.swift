// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

extension RecordFormat {
    /// A JSON Schema (2020-12) of the record's value, the text of its file in docs/schemas.
    package var jsonSchema: String {
        let head: [(String, JSONText)] = [
            ("$schema", "https://json-schema.org/draft/2020-12/schema"),
            ("$id", .string("urn:lamplighter:\(name):\(RecordLimits.version)")),
            ("title", .string(title)), ("description", .string(summary)),
        ]
        let body = object(of: fields) + constraints
        return JSONText.object(head + [("type", "object")] + body).printed() + "\n"
    }

    private func object(of fields: [FieldRow]) -> [(String, JSONText)] {
        var keywords: [(String, JSONText)] = [
            ("properties", .object(fields.map { ($0.name, schema(of: $0)) }))
        ]
        let required = fields.filter(\.isRequired).map { JSONText.string($0.name) }
        if !required.isEmpty { keywords.append(("required", .array(required))) }
        if isClosed { keywords.append(("additionalProperties", .literal("false"))) }
        return keywords
    }

    private func schema(of row: FieldRow) -> JSONText {
        var keywords = keywords(of: row.type)
        if !row.isRequired, !isClosed { makeNullable(&keywords) }
        if !row.summary.isEmpty { keywords.append(("description", .string(row.summary))) }
        return .object(keywords)
    }

    /// Allows `null`, since readers take such a member for absent.
    private func makeNullable(_ keywords: inout [(String, JSONText)]) {
        for (index, (keyword, value)) in keywords.enumerated() {
            switch (keyword, value) {
            case ("type", let type): keywords[index].1 = .array([type, "null"])
            case ("enum", .array(let values)):
                keywords[index].1 = .array(values + [.literal("null")])
            case ("const", let value):
                keywords[index] = ("enum", .array([value, .literal("null")]))
            default: break
            }
        }
    }

    private func keywords(of type: FieldType) -> [(String, JSONText)] {
        switch type {
        case .version: [("const", .literal("\(RecordLimits.version)"))]
        case .flag: [("const", .literal("true"))]
        case .bool: [("type", "boolean")]
        case .any: []
        case .openWord: [("type", "string")]
        case .text(let bytes): Self.string + Self.bounds(of: bytes, "Length")
        case .base64(let bytesMax):
            Self.string
                + [("maxLength", .literal("\(Base64.digits(bytes: bytesMax))"))]
                + Self.pattern(Self.base64)
        case .instant:
            Self.string
                + Self.pattern(
                    "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}"
                        + #"(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$"#)
        case .integer(let range):
            [("type", "integer"), ("minimum", .literal("\(range.lowerBound)"))]
                + (range.upperBound == .max
                    ? [] : [("maximum", .literal("\(range.upperBound)"))])
        case .oneOf(let words): [("enum", .array(words.map { .string($0) }))]
        case .oneOfNumbers(let numbers): [("enum", .array(numbers.map { .literal("\($0)") }))]
        case .environment: keywords(of: .oneOf(environments))
        case .keyPart:
            Self.string
                + Self.pattern("^[A-Za-z0-9._~-]{1,\(RecordLimits.keyPartBytesMax)}$")
        case .tokenID: Self.string + Self.pattern("^[0-9A-Fa-f]{16}$")
        case .token:
            Self.string
                + Self.pattern(Self.hexadecimal(digits: isClosed ? "0-9a-f" : "0-9A-Fa-f"))
        // `tokenConditions` has the rest.
        case .targetToken: Self.string
        case .collapseID:
            // The first and the last character must not be a space.
            Self.string
                + Self.pattern("^[!-~]([ -~]{0,\(RecordLimits.collapseIDBytesMax - 2)}[!-~])?$")
        case .payload, .body: [("type", "object")]
        case .pushType: keywords(of: .oneOf(PushType.builtIn.map(\.name)))
        case .object(let fields):
            [("type", "object")] + object(of: fields) + Self.tokenConditions(on: fields)
        case .array(let element, let count):
            [("type", "array")] + Self.bounds(of: count ?? 0...Int.max, "Items")
                + [("items", .object(keywords(of: element)))]
        }
    }

    var environments: [String] {
        isClosed ? PushEnvironment.wordsWritten : PushEnvironment.wordsRead
    }

    private static let base64 = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"

    private static func hexadecimal(digits: String) -> String {
        "^([\(digits)]{2}){1,\(RecordLimits.tokenBytesMax)}$"
    }

    /// Which of its two forms the token of a target must have: the class decides.
    private static func tokenConditions(on fields: [FieldRow]) -> [(String, JSONText)] {
        let token = fields.first { if case .targetToken = $0.type { true } else { false } }
        guard let token else { return [] }
        let name = TargetField.tokenClass.name
        let isChannel = JSONText.object([
            (
                "properties",
                .object([(name, .object([("const", .string(TokenClass.channel.name))]))])
            ),
            ("required", .array([.string(name)])),
        ])
        func rule(_ condition: JSONText, _ demand: [(String, JSONText)]) -> JSONText {
            .object([
                ("if", condition),
                ("then", .object([("properties", .object([(token.name, .object(demand))]))])),
            ])
        }
        let ofChannel = pattern(base64) + [("minLength", JSONText.literal("4"))]
        let ofOthers = pattern(hexadecimal(digits: "0-9A-Fa-f"))
        return [
            (
                "allOf",
                .array([
                    rule(isChannel, ofChannel), rule(.object([("not", isChannel)]), ofOthers),
                ])
            )
        ]
    }

    private static let string: [(String, JSONText)] = [("type", "string")]

    private static func pattern(_ pattern: String) -> [(String, JSONText)] {
        [("pattern", .string(pattern))]
    }

    /// The keywords `minLength` and `maxLength`, or `minItems` and `maxItems`, without those that
    /// exclude nothing.
    private static func bounds(
        of range: ClosedRange<Int>, _ what: String
    ) -> [(String, JSONText)] {
        var keywords: [(String, JSONText)] = []
        if range.lowerBound > 0 {
            keywords.append(("min\(what)", .literal("\(range.lowerBound)")))
        }
        if range.upperBound < .max {
            keywords.append(("max\(what)", .literal("\(range.upperBound)")))
        }
        return keywords
    }
}
