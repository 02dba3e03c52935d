// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The fields of one kind of JSON object in a record, in the order in which they are documented.
/// Decoders and encoders name members by these cases only; the raw value is the case's position.
package protocol RecordField: RawRepresentable<UInt8>, CaseIterable, Sendable {
    /// The field's row of the table, for documentation. It is made anew each time, with the rows of
    /// the objects within, so no record has it evaluated.
    var row: FieldRow { get }
    /// Finds a case by its name, and the name of a case.
    static var table: NameTable<Self> { get }
}

extension RecordField {
    /// The rows of all fields, from which the JSON Schemas and the reference page are made.
    package static var rows: [FieldRow] { allCases.map(\.row) }
    package static var names: [String] { table.names }
    package var name: String { Self.table.names[Int(rawValue)] }
}

extension NameTable where Value: RecordField {
    init() {
        let fields = Array(Value.allCases)
        precondition(
            fields.indices.allSatisfy { Int(fields[$0].rawValue) == $0 }
                && fields.count <= RecordLimits.fieldsMax,
            "a field's number is its place, and there are at most fieldsMax")
        precondition(
            Set(fields.map(\.row.name)).count == fields.count,
            "each member of a record has a name of its own")
        // Not by `name`, which asks for this table.
        self.init(fields.map { ($0.row.name, $0) })
    }
}

/// A field's name, the values that it may have, and what it means.
package struct FieldRow: Sendable {
    package let name: String
    package let type: FieldType
    package let isRequired: Bool
    /// Markdown, one paragraph; empty where the name says it all.
    package let summary: String

    static func required(_ name: String, _ type: FieldType, _ summary: String = "") -> FieldRow {
        FieldRow(name: name, type: type, isRequired: true, summary: summary)
    }

    static func optional(_ name: String, _ type: FieldType, _ summary: String = "") -> FieldRow {
        FieldRow(name: name, type: type, isRequired: false, summary: summary)
    }

    /// The row of `v` in a format whose version must be written.
    static var version: FieldRow {
        required("v", .version, "Version of the format; another one is unreadable.")
    }
}

/// The values that a field may have. Bounds of texts count UTF-8 bytes.
package indirect enum FieldType: Sendable {
    /// The integer `RecordLimits.version`.
    case version
    /// Any value; readers ignore it.
    case any
    /// A string of any length; readers leave out what has a word that they do not know.
    case openWord
    case text(ClosedRange<Int>)
    /// Base64 of bytes that are not UTF-8.
    case base64(bytesMax: Int)
    /// An RFC 3339 instant.
    case instant
    case integer(ClosedRange<Int64>)
    case oneOf([String])
    case oneOfNumbers([Int64])
    /// `true` and nothing else.
    case flag
    case bool
    case environment
    /// A part of a record's key.
    case keyPart
    /// A device token in hexadecimal.
    case token
    /// The first 8 bytes of a device token's SHA-256, in hexadecimal.
    case tokenID
    /// The token of a registration: of a channel its ID in base64, of other classes hexadecimal.
    case targetToken
    /// A value of the header `apns-collapse-id`.
    case collapseID
    /// A push's body: see `EventPayload`.
    case payload
    /// A push's body that was checked before it was written.
    case body
    case pushType
    case object([FieldRow])
    /// - Parameter count: how many elements; nil for any number.
    case array(FieldType, count: ClosedRange<Int>? = nil)
}
