// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A schema of Avro 1.12 as the writer of a record had it: types that refer to each other by their
/// places, so that a type may contain itself.
///
/// Values are read with the writer's schema alone. So what only matters between two schemas (aliases,
/// defaults, the order of fields, documentation) is passed over.
struct AvroSchema: Sendable {
    enum Kind: Sendable, Equatable {
        case null, boolean, int, long, float, double, bytes, string
        case fixed(size: Int)
        /// 16 bytes that are written as a UUID.
        case uuid
        /// A number in two's complement, of `size` bytes, or of as many as the value says.
        case decimal(size: Int?, scale: Int)
        case enumeration(symbols: [[UInt8]])
        case array(Int)
        case map(Int)
        case union([Int])
        case record([Field])
        /// A named type that is mentioned, and has not been defined yet.
        case undefined
    }

    struct Field: Sendable, Equatable {
        var name: [UInt8]
        var type: Int
    }

    var types: [Kind] = []
    var root = 0

    /// About what the schema takes in memory.
    var byteCount: Int {
        types.reduce(types.count * 48) { sum, type in
            switch type {
            case .enumeration(let symbols): symbols.reduce(sum) { $0 + 32 + $1.count }
            case .union(let branches): sum + branches.count * 8
            case .record(let fields): fields.reduce(sum) { $0 + 48 + $1.name.count }
            default: sum
            }
        }
    }
}
