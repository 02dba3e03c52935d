// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The number under which a schema registry has a schema. A number never gets another schema.
package struct SchemaID: Hashable, Sendable, CustomStringConvertible {
    package let rawValue: UInt32

    package init(rawValue: UInt32) { self.rawValue = rawValue }

    package var description: String { rawValue.description }
}

/// What is before a key or a value in Confluent's wire format: a zero byte, and the schema's number
/// in 4 bytes, big-endian. Before a Protobuf message there is also which message of the schema it
/// is; `MessageIndexes` reads that.
package struct SchemaFrame {
    package let schema: SchemaID
    /// What follows the number.
    package let content: UnsafeRawBufferPointer

    package static let bytes = 5

    /// The headers in which newer serializers of Confluent's write the schema's GUID, instead of
    /// its number before the bytes.
    package static let keyHeader = "__key_schema_id"
    package static let valueHeader = "__value_schema_id"

    /// - Parameter bytes: a record's key or value.
    package init(_ bytes: UnsafeRawBufferPointer) throws(UndecodableRecord) {
        guard bytes.count >= Self.bytes else {
            throw UndecodableRecord(
                .frame,
                "a key or value with a schema begins with a zero byte and the schema's number in 4 "
                    + "bytes, and this one has \(bytes.count) bytes")
        }
        guard bytes[0] == 0 else {
            throw UndecodableRecord(
                .frame,
                bytes[0] == 1
                    ? "the schema is named by a GUID, and only numbers are read: have the "
                        + "producer use Confluent's PrefixSchemaIdSerializer"
                    : "a key or value with a schema begins with a zero byte, and this one does not: "
                        + "have the producer use a serializer for a schema registry")
        }
        var number: UInt32 = 0
        for byte in bytes[1..<Self.bytes] { number = number << 8 | UInt32(byte) }
        schema = SchemaID(rawValue: number)
        content = UnsafeRawBufferPointer(rebasing: bytes[Self.bytes...])
    }

    /// What is wrong with a record that has one of the headers.
    package static func refusal(of header: String) -> UndecodableRecord {
        UndecodableRecord(
            .frame,
            "the header \(header) names the schema by a GUID, and only numbers are read: have the "
                + "producer use Confluent's PrefixSchemaIdSerializer")
    }
}

/// Why a record with a schema has no JSON.
package struct UndecodableRecord: Error, Sendable, Equatable {
    package enum Code: String, CaseIterable, Sendable {
        /// The bytes before the content are not Confluent's wire format.
        case frame
        /// The registry has no schema of this number.
        case unknownSchema
        /// There is a schema, and it cannot be used.
        case unusableSchema
        /// The content is not what the schema says.
        case content
    }

    package let code: Code
    /// One sentence without anything of the record's content.
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }
}

/// Why a schema cannot be used: one sentence, which may quote names of the schema.
package struct UnusableSchema: Error, Sendable, Equatable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}
