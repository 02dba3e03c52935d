// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// One type of record, as its users see it. The JSON Schemas in docs/schemas and the page
/// docs/records.md are made of this and of nothing else.
package struct RecordFormat: Sendable {
    /// The name of the format and of its schema's file.
    package let name: String
    package let title: String
    /// Markdown, one paragraph: what the record says, in which topic, under which key.
    package let summary: String
    package let fields: [FieldRow]
    /// Whether only workers write such a record and others only read it. It then has no members
    /// beyond its fields, none that is null, and every word in the spelling that workers use.
    package let isClosed: Bool
    package let example: Example
    /// JSON Schema keywords for constraints between fields.
    let constraints: [(String, JSONText)]

    init<Field: RecordField>(
        _ name: String, title: String, _ summary: String, fields: Field.Type,
        example: Example, isClosed: Bool = false, constraints: [(String, JSONText)] = []
    ) {
        self.name = name
        self.title = title
        self.summary = summary
        self.fields = Field.rows
        self.example = example
        self.isClosed = isClosed
        self.constraints = constraints
    }

    package static var all: [RecordFormat] {
        [.event, .registration, .suppression, .deferred, .deadLetter, .restriction, .outcome]
    }
}
