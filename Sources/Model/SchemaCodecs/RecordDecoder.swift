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

    /// What has become of a schema, of which a program is wanted.
    private enum Resolved {
        case place(Int)
        case waiting(AwaitedSchema)
        case refused(UndecodableRecord)
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
    /// Why schemas of the current record cannot be used.
    private var refused: [Key: UndecodableRecord] = [:]

    /// Programs are thrown away, all of them, when they are more than this: then they are made again.
    static let programsMax = 2000
    static let programBytesMax = 64 << 20

    /// - Parameter projections: what is wanted of values, each for one kind of use.
    package init(projections: [Projection], limits: SchemaLimits = SchemaLimits()) {
        self.projections = projections
        output = OutputBuffer(bytesMax: limits.outputBytesMax)
    }

    /// A record follows. Whoever asks `awaited` of its parts must call this before.
    package mutating func begin() {
        if !refused.isEmpty { refused.removeAll(keepingCapacity: true) }
        // Not while a record is read, which may need two of them.
        if isFull { forget() }
    }

    /// The schema without which nothing can be told of a key or a value; nil if there is none. Then
    /// `decode` does not wait either until the next record.
    package mutating func awaited(
        _ bytes: UnsafeRawBufferPointer, as language: SchemaLanguage, projection: Int = 0,
        lookup: (SchemaID) -> SchemaAnswer
    ) -> AwaitedSchema? {
        guard language != .json, let (key, _) = try? Self.key(of: bytes, language, projection)
        else { return nil }
        switch resolve(key, as: language, lookup) {
        case .place: return nil
        case .waiting(let awaited): return awaited
        case .refused(let problem):
            refused[key] = problem
            return nil
        }
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
        guard language != .json else { return .json(try SchemaFrame(bytes).content) }
        let (key, content) = try Self.key(of: bytes, language, projection)
        switch resolve(key, as: language, lookup) {
        case .place(let place): return .json(try json(of: content, place))
        case .waiting(let awaited):
            return .waiting(for: awaited.schema, unreachable: awaited.unreachable)
        case .refused(let problem): throw problem
        }
    }

    private static func key(
        of bytes: UnsafeRawBufferPointer, _ language: SchemaLanguage, _ projection: Int
    ) throws(UndecodableRecord) -> (Key, content: UnsafeRawBufferPointer) {
        let frame = try SchemaFrame(bytes)
        var content = frame.content
        var message = MessageIndexes.first
        if language == .protobuf {
            (message, content) = try MessageIndexes.read(from: frame.content)
        }
        return (Key(schema: frame.schema, projection: projection, message: message), content)
    }

    private mutating func resolve(
        _ key: Key, as language: SchemaLanguage, _ lookup: (SchemaID) -> SchemaAnswer
    ) -> Resolved {
        if let last, last.key == key { return .place(last.place) }
        if let known = places[key] {
            last = (key, known)
            return .place(known)
        }
        if let problem = refused[key] { return .refused(problem) }
        switch lookup(key.schema) {
        case .known(let schema):
            do throws(UndecodableRecord) {
                let place = try add(schema, as: language, key)
                last = (key, place)
                return .place(place)
            } catch { return .refused(error) }
        case .pending: return .waiting(AwaitedSchema(schema: key.schema, unreachable: nil))
        case .unreachable(let cause):
            return .waiting(AwaitedSchema(schema: key.schema, unreachable: cause))
        case .unknown(let reason): return .refused(UndecodableRecord(.unknownSchema, reason))
        case .unusable(let reason): return .refused(UndecodableRecord(.unusableSchema, reason))
        }
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
        case .json: preconditionFailure("JSON is decoded without a program, so none is asked for")
        }
    }

    private var isFull: Bool {
        programs.count >= Self.programsMax || programBytes > Self.programBytesMax
    }

    /// Forgets all schemas, as is right when another registry is asked.
    package mutating func forget() {
        programs.removeAll()
        places.removeAll()
        programBytes = 0
        last = nil
    }
}
