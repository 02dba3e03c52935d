// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory

@testable import SchemaCodecs

/// Protobuf by hand: what a writer's library would make of values.
struct ProtobufBytes: Sendable {
    var bytes: [UInt8] = []

    func varint(_ number: Int, _ value: Int64) -> ProtobufBytes {
        tag(number, 0).raw(AvroBytes.varint(UInt64(bitPattern: value)))
    }

    func bytes(_ number: Int, _ content: [UInt8]) -> ProtobufBytes {
        tag(number, 2).raw(AvroBytes.varint(UInt64(content.count))).raw(content)
    }

    func string(_ number: Int, _ text: String) -> ProtobufBytes {
        bytes(number, Array(text.utf8))
    }

    func message(_ number: Int, _ content: ProtobufBytes) -> ProtobufBytes {
        bytes(number, content.bytes)
    }

    func fixed64(_ number: Int, _ bits: UInt64) -> ProtobufBytes {
        tag(number, 1).raw((0..<8).map { UInt8(truncatingIfNeeded: bits >> ($0 * 8)) })
    }

    func fixed32(_ number: Int, _ bits: UInt32) -> ProtobufBytes {
        tag(number, 5).raw((0..<4).map { UInt8(truncatingIfNeeded: bits >> ($0 * 8)) })
    }

    func tag(_ number: Int, _ wire: Int) -> ProtobufBytes {
        raw(AvroBytes.varint(UInt64(number << 3 | wire)))
    }

    func raw(_ more: [UInt8]) -> ProtobufBytes { ProtobufBytes(bytes: bytes + more) }
}

enum ProtobufFixture {
    /// The JSON of a value of the file's first message, or what is wrong with it.
    static func json(
        _ schema: String, references: [(name: String, text: String)] = [], _ value: ProtobufBytes,
        pointers: [String] = [""], message: [Int] = [0]
    ) throws -> String {
        let parsed = try ProtoParser.schema(
            Array(schema.utf8), references: references.map { ($0.name, Array($0.text.utf8)) })
        let root = parsed.message(MessageIndexes(path: message)!)!
        let program = try ProtobufProgram(parsed, root: root, Projection(pointers: pointers)!)
        var output = OutputBuffer(bytesMax: 1 << 20)
        var scratch: [ProtobufReading.Occurrence] = []
        let problem = value.bytes.withUnsafeBytes {
            ProtobufReading.write($0, program, to: &output, scratch: &scratch)
        }
        return problem ?? String(decoding: output.bytes, as: UTF8.self)
    }

    /// Why a schema, or its first message as a whole, is refused; empty if it is not.
    static func problem(_ schema: String) -> String {
        do throws(UnusableSchema) {
            let parsed = try ProtoParser.schema(Array(schema.utf8))
            if let root = parsed.message(.first) { _ = try ProtobufProgram(parsed, root: root) }
            return ""
        } catch { return error.description }
    }
}
