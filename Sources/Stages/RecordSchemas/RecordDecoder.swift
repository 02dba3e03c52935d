// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory

/// Makes JSON of keys and values that were written with a schema. A record costs no allocation once
/// its schema has been seen.
package struct RecordDecoder: ~Copyable {
    /// What has become of a key or a value.
    package enum Decoded {
        /// JSON, valid until the next call. Of JSON Schema it is part of what was given.
        case json(UnsafeRawBufferPointer)
        /// The schema is not known yet, so that the record must wait.
        ///
        /// - unreachable: why the registry gives no answer; nil while it has hardly been asked.
        case waiting(for: SchemaID, unreachable: String?)
    }

    /// What a program was made for.
    private struct Key: Hashable {
        let schema: SchemaID
        let projection: Int
        let message: MessageIndexes
    }

    private enum Program {
        case avro(AvroProgram)
        case protobuf(ProtobufProgram)

        var byteCount: Int {
            switch self {
            case .avro(let program): program.byteCount
            case .protobuf(let program): program.byteCount
            }
        }
    }

    private let projections: [Projection]
    private var output: OutputBuffer
    private var scratch: [ProtobufReading.Occurrence] = []
    private var programs: [Program] = []
    private var programBytes = 0
    private var places: [Key: Int] = [:]
    /// The program of the record before, since the next one has the same most often.
    private var last: (key: Key, place: Int)?

    /// Programs are thrown away, all of them, when they are more than this: then they are made again.
    static let programsMax = 2000
    static let programBytesMax = 64 << 20

    /// - Parameter projections: what is wanted of values, each for one kind of use.
    package init(projections: [Projection], limits: SchemaLimits = SchemaLimits()) {
        self.projections = projections
        output = OutputBuffer(bytesMax: limits.outputBytesMax)
    }

    /// Decodes a record's key or value, frame included.
    ///
    /// - Parameters:
    ///   - projection: the place of what is wanted among the projections.
    ///   - lookup: is called for a schema that has not been used with this projection yet.
    package mutating func decode(
        _ bytes: UnsafeRawBufferPointer, as language: SchemaLanguage, projection: Int = 0,
        lookup: (SchemaID) -> SchemaAnswer
    ) throws(UndecodableRecord) -> Decoded {
        let frame = try SchemaFrame(bytes)
        guard language != .json else { return .json(frame.content) }
        var content = frame.content
        var message = MessageIndexes.first
        if language == .protobuf {
            (message, content) = try MessageIndexes.read(from: frame.content)
        }
        let key = Key(schema: frame.schema, projection: projection, message: message)
        let place: Int
        if let last, last.key == key {
            place = last.place
        } else if let known = places[key] {
            place = known
        } else {
            switch lookup(frame.schema) {
            case .known(let schema): place = try add(schema, as: language, key)
            case .pending: return .waiting(for: frame.schema, unreachable: nil)
            case .unreachable(let cause): return .waiting(for: frame.schema, unreachable: cause)
            case .unknown(let reason): throw UndecodableRecord(.unknownSchema, reason)
            case .unusable(let reason): throw UndecodableRecord(.unusableSchema, reason)
            }
        }
        last = (key, place)
        return .json(try json(of: content, place))
    }

    private mutating func json(
        of content: UnsafeRawBufferPointer, _ place: Int
    ) throws(UndecodableRecord) -> UnsafeRawBufferPointer {
        output.removeAll()
        let problem =
            switch programs[place] {
            case .avro(let program): AvroReading.write(content, program, to: &output)
            case .protobuf(let program):
                ProtobufReading.write(content, program, to: &output, scratch: &scratch)
            }
        if let problem { throw UndecodableRecord(.content, problem) }
        return output.bytes
    }

    private mutating func add(
        _ schema: RecordSchema, as language: SchemaLanguage, _ key: Key
    ) throws(UndecodableRecord) -> Int {
        guard schema.language == language else {
            throw UndecodableRecord(
                .unusableSchema,
                "schema \(key.schema) is \(schema.language.rawValue), and the records are read as "
                    + language.rawValue)
        }
        let program: Program
        do throws(UnusableSchema) {
            program = try Self.program(schema, key, projections[key.projection])
        } catch {
            throw UndecodableRecord(.unusableSchema, "schema \(key.schema): \(error.description)")
        }
        programBytes += program.byteCount
        if programs.count >= Self.programsMax || programBytes > Self.programBytesMax {
            forget()
            programBytes = program.byteCount
        }
        programs.append(program)
        places[key] = programs.count - 1
        return programs.count - 1
    }

    private static func program(
        _ schema: RecordSchema, _ key: Key, _ projection: Projection
    ) throws(UnusableSchema) -> Program {
        switch schema.content {
        case .avro(let schema): return .avro(try AvroProgram(schema, projection))
        case .protobuf(let schema):
            guard let message = schema.message(key.message) else {
                throw UnusableSchema("it has no message at the place that the record names")
            }
            return .protobuf(try ProtobufProgram(schema, root: message, projection))
        case .json: preconditionFailure("JSON needs no program")
        }
    }

    /// Forgets all schemas, as is right when another registry is asked.
    package mutating func forget() {
        programs.removeAll()
        places.removeAll()
        programBytes = 0
        last = nil
    }
}
