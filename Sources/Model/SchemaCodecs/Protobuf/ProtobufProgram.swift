// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A message of a Protobuf schema and what is wanted of its values, as flat tables that are gone
/// through for each value, like `AvroProgram`.
final class ProtobufProgram: Sendable {
    enum Operation: UInt8, Sendable {
        case double, float, int32, int64, uint32, uint64, sint32, sint64
        case fixed32, fixed64, sfixed32, sfixed64, bool, string, bytes
        case enumeration, message
        /// Messages that JSON has another form for.
        case timestamp, duration, decimal, wrapper, structure, value, list, fieldMask
    }

    enum Cardinality: UInt8, Sendable { case single, repeated, map }

    struct Field: Sendable {
        var number: UInt32
        var operation: Operation
        var cardinality: Cardinality
        /// The type of a map's keys.
        var key = Operation.string
        /// The type of the value in a wrapper.
        var wrapped = Operation.string
        /// Fields that are not wanted are only here to displace others of their oneof.
        var isWritten: Bool
        /// Which oneof of the message, or `noOneof`.
        var oneof: Int32
        /// Of enums and messages: their place in the lists.
        var place: Int32 = 0
        /// Of repeated fields how many items are wanted; of maps how many keys, or `allKeys`.
        var count: Int32 = 0
        /// Of maps: where the list of keys begins.
        var keys: Int32 = 0
        /// The name in quotes, and a colon.
        var prefix = SchemaTexts.Place()
        var name = SchemaTexts.Place()
    }

    static let noOneof: Int32 = -1
    static let allKeys: Int32 = -1

    /// A part of one of the lists.
    struct Part: Sendable {
        var first: Int32 = 0
        var count: Int32 = 0

        var range: Range<Int> { Int(first)..<Int(first) + Int(count) }
    }

    struct Value: Sendable {
        var number: Int32
        /// The name in quotes, or `null`.
        var text: SchemaTexts.Place
    }

    /// The fields of each message. The first message is that of the record.
    let messages: [Part]
    /// Those of one message are sorted by their numbers.
    let fields: [Field]
    let enumerations: [Part]
    /// Those of one enum are sorted by their numbers.
    let values: [Value]
    /// The keys of maps.
    let words: [SchemaTexts.Place]
    let texts: SchemaTexts

    /// The tables while they are made.
    private struct Tables {
        var messages: [Part] = []
        var fields: [Field] = []
        var enumerations: [Part] = []
        var values: [Value] = []
        var words: [SchemaTexts.Place] = []
        var texts = SchemaTexts()
    }

    /// About what the program takes in memory.
    var byteCount: Int {
        messages.count * 8 + fields.count * 48 + enumerations.count * 8 + values.count * 12
            + words.count * 8 + texts.bytes.count
    }

    /// - Parameter root: the place of the record's message in the schema.
    init(
        _ schema: ProtobufSchema, root: Int, _ projection: Projection = .whole
    ) throws(UnusableSchema) {
        var tables = Tables()
        var compiler = Compiler(schema: schema, projection: projection)
        let place = compiler.projection.isWhole(.root) ? Projection.Place.all : .root
        _ = compiler.message(Compiler.Source(message: root, place: place), &tables)
        // A loop and not a recursion: messages may refer to each other as deep as they are many.
        while let (source, message) = compiler.open.popLast() {
            compiler.fill(message, source, &tables)
            if let problem = compiler.problem { throw problem }
            guard tables.fields.count + tables.values.count <= SchemaLimits.partsMax * 4 else {
                throw UnusableSchema("the schema has too many parts for so many pointers")
            }
        }
        messages = tables.messages
        fields = tables.fields
        enumerations = tables.enumerations
        values = tables.values
        words = tables.words
        texts = tables.texts
    }

    /// What is only needed while the tables are made.
    private struct Compiler {
        struct Source: Hashable {
            let message: Int
            let place: Projection.Place
        }

        let schema: ProtobufSchema
        var projection: Projection
        var open: [(source: Source, message: Int)] = []
        /// A field that is wanted has a type that is not known.
        var problem: UnusableSchema?
        private var knownMessages: [Source: Int] = [:]
        private var knownEnumerations: [Int: Int] = [:]

        init(schema: ProtobufSchema, projection: Projection) {
            self.schema = schema
            self.projection = projection
        }

        mutating func message(_ source: Source, _ program: inout Tables) -> Int32 {
            if let known = knownMessages[source] { return Int32(known) }
            let place = program.messages.count
            program.messages.append(Part())
            knownMessages[source] = place
            open.append((source, place))
            return Int32(place)
        }

