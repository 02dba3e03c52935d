// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
internal import PushModel
internal import Simdjson

@testable import SchemaCodecs
@testable import SchemaRegistry

/// A schema of Avro. The input: its text.
///
/// A schema that is read has programs, and whatever bytes they are given they make JSON or one sentence.
enum AvroSchemasTarget {
    static func run(_ input: UnsafeRawBufferPointer) throws {
        do throws(UnusableSchema) {
            let schema = try AvroSchemaParser.schema(Array(input))
            try checked { try check(schema) }
        } catch { try promiseLine(error.description) }
    }

    private static func check(_ schema: AvroSchema) throws {
        for pointers in [[""], [], ["/id", "/a/0/b", "/m/k"]] {
            guard
                let program = try? AvroProgram(schema, Projection(pointers: pointers)!)
            else { continue }
            try promise(
                program.byteCount <= SchemaLimits.partsMax * 2000, "\(program.byteCount) bytes")
            for value in ValuePromises.samples {
                let bytes = ExactBytes(value)
                try withExtendedLifetime(bytes) { _ = try ValuePromises.avro(bytes.lent, program) }
            }
        }
    }
}

/// A schema of Protobuf. The input: its text.
enum ProtobufSchemasTarget {
    static func run(_ input: UnsafeRawBufferPointer) throws {
        do throws(UnusableSchema) {
            let schema = try ProtoParser.schema(Array(input))
            try checked { try check(schema) }
        } catch { try promiseLine(error.description) }
    }

    private static func check(_ schema: ProtobufSchema) throws {
        for (place, pointers) in [[""], [], ["/id", "/a/0/b", "/m/k"]].enumerated() {
            let root = schema.roots.isEmpty ? nil : schema.roots[place % schema.roots.count]
            guard let root,
                let program = try? ProtobufProgram(
                    schema, root: root, Projection(pointers: pointers)!)
            else { continue }
            for value in ValuePromises.samples {
                let bytes = ExactBytes(value)
                try withExtendedLifetime(bytes) {
                    _ = try ValuePromises.protobuf(bytes.lent, program)
                }
            }
        }
    }
}

/// A broken promise must not be taken for a schema that is refused.
private func checked(_ body: () throws -> Void) throws(UnusableSchema) {
    do { try body() } catch { fatalError("\(error)") }
}

/// A value of Avro. The input: a line with the number of a program, the value.
enum AvroValuesTarget {
    private static let order = """
        {"type":"record","name":"o","fields":[{"name":"id","type":"string"},
          {"name":"n","type":["null","double"]},
          {"name":"a","type":{"type":"array","items":{"type":"record","name":"i","fields":[
            {"name":"b","type":"string"},{"name":"c","type":"int"}]}}},
          {"name":"m","type":{"type":"map","values":"double"}},
          {"name":"u","type":["null",{"type":"enum","name":"e","symbols":["A","B"]},"float"]},
          {"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":9,"scale":3}},
          {"name":"f","type":{"type":"fixed","name":"x","size":16,"logicalType":"uuid"}}]}
        """
    private static let wanted = ["/id", "/a/0/b", "/a/1/c", "/m/k", "/d"]

