// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The language of a schema; the raw value is a registry's word for it.
package enum SchemaLanguage: String, CaseIterable, Sendable {
    case avro = "AVRO"
    case protobuf = "PROTOBUF"
    case json = "JSON"
}

/// A schema as a registry has it, with all that it refers to.
package struct SchemaText: Sendable {
    package var language: SchemaLanguage
    package var text: [UInt8]
    /// The schemas that it refers to, each after those that it refers to itself. The name is what an
    /// importing schema calls it.
    package var references: [(name: String, text: [UInt8])]

    package init(
        language: SchemaLanguage, text: [UInt8],
        references: [(name: String, text: [UInt8])] = []
    ) {
        self.language = language
        self.text = text
        self.references = references
    }
}

/// A schema that has been read, once for all bindings.
package struct RecordSchema: Sendable {
    enum Content: Sendable {
        case avro(AvroSchema)
        case protobuf(ProtobufSchema)
        /// Values are JSON already, whatever the schema says of them.
        case json
    }

    let content: Content
    package let language: SchemaLanguage

    package init(_ schema: SchemaText) throws(UnusableSchema) {
        let texts = [schema.text] + schema.references.map(\.text)
        guard schema.references.count <= SchemaLimits.referencesMax,
            texts.reduce(0, { $0 + $1.count }) <= SchemaLimits.textsBytesMax
        else { throw UnusableSchema("the schema refers to too many others, or they are too large") }
        language = schema.language
        switch language {
        case .avro:
            content = .avro(
                try AvroSchemaParser.schema(
                    schema.text, references: schema.references.map(\.text)))
        case .protobuf:
            content = .protobuf(
                try ProtoParser.schema(schema.text, references: schema.references))
        case .json: content = .json
        }
    }

    /// About what the schema takes in memory.
    package var byteCount: Int {
        switch content {
        case .avro(let schema): schema.byteCount
        case .protobuf(let schema): schema.byteCount
        case .json: 0
        }
    }
}

/// Asks what is known of a schema, without waiting for a registry.
package typealias SchemaLookup = @Sendable (SchemaID) -> SchemaAnswer

/// A schema that a record waits for.
package struct AwaitedSchema: Sendable, Equatable {
    package let schema: SchemaID
    /// Why the registry does not give it; nil while it has hardly been asked.
    package let unreachable: String?

    package init(schema: SchemaID, unreachable: String? = nil) {
        self.schema = schema
        self.unreachable = unreachable
    }
}

/// What is known of a schema's number. The decoder asks for one once, and then keeps what it has made
/// of the schema.
package enum SchemaAnswer: Sendable {
    case known(RecordSchema)
    /// The registry says that it has no such schema.
    case unknown(String)
    /// The registry has it, and it cannot be used.
    case unusable(String)
    /// The registry has been asked, or will be at once.
    case pending
    /// The registry does not give it, for the reason given, and is asked again and again.
    case unreachable(String)
}