        mutating func fill(
            _ message: Int, _ source: Source, _ program: inout Tables
        ) {
            let declared = schema.messages[source.message].fields
            let wantedOneofs = Set(
                declared.filter { projection.field($0.jsonName, of: source.place) != nil }
                    .compactMap(\.oneof))
            var fields: [Field] = []
            for field in declared {
                let wanted = projection.field(field.jsonName, of: source.place)
                guard wanted != nil || field.oneof.map(wantedOneofs.contains) ?? false else {
                    continue
                }
                fields.append(self.field(field, wanted, &program))
            }
            fields.sort { $0.number < $1.number }
            program.messages[message] = Part(
                first: Int32(program.fields.count), count: Int32(fields.count))
            program.fields += fields
        }

        private mutating func field(
            _ field: ProtobufSchema.Field, _ wanted: Projection.Place?,
            _ program: inout Tables
        ) -> Field {
            var entry = Field(
                number: field.number, operation: .bytes, cardinality: .single,
                isWritten: wanted != nil,
                oneof: field.oneof.map { Int32($0) } ?? ProtobufProgram.noOneof)
            var place = wanted ?? .root
            switch field.cardinality {
            case .single: break
            case .repeated:
                entry.cardinality = .repeated
                entry.count = Int32(
                    clamping: wanted.flatMap { projection.itemsMax(of: $0) } ?? Int(Int32.max))
                if wanted != nil { place = projection.anyChild(of: place) }
            case .map(let key):
                entry.cardinality = .map
                entry.key = operation(key)
                entry.keys = Int32(program.words.count)
                let keys = wanted.flatMap { projection.keys(of: $0) }
                for key in keys ?? [] { program.words.append(program.texts.add(key)) }
                entry.count = keys.map { Int32($0.count) } ?? ProtobufProgram.allKeys
                if wanted != nil { place = projection.anyChild(of: place) }
            }
            // What is not written needs no type but its form on the wire.
            setType(of: &entry, field.type, wanted == nil ? nil : place, &program)
            entry.name = program.texts.add(field.jsonName)
            if entry.isWritten {
                entry.prefix = program.texts.add(member: field.jsonName, isFirst: true)
            }
            return entry
        }

        private mutating func setType(
            of entry: inout Field, _ type: ProtobufSchema.FieldType, _ place: Projection.Place?,
            _ program: inout Tables
        ) {
            entry.operation = operation(type)
            switch type {
            case .enumeration(let type):
                entry.place = enumeration(type, &program)
            case .unresolved(let reason) where place != nil:
                problem = UnusableSchema(schema.unresolved[reason])
            case .message(let message):
                if let inner = Self.wrapped(schema.messages[message].fullName) {
                    entry.operation = .wrapper
                    entry.wrapped = inner
                } else if entry.operation == .message, let place {
                    entry.place = self.message(Source(message: message, place: place), &program)
                }
            default: break
            }
        }

        private mutating func enumeration(
            _ type: Int, _ program: inout Tables
        ) -> Int32 {
            if let known = knownEnumerations[type] { return Int32(known) }
            let place = program.enumerations.count
            knownEnumerations[type] = place
            let declared = schema.enumerations[type]
            program.enumerations.append(
                Part(first: Int32(program.values.count), count: Int32(declared.values.count)))
            let isNull = declared.fullName == "google.protobuf.NullValue"
            for (number, name) in declared.values {
                let text =
                    isNull ? program.texts.add("null".utf8) : program.texts.add(quoted: name)
                program.values.append(Value(number: number, text: text))
            }
            return Int32(place)
        }

        private func operation(_ type: ProtobufSchema.FieldType) -> Operation {
            switch type {
            case .double: .double
            case .float: .float
            case .int32: .int32
            case .int64: .int64
            case .uint32: .uint32
            case .uint64: .uint64
            case .sint32: .sint32
            case .sint64: .sint64
            case .fixed32: .fixed32
            case .fixed64: .fixed64
            case .sfixed32: .sfixed32
            case .sfixed64: .sfixed64
            case .bool: .bool
            case .string: .string
            case .bytes: .bytes
            case .enumeration: .enumeration
            case .unresolved: .bytes
            case .message(let message):
                switch schema.messages[message].fullName {
                case "google.protobuf.Timestamp": .timestamp
                case "google.protobuf.Duration": .duration
                case "confluent.type.Decimal": .decimal
                case "google.protobuf.Struct": .structure
                case "google.protobuf.Value": .value
                case "google.protobuf.ListValue": .list
                case "google.protobuf.FieldMask": .fieldMask
                default: .message
                }
            }
        }

        private static func wrapped(_ name: String) -> Operation? {
            switch name {
            case "google.protobuf.DoubleValue": .double
            case "google.protobuf.FloatValue": .float
            case "google.protobuf.Int64Value": .int64
            case "google.protobuf.UInt64Value": .uint64
            case "google.protobuf.Int32Value": .int32
            case "google.protobuf.UInt32Value": .uint32
            case "google.protobuf.BoolValue": .bool
            case "google.protobuf.StringValue": .string
            case "google.protobuf.BytesValue": .bytes
            default: nil
            }
        }
    }
}
