// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats
package import SchemaCodecs
internal import Simdjson

/// How the keys of a topic were written, where they are not text.
package enum KeyFormat: Sendable, Hashable {
    /// With a schema registry.
    case schema(SchemaLanguage)
    /// Integers of so many bytes, the highest first, as Java's LongSerializer and IntegerSerializer
    /// write them.
    case integer(bytes: Int)
    /// JSON, as Connect's JsonConverter writes it: `"42"` with its quotation marks.
    case json

    package static let int64 = integer(bytes: 8)
    package static let int32 = integer(bytes: 4)

    /// The language of the schemas; nil where there are none.
    package var language: SchemaLanguage? {
        if case .schema(let language) = self { language } else { nil }
    }

    /// The digits of a key that is an integer.
    /// - Parameter digits: where they are written; empty.
    /// - Throws: for a key that is none of so many bytes, with what it looks like.
    static func readInteger(
        _ key: UnsafeRawBufferPointer, bytes count: Int, into digits: inout FixedBytes
    ) throws(UnreadableRecord) {
        guard key.count == count else {
            throw UnreadableRecord(
                .invalidKey,
                "the record's key has \(key.count) bytes, and keySchema: int\(count * 8) reads an "
                    + "integer in \(count): \(remedy(for: key))")
        }
        // Eight digits of text would be a number beyond 3.4e18, which nobody counts up to. Four are
        // as good a number as any.
        guard count < 8 || !key.allSatisfy({ (0x30...0x39).contains($0) }) else {
            throw UnreadableRecord(
                .invalidKey,
                "the record's key is 8 digits, of which keySchema: int64 would make another "
                    + "number: \(remedy(for: key))")
        }
        var value: Int64 = key[0] & 0x80 == 0 ? 0 : -1
        for byte in key { value = value << 8 | Int64(byte) }
        var text = String(value)
        text.withUTF8 { _ = digits.append(UnsafeRawBufferPointer($0)) }
    }

    /// The bytes of a key whose digits somebody has typed; nil unless keys are integers of so many bytes.
    func key(typed digits: [UInt8]) -> [UInt8]? {
        guard case .integer(let count) = self,
            let value = Int64(String(decoding: digits, as: UTF8.self)),
            count == 8 || Int32(exactly: value) != nil
        else { return nil }
        return (0..<count).reversed().map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
    }

    /// What is wrong with a key of which JSON is read, and of which none can be.
    /// - Parameter most: how many bytes of JSON are read.
    static func noJSON(_ key: UnsafeRawBufferPointer, most: Int) -> UnreadableRecord {
        guard key.count <= most else {
            return UnreadableRecord(
                .invalidJSON,
                "the key, of which fields are read, is too long for that: it has \(key.count) "
                    + "bytes, and the most is \(most)")
        }
        return UnreadableRecord(
            .invalidJSON,
            "the key is no JSON, of which fields are read; it has \(key.count) bytes: "
                + (beginsAsJSON(key)
                    ? "it begins as JSON does, and is damaged or cut off" : remedy(for: key)))
    }

    /// What to say of such a key in the binding, as far as its form tells; nothing of its content is
    /// named.
    private static func remedy(for key: UnsafeRawBufferPointer) -> String {
        let isText = key.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
        switch key[0] {
        case _ where beginsAsJSON(key):
            return "it begins as JSON does, for which keySchema: json is"
        case _ where isText: return "it is text, for which keySchema is left out, and {key} written"
        case _ where key.count == 8: return "it may be an integer: say keySchema: int64"
        case _ where key.count == 4: return "it may be an integer: say keySchema: int32"
        case 0:
            return "it begins with a zero byte, as keys with a schema do: say keySchema: avro, "
                + "protobuf or jsonSchema"
        default: return "see docs/record-schemas.md for the keys that are read"
        }
    }

    private static func beginsAsJSON(_ key: UnsafeRawBufferPointer) -> Bool {
        switch key[0] {
        case UInt8(ascii: "\""), UInt8(ascii: "{"), UInt8(ascii: "["): true
        default: false
        }
    }
}

extension UnsafeRawBufferPointer {
    /// Without the byte order mark that some programs write before a text.
    package var withoutByteOrderMark: UnsafeRawBufferPointer {
        guard count >= 3, self[0] == 0xEF, self[1] == 0xBB, self[2] == 0xBF else { return self }
        return UnsafeRawBufferPointer(rebasing: self[3...])
    }
}
