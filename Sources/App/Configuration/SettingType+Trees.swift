// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FoundationEssentials
internal import Intake
internal import PushModel

// Values that are trees: conditions and templates of topic bindings, and their tests.

extension Setting {
    /// The value as a part of a template. Plain text that is a number, `true` or `false` is that;
    /// in quotes it is text.
    var templateSource: PushTemplate.Source {
        switch content {
        case .absent: .nothing
        case .scalar(let text): isPlainJSON ? .literal(text) : .text(text)
        case .list(let items): .list(items.map(\.templateSource))
        case .map(let entries): .map(entries.map { ($0.name, $0.value.templateSource) })
        }
    }

    private var isPlainJSON: Bool {
        guard !isQuoted, case .scalar(let text) = content else { return false }
        let number = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+\-]?[0-9]+)?/
        return text == "true" || text == "false" || text.wholeMatch(of: number) != nil
    }

    /// The value as a single one in JSON; nil for a list or a map.
    var jsonScalar: RecordCondition.Scalar? {
        guard case .scalar(let text) = content else { return nil }
        guard isPlainJSON else { return .text(text) }
        return ExactNumber(text).map { .number($0) } ?? .flag(text == "true")
    }

    /// A value that is written in an environment variable, as YAML in one line.
    func tree(_ notation: String) throws(Complaint) -> Setting {
        guard case .variable = origin, case .scalar(let text) = content else { return self }
        do throws(ConfigurationProblem) {
            var tree = try Setting(yaml: "value: \(text)").entries?.first?.value ?? self
            tree.origin = origin
            return tree
        } catch {
            throw Complaint(wrong: "is not a single-line YAML value", remedy: "must be \(notation)")
        }
    }
}

extension SettingType where Value == PushTemplate {
    static var pushTemplate: Self {
        let notation = "a map, the payload, with {/field} where a value of the record goes"
        return SettingType(
            notation: notation, schema: .object([("type", "object")]),
            read: { setting throws(Complaint) in
                let source = try setting.tree(notation).templateSource
                do throws(PushTemplateError) {
                    return try PushTemplate(source)
                } catch {
                    throw Complaint(wrong: "has a mistake: \(error.message)", remedy: "correct it")
                }
            },
            write: { $0.text })
    }
}

extension SettingType where Value == [RecordCondition] {
    static var conditions: Self {
        let notation = "a list of maps with field and what it must be: \(tests)"
        return SettingType(
            notation: notation,
            schema: .object([
                ("type", "array"), ("maxItems", .literal("\(countMax)")),
                (
                    "items",
                    .object([
                        ("type", "object"), ("required", .array(["field"])),
                        (
                            "properties",
                            .object(
                                [("field", .object([("type", "string")]))]
                                    + words.map { ($0, .object([])) })
                        ),
                        ("additionalProperties", .literal("false")),
                    ])
                ),
            ]),
            read: { setting throws(Complaint) in
                guard case .list(let items) = try setting.tree(notation).content,
                    items.count <= countMax
                else {
                    throw Complaint(
                        wrong: "is \(setting.shapeName)",
                        remedy: "must be \(notation), at most \(countMax)")
                }
                var conditions: [RecordCondition] = []
                for item in items { conditions.append(try condition(item)) }
                return conditions
            },
            write: { conditions in
                "[" + conditions.map { "\($0.field.text) …" }.joined(separator: ", ") + "]"
            },
            json: { _ in .array([]) })
    }

    private static let countMax = 32
    private static let words = [
        "equals", "in", "notIn", "exists", "changed", "above", "below", "atLeast", "atMost",
    ]
    private static var tests: String { words.joined(separator: ", ") }

    private static func condition(_ item: Setting) throws(Complaint) -> RecordCondition {
        guard let entries = item.entries,
            case .scalar(let text)? = entries.first(where: { $0.name == "field" })?.value.content,
            let field = FieldPath(text)
        else {
            throw Complaint(
                wrong: "has a condition without a field",
                remedy: "write field: /status, or before:/status")
        }
        var found: [RecordCondition.Test] = []
        for entry in entries where entry.name != "field" {
            found.append(try test(entry.name, entry.value, text))
        }
        guard !found.isEmpty else {
            throw Complaint(
                wrong: "says nothing of \(text)", remedy: "add one of \(tests)")
        }
        return RecordCondition(field: field, tests: found)
    }

    private static func test(
        _ word: String, _ value: Setting, _ field: String
    ) throws(Complaint) -> RecordCondition.Test {
        func complaint(_ demand: String) -> Complaint {
            Complaint(wrong: "\(word) of \(field) is wrong", remedy: "must be \(demand)")
        }
        func flag() throws(Complaint) -> Bool {
            guard case .flag(let flag)? = value.jsonScalar else { throw complaint("true or false") }
            return flag
        }
        func number() throws(Complaint) -> ExactNumber {
            guard case .number(let number)? = value.jsonScalar else { throw complaint("a number") }
            return number
        }
        func scalars() throws(Complaint) -> [RecordCondition.Scalar] {
            guard case .list(let items) = value.content, !items.isEmpty, items.count <= 1000 else {
                throw complaint("a list of 1 to 1000 single values")
            }
            let scalars = items.compactMap(\.jsonScalar)
            guard scalars.count == items.count else { throw complaint("a list of single values") }
            return scalars
        }
        switch word {
        case "equals":
            guard let scalar = value.jsonScalar else { throw complaint("a single value") }
            return .isOneOf([scalar])
        case "in": return .isOneOf(try scalars())
        case "notIn": return .isNoneOf(try scalars())
        case "exists": return .exists(try flag())
        case "changed": return .changed(try flag())
        case "above": return .above(try number())
        case "below": return .below(try number())
        case "atLeast": return .atLeast(try number())
        case "atMost": return .atMost(try number())
        default:
            throw Complaint(
                wrong: "has \(word), which says nothing", remedy: "it is one of \(tests)")
        }
    }
}

extension SettingType where Value == FieldPath {
    static var fieldPath: Self {
        .scalar(
            "a field such as /order/id, after:/id or before:/id",
            schema: .object([("type", "string")]), write: \.text
        ) { text in
            FieldPath(text)
        }
    }
}

extension SettingType where Value == [BindingTest] {
    static var bindingTests: Self {
        let notation = "a list of maps with name, key, value, headers and expect"
        return SettingType(
            notation: notation,
            schema: .object([
                ("type", "array"), ("items", .object([("type", "object")])),
                ("maxItems", .literal("\(BindingTest.countMax)")),
            ]),
            read: { setting throws(Complaint) in
                guard case .list(let items) = try setting.tree(notation).content,
                    items.count <= BindingTest.countMax
                else {
                    throw Complaint(
                        wrong: "is \(setting.shapeName)",
                        remedy: "must be \(notation), at most \(BindingTest.countMax)")
                }
                var tests: [BindingTest] = []
                for (number, item) in items.enumerated() {
                    tests.append(try BindingTest(item.templateSource, number: number + 1))
                }
                return tests
            },
            write: { "[" + $0.map(\.name).joined(separator: ", ") + "]" },
            json: { _ in .array([]) })
    }
}
