// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import HTTPListener
internal import PushModel

/// The type of a key's value: how it is read, written back and described. One declaration serves
/// the decoder, the reference page and the JSON schema.
struct SettingType<Value> {
    /// What may be written, as text that completes "must be …".
    var notation: String
    /// The JSON schema of one value.
    var schema: JSONText
    /// Whether the value may come from the environment only.
    var isVariableOnly = false
    var read: (Setting) throws(Complaint) -> Value
    /// Writes a value as it would be in the file.
    var write: (Value) -> String
    /// Writes a default for the schema; nil if it is the same text as in the file.
    var json: ((Value) -> JSONText)? = nil
    /// The value itself, for a type whose `write` hides it, so that two values can be compared.
    var hidden: ((Value) -> Secret)? = nil

    /// A type that is written as one scalar. `parse` returns nil for text of another form.
    static func scalar(
        _ notation: String, schema: JSONText, write: @escaping (Value) -> String,
        json: ((Value) -> JSONText)? = nil,
        parse: @escaping (String) throws(Complaint) -> Value?
    ) -> SettingType {
        let mismatch = { (found: String) in
            Complaint(wrong: "is \(found)", remedy: "must be \(notation)")
        }
        let read = { (setting: Setting) throws(Complaint) -> Value in
            guard case .scalar(let text) = setting.content else {
                throw mismatch(setting.shapeName)
            }
            guard let value = try parse(text) else { throw mismatch(Self.quoted(text)) }
            return value
        }
        return SettingType(
            notation: notation, schema: schema, read: read, write: write, json: json)
    }

    /// A wrong text as a message quotes it: shortened, and without the text of a key that was
    /// pasted into the wrong place.
    static func quoted(_ text: String) -> String {
        if text.contains("-----BEGIN") { return "the text of a key" }
        return text.count <= 40 ? "\"\(text)\"" : "\"\(text.prefix(20))\"…"
    }
}

extension SettingType {
    /// A type that is written in the same way as this one and read as another.
    func mapped<Other>(
        to other: @escaping (Value) -> Other, back: @escaping (Other) -> Value
    ) -> SettingType<Other> {
        let (read, write, json) = (self.read, self.write, self.json)
        return SettingType<Other>(
            notation: notation, schema: schema, isVariableOnly: isVariableOnly,
            read: { setting throws(Complaint) in other(try read(setting)) },
            write: { write(back($0)) }, json: json.map { json in { json(back($0)) } })
    }
}

extension SettingType where Value == Int {
    static func integer(_ bounds: ClosedRange<Int>) -> Self {
        let schema = JSONText.object([
            ("type", "integer"), ("minimum", .literal("\(bounds.lowerBound)")),
            ("maximum", .literal("\(bounds.upperBound)")),
        ])
        let notation = "a whole number from \(bounds.lowerBound) to \(bounds.upperBound)"
        return .scalar(
            notation, schema: schema, write: { "\($0)" }, json: { .literal("\($0)") }
        ) { text in
            Int(text).flatMap { bounds.contains($0) ? $0 : nil }
        }
    }
}

extension SettingType where Value == Double {
    static func fraction(_ bounds: ClosedRange<Double>) -> Self {
        let schema = JSONText.object([
            ("type", "number"), ("minimum", .literal("\(bounds.lowerBound)")),
            ("maximum", .literal("\(bounds.upperBound)")),
        ])
        let notation = "a number from \(bounds.lowerBound) to \(bounds.upperBound)"
        return .scalar(
            notation, schema: schema, write: { "\($0)" }, json: { .literal("\($0)") }
        ) { text in
            Double(text).flatMap { bounds.contains($0) ? $0 : nil }
        }
    }
}

extension SettingType where Value == Bool {
    static var flag: Self {
        .scalar(
            "true or false", schema: .object([("type", "boolean")]), write: { "\($0)" },
            json: { .literal("\($0)") }
        ) { text in
            Bool(text)
        }
    }
}

extension SettingType where Value == String {
    /// A text that matches a pattern.
    ///
    /// - Parameters:
    ///   - pattern: a regular expression for the whole value, which is also put into the schema.
    ///   - notation: the pattern in words.
    static func text(_ notation: String, matching pattern: String) -> Self {
        let schema = JSONText.object([
            ("type", "string"), ("pattern", .string("^(?:\(pattern))$")),
        ])
        return .scalar(notation, schema: schema, write: { $0 }) { text in
            // The patterns are constants of this module, and a test uses every one.
            let expression = try! Regex(pattern)
            return text.wholeMatch(of: expression) == nil ? nil : text
        }
    }
}

extension SettingType where Value == AddressRange {
    static var addressRange: Self {
        .scalar(
            "an IP address, or a range such as 10.0.0.0/8 or fd00::/8",
            schema: .object([
                ("type", "string"), ("pattern", .string("^[0-9A-Fa-f:.]+(/[0-9]+)?$")),
            ]),
            write: \.text
        ) { text in
            AddressRange(text)
        }
    }
}

extension SettingType where Value: Equatable {
    /// One of a few words.
    static func choice(_ words: [(word: String, value: Value)]) -> Self {
        let notation = words.map(\.word).joined(separator: ", ")
        return .scalar(
            words.count == 1 ? notation : "one of \(notation)",
            schema: .object([("enum", .array(words.map { JSONText.word($0.word) }))]),
            write: { value in words.first { $0.value == value }!.word },
            json: { value in .word(words.first { $0.value == value }!.word) }
        ) { text in
            words.first { $0.word == text }?.value
        }
    }
}

extension SettingType where Value: Equatable & CaseIterable & RawRepresentable<String> {
    static var choice: Self { .choice(Value.allCases.map { ($0.rawValue, $0) }) }
}

extension SettingType {
    /// A YAML list; in an environment variable, the items separated by commas.
    static func list<Item: Hashable>(
        of item: SettingType<Item>, countMax: Int
    ) -> Self where Value == [Item] {
        let notation = "a list, each \(item.notation)"
        let read = { (setting: Setting) throws(Complaint) -> [Item] in
            var items: [Item] = []
            for setting in try Self.listed(setting, notation: notation) {
                let value = try item.read(setting)
                guard !items.contains(value) else {
                    throw Complaint(
                        wrong: "has \(item.write(value)) twice", remedy: "keep one of them")
                }
                items.append(value)
            }
            guard items.count <= countMax else {
                throw Complaint(
                    wrong: "has \(items.count) items", remedy: "at most \(countMax) are allowed")
            }
            return items
        }
        return SettingType(
            notation: notation,
            schema: .object([
                ("type", "array"), ("items", item.schema), ("maxItems", .literal("\(countMax)")),
                ("uniqueItems", .literal("true")),
            ]),
            read: read,
            write: { "[" + $0.map(item.write).joined(separator: ", ") + "]" },
            json: { .array($0.map { item.json?($0) ?? .string(item.write($0)) }) })
    }

    private static func listed(
        _ setting: Setting, notation: String
    ) throws(Complaint) -> [Setting] {
        switch (setting.content, setting.origin) {
        case (.list(let items), _):
            return items
        case (.scalar(let text), .variable):
            return text.split(separator: ",").map {
                let item = $0.drop(while: \.isWhitespace).reversed().drop(while: \.isWhitespace)
                return Setting(
                    content: .scalar(String(item.reversed())), origin: setting.origin)
            }
        default:
            throw Complaint(wrong: "is \(setting.shapeName)", remedy: "must be \(notation)")
        }
    }
}
