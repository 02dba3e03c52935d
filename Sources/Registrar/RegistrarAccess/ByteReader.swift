// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Takes bytes apart from the front; whatever they say, it never reads beyond their end.
struct ByteReader {
    private(set) var rest: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { rest = bytes[...] }

    /// Nil, and nothing is taken, if there are fewer bytes.
    mutating func bytes(_ count: Int) -> [UInt8]? {
        guard count >= 0, count <= rest.count else { return nil }
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
    }

    mutating func byte() -> UInt8? { rest.popFirst() }

    /// A number of so many bytes, at most 8, big-endian.
    mutating func number(bytes count: Int) -> UInt64? {
        assert((1...8).contains(count), "a number has 1 to 8 bytes, so that it fits into 64 bits")
        return bytes(count)?.reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Bytes after a byte with their number.
    mutating func text() -> String? {
        guard let count = byte(), let bytes = bytes(Int(count)) else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }
}

extension FixedWidthInteger {
    /// Big-endian.
    var bigEndianBytes: [UInt8] {
        (0..<Self.bitWidth / 8).reversed().map { UInt8(truncatingIfNeeded: self >> ($0 * 8)) }
    }
}
