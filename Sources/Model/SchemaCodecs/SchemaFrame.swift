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
        guard bytes[0] == 0 else { throw UndecodableRecord(.frame, Self.foreign(bytes)) }
        var number: UInt32 = 0
        for byte in bytes[1..<Self.bytes] { number = number << 8 | UInt32(byte) }
        // Registries count from 1.
        guard number > 0 else {
            throw UndecodableRecord(
                .frame,
                "the four bytes of the schema's number are 0: Apicurio's serializers write it in "
                    + "eight unless they are told otherwise, so have the producer set "
                    + "apicurio.registry.as-confluent to true"
                    + (bytes.count == 8
                        ? "; a key that is an integer in 8 bytes also begins so: say keySchema: "
                            + "int64" : ""))
        }
        schema = SchemaID(rawValue: number)
        content = UnsafeRawBufferPointer(rebasing: bytes[Self.bytes...])
    }

    /// What begins in another way, as far as its first bytes tell.
    private static func foreign(_ bytes: UnsafeRawBufferPointer) -> String {
        switch (bytes[0], bytes[1]) {
        case (1, _):
            "the schema is named by a GUID, and only numbers are read: have the producer use "
                + "Confluent's PrefixSchemaIdSerializer"
        case (3, 0), (3, 5):
            "it is framed for AWS Glue's schema registry, which is not read: have the producer use a "
                + "serializer for a registry with Confluent's API, or write JSON"
        case (0xC3, 1):
            "it is in Avro's single-object encoding, which names no schema of a registry: have the "
                + "producer use a serializer for a schema registry"
        case (UInt8(ascii: "O"), UInt8(ascii: "b")):
            "it is an Avro container file: have the producer write one record with a serializer for a "
                + "schema registry"
        case (UInt8(ascii: "{"), _), (UInt8(ascii: "["), _), (UInt8(ascii: "\""), _):
            "it begins as JSON does, and not with a zero byte: leave valueSchema out of the topic's "
                + "binding, or say keySchema: json, or have the producer use a serializer for a schema registry"
        default:
            "a key or value with a schema begins with a zero byte, and this one does with \(bytes[0]): "
                + "have the producer use a serializer for a schema registry"
        }
    }

    /// What is wrong with a record whose schema is named in headers of another registry's; nil if there
    /// are none.
    ///
    /// - Parameter header: looks up the last header of a name.
    package static func refusal(
        ofHeaders header: (String) -> UnsafeRawBufferPointer?
    ) -> UndecodableRecord? {
        for name in [
            "apicurio.value.globalId", "apicurio.value.contentId", "apicurio.key.globalId",
            "apicurio.key.contentId",
        ]
        where header(name) != nil {
            return UndecodableRecord(
                .frame,
                "the header \(name) names the schema, and only Confluent's wire format is read: have "
                    + "the producer set apicurio.registry.headers.enabled to false and "
                    + "apicurio.registry.as-confluent to true")
        }
        guard let type = header("content-type"), type.count > 12,
            type.prefix(12).elementsEqual("avro/binary+".utf8)
        else { return nil }
        return UndecodableRecord(
            .frame,
            "the content type names a schema of Azure's registry, which is not read: have the "
                + "producer use a serializer for a registry with Confluent's API, or write JSON")
    }

    /// What is wrong with a record that has one of the headers.
    package static func refusal(of header: String) -> UndecodableRecord {
        UndecodableRecord(
            .frame,
            "the header \(header) names the schema, and only its number before the content is read: have the "
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