    private static let programs: [AvroProgram] = [
        program(order), program(order, wanted), program(#"{"type":"array","items":"null"}"#),
        program(
            #"{"type":"record","name":"n","fields":[{"name":"a","type":"n"},{"name":"b","type":"n"}]}"#
        ),
        program(#"{"type":"array","items":{"type":"map","values":"long"}}"#),
        program(
            #"{"type":"record","name":"n","fields":[{"name":"a","type":["null","n"]},{"name":"b","type":"bytes"}]}"#
        ),
    ]

    private static func program(_ text: String, _ pointers: [String] = [""]) -> AvroProgram {
        try! AvroProgram(
            AvroSchemaParser.schema(Array(text.utf8)), Projection(pointers: pointers)!)
    }

    static func run(_ input: UnsafeRawBufferPointer) throws {
        var input = FuzzInput(input)
        let choice = Int(input.line()?.first ?? 0x30) % programs.count
        let value = ExactBytes(input.rest)
        defer { withExtendedLifetime(value) {} }
        let json = try ValuePromises.avro(value.lent, programs[choice])
        guard choice == 0, let json else { return }
        let part = try ValuePromises.avro(value.lent, programs[1])
        try ValuePromises.agree(json, part, wanted)
    }
}

/// A message of Protobuf. The input: a line with the number of a program, the message.
enum ProtobufValuesTarget {
    private static let schema = try! ProtoParser.schema(
        Array(
            """
            import "google/protobuf/timestamp.proto"; import "google/protobuf/duration.proto";
            import "google/protobuf/struct.proto"; import "google/protobuf/wrappers.proto";
            import "google/protobuf/field_mask.proto"; import "confluent/type/decimal.proto";
            message M {
              optional int32 id = 1; optional string s = 2; repeated M a = 3; map<string, int64> m = 4;
              repeated int32 r = 5; optional double d = 6; optional float f = 7;
              oneof o { M x = 8; bytes y = 9; } optional google.protobuf.Timestamp t = 10;
              optional google.protobuf.Duration l = 11; optional google.protobuf.Struct j = 12;
              optional google.protobuf.Int64Value w = 13; optional google.protobuf.FieldMask k = 14;
              repeated string z = 15; map<int32, M> p = 16; enum E { N = 0; } repeated E e = 17;
              map<string, google.protobuf.Timestamp> q = 18; repeated google.protobuf.Value v = 19;
              optional confluent.type.Decimal g = 20; map<string, confluent.type.Decimal> h = 21;
            }
            """.utf8))
    private static let wanted = [
        "/id", "/a/0/s", "/a/1/id", "/m/k", "/x/r", "/p/1/id", "/r/2", "/g", "/h/k",
    ]
    private static let programs: [ProtobufProgram] = [[""], wanted].map {
        try! ProtobufProgram(schema, root: 0, Projection(pointers: $0)!)
    }

    static func run(_ input: UnsafeRawBufferPointer) throws {
        var input = FuzzInput(input)
        let choice = Int(input.line()?.first ?? 0x30) % programs.count
        let value = ExactBytes(input.rest)
        defer { withExtendedLifetime(value) {} }
        let json = try ValuePromises.protobuf(value.lent, programs[choice])
        guard choice == 0, let json else { return }
        let part = try ValuePromises.protobuf(value.lent, programs[1])
        try ValuePromises.agree(json, part, wanted)
    }
}

/// A key or a value with a frame. The input: a, p or j for the language, the bytes.
enum SchemaFramesTarget {
    private static let schemas: [SchemaLanguage: RecordSchema] = [
        .avro: schema(
            .avro,
            #"{"type":"record","name":"r","fields":[{"name":"a","type":"int"},{"name":"b","type":"int"}]}"#
        ),
        .protobuf: schema(
            .protobuf, "message A { message B { optional int32 b = 1; } optional int32 a = 1; }"),
    ]

    private static func schema(_ language: SchemaLanguage, _ text: String) -> RecordSchema {
        try! RecordSchema(SchemaText(language: language, text: Array(text.utf8)))
    }

    static func run(_ input: UnsafeRawBufferPointer) throws {
        var input = FuzzInput(input)
        let language: SchemaLanguage =
            switch input.byte() {
            case UInt8(ascii: "a"): .avro
            case UInt8(ascii: "p"): .protobuf
            default: .json
            }
        let bytes = ExactBytes(input.rest)
        defer { withExtendedLifetime(bytes) {} }
        var decoder = RecordDecoder(projections: [.whole])
        do throws(UndecodableRecord) {
            let decoded = try decoder.decode(bytes.lent, as: language) { number in
                guard number.rawValue < 100, let known = schemas[language] else { return .pending }
                return .known(known)
            }
            guard case .json(let json) = decoded, language != .json else { return }
            ValuePromises.expectJSON(json)
        } catch { try promiseLine(error.message) }
    }
}

/// An answer of a schema registry. The input: its body.
enum RegistryAnswersTarget {
    static func run(_ input: UnsafeRawBufferPointer) throws {
        _ = RegistryAnswer.errorCode(Array(input))
        guard let answer = RegistryAnswer(Array(input)) else { return }
        try promise(answer.text.count <= input.count, "a schema larger than the answer")
        for reference in answer.references {
            let escaped = RegistryClient.escaped(reference.subject)
            try promise(
                escaped.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x2F && $0 != 0x3F },
                "a subject that leaves its part of the path")
        }
    }
}

/// What holds of all values that are written as JSON.
enum ValuePromises {
    private static let bytesMax = 64 << 10

    /// Values for schemas that nobody has seen before.
    static let samples: [[UInt8]] = [
        [], [UInt8](repeating: 0, count: 64), [UInt8](repeating: 2, count: 64), Array(0..<64),
        [UInt8](repeating: 0xFF, count: 64),
    ]

    /// - Returns: the JSON; nil if the value is refused.
    @discardableResult
    static func avro(
        _ value: UnsafeRawBufferPointer, _ program: AvroProgram
    ) throws -> [UInt8]? {
        var output = OutputBuffer(bytesMax: bytesMax)
        let problem = AvroReading.write(value, program, to: &output)
        return try result(problem, output)
    }

    @discardableResult
    static func protobuf(
        _ value: UnsafeRawBufferPointer, _ program: ProtobufProgram
    ) throws -> [UInt8]? {
        var output = OutputBuffer(bytesMax: bytesMax)
        var scratch: [ProtobufReading.Occurrence] = []
        let problem = ProtobufReading.write(value, program, to: &output, scratch: &scratch)
        return try result(problem, output)
    }

    private static func result(
        _ problem: String?, _ output: borrowing OutputBuffer
    ) throws -> [UInt8]? {
        try promise(output.count <= bytesMax, "\(output.count) bytes of JSON")
        if let problem {
            try promiseLine(problem, bytesMax: 5000)
            return nil
        }
        expectJSON(output.bytes)
        return Array(output.bytes)
    }

    /// The parser that reads it next must accept it.
    static func expectJSON(_ bytes: UnsafeRawBufferPointer) {
        var parser = JSONParser(bytesMax: bytesMax * 2, depthMax: 64)
        do throws(JSONError) { _ = try parser.parse(bytes) } catch {
            fatalError("it is no JSON: \(error.message)")
        }
    }

    /// What the pointers name is the same whether all is written or only what they name.
    static func agree(_ whole: [UInt8], _ part: [UInt8]?, _ pointers: [String]) throws {
        guard let part else { throw BrokenPromise(description: "only a part of it is refused") }
        for pointer in pointers {
            try promise(
                value(at: pointer, in: whole) == value(at: pointer, in: part),
                "another value at \(pointer)")
        }
    }

    private static func value(at pointer: String, in json: [UInt8]) -> [UInt8]? {
        var parser = JSONParser(bytesMax: bytesMax, depthMax: 64)
        return json.withUnsafeBytes { bytes in
            guard let found = try? parser.parse(bytes)[JSONPointer(pointer)!] else {
                return nil
            }
            var text: [UInt8] = []
            return found.minify(into: &text, bytesMax: bytesMax * 2) ? text : nil
        }
    }
}
