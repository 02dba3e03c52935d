// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

extension Configuration {
    /// A JSON Schema (2020-12) of the configuration file, for editors and pipelines.
    ///
    /// It covers every key, type and pattern. The bounds of durations and the checks that involve
    /// several keys are left to the worker. It is stricter in one point: a text that looks like a
    /// number must be quoted.
    package static var jsonSchema: String {
        let head: [(String, JSONText)] = [
            ("$schema", "https://json-schema.org/draft/2020-12/schema"),
            ("title", "Lamplighter configuration"),
        ]
        guard case .object(let body) = KeyShape.Form.section(shape).schema else { return "" }
        return JSONText.object(head + body).printed() + "\n"
    }
}

extension KeyShape.Form {
    fileprivate var schema: JSONText {
        switch self {
        case .value(let form):
            return form.schema
        case .section(let rows):
            // The file may omit any key, since a variable may supply it.
            return .object([
                ("type", .array(["object", "null"])),
                ("properties", .object(rows.map { ($0.name, $0.schema) })),
                ("additionalProperties", .literal("false")),
            ])
        case .map(let names, let element):
            return .object([
                ("type", .array(["object", "null"])),
                ("maxProperties", .literal("\(names.countMax)")),
                ("propertyNames", .object([("pattern", .string("^(?:\(names.pattern))$"))])),
                ("additionalProperties", element.schema),
            ])
        }
    }
}

extension KeyShape {
    fileprivate var schema: JSONText {
        guard case .object(let members) = form.schema else { return form.schema }
        var described = [("description", JSONText.string(summary))] + members
        if case .value(let form) = form, let value = form.defaultJSON {
            described.append(("default", value))
        }
        return .object(described)
    }
}
