// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory

@testable import SchemaCodecs

/// Avro by hand: what a writer's library would make of values.
struct AvroBytes: ExpressibleByArrayLiteral {
    var bytes: [UInt8] = []

    init() {}
    init(arrayLiteral elements: UInt8...) { bytes = elements }

    func long(_ value: Int64) -> AvroBytes {
        raw(Self.varint(UInt64(bitPattern: value << 1 ^ value >> 63)))
    }

    func string(_ text: String) -> AvroBytes { bytes(Array(text.utf8)) }

    func bytes(_ content: [UInt8]) -> AvroBytes { long(Int64(content.count)).raw(content) }

    func raw(_ more: [UInt8]) -> AvroBytes {
        var copy = self
        copy.bytes += more
        return copy
    }

    func double(_ value: Double) -> AvroBytes {
        raw((0..<8).map { UInt8(truncatingIfNeeded: value.bitPattern >> ($0 * 8)) })
    }

    func float(_ value: Float) -> AvroBytes {
        raw((0..<4).map { UInt8(truncatingIfNeeded: value.bitPattern >> ($0 * 8)) })
    }

    static func varint(_ value: UInt64) -> [UInt8] {
        var bytes: [UInt8] = []
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(rest & 0x7F) | 0x80)
            rest >>= 7
        }
        return bytes + [UInt8(rest)]
    }
}

enum AvroFixture {
    /// The JSON of a value, or what is wrong with it.
    static func json(
        _ schema: String, references: [String] = [], _ value: AvroBytes, pointers: [String] = [""],
        bytesMax: Int = 1 << 20
    ) throws -> String {
        let parsed = try AvroSchemaParser.schema(
            Array(schema.utf8), references: references.map { Array($0.utf8) })
        let program = try AvroProgram(parsed, Projection(pointers: pointers)!)
        var output = OutputBuffer(bytesMax: bytesMax)
        let problem = value.bytes.withUnsafeBytes {
            AvroReading.write($0, program, to: &output)
        }
        return problem ?? String(decoding: output.bytes, as: UTF8.self)
    }

    /// Why a schema is refused; empty if it is not.
    static func problem(_ schema: String, references: [String] = []) -> String {
        do throws(UnusableSchema) {
            _ = try AvroSchemaParser.schema(
                Array(schema.utf8), references: references.map { Array($0.utf8) })
            return ""
        } catch { return error.description }
    }
}
