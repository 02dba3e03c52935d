// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FoundationEssentials
internal import PushModel

/// Writes and reads the JSON of `/explain`.
package enum ExplainJSON {
    static func bytes(_ value: some Encodable) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(value) else {
            preconditionFailure("texts and numbers can always be written as JSON")
        }
        return Array(data)
    }

    package static func text(_ value: some Encodable) -> String {
        String(decoding: bytes(value), as: UTF8.self)
    }

    /// Nil if the bytes are not the JSON of such a value.
    package static func value<Value: Decodable>(_ type: Value.Type, in bytes: [UInt8]) -> Value? {
        try? JSONDecoder().decode(type, from: Data(bytes))
    }

    /// The 16 hexadecimal digits of a token ID.
    package static func tokenID(_ number: UInt64) -> String {
        withUnsafeBytes(of: number.bigEndian) { Hexadecimal.encode($0) }
    }
}
