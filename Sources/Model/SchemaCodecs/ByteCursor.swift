// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Reads a value's bytes from the front. Each read returns nil, or false, where the bytes end too early
/// or a number is too long; `fault` then says which.
struct ByteCursor {
    private let bytes: UnsafeRawBufferPointer
    private(set) var position = 0
    private(set) var fault = ValueFault.endsTooEarly

    init(_ bytes: UnsafeRawBufferPointer) { self.bytes = bytes }

    var remaining: Int { bytes.count - position }
    var isAtEnd: Bool { position == bytes.count }

    mutating func byte() -> UInt8? {
        guard position < bytes.count else { return nil }
        defer { position += 1 }
        return bytes[position]
    }

    /// LEB128 of at most 64 bits, as Protobuf and Avro write integers. Padding with zero bits is
    /// accepted, since both formats' own readers do, up to ten bytes.
    @inline(__always)
    mutating func varint() -> UInt64? {
        if position < bytes.count, bytes[position] < 0x80 {
            defer { position += 1 }
            return UInt64(bytes[position])
        }
        return longVarint()
    }

    private mutating func longVarint() -> UInt64? {
        var value: UInt64 = 0
        var shift: UInt64 = 0
        while let byte = byte() {
            // The tenth byte has the last of 64 bits.
            guard shift < 63 || byte <= 1 else {
                fault = .longVarint
                return nil
            }
            value |= UInt64(byte & 0x7F) << shift
            if byte < 0x80 { return value }
            shift += 7
        }
        return nil
    }

    /// A varint of which the lowest bit is the sign.
    @inline(__always)
    mutating func zigzag() -> Int64? {
        guard let value = varint() else { return nil }
        return Int64(bitPattern: value >> 1) ^ -Int64(bitPattern: value & 1)
    }

    /// This many bytes, which must be there.
    @inline(__always)
    mutating func take(_ count: Int) -> UnsafeRawBufferPointer? {
        guard count >= 0, count <= remaining else { return nil }
        defer { position += count }
        return UnsafeRawBufferPointer(rebasing: bytes[position..<position + count])
    }

    /// The number of bytes may be any number that a varint can say.
    @inline(__always)
    mutating func take(_ count: UInt64) -> UnsafeRawBufferPointer? {
        guard count <= UInt64(remaining) else { return nil }
        return take(Int(count))
    }

    @inline(__always)
    mutating func skip(_ count: Int) -> Bool {
        guard count >= 0, count <= remaining else { return false }
        position += count
        return true
    }

    /// Little-endian.
    mutating func fixed32() -> UInt32? {
        guard let four = take(4) else { return nil }
        return UInt32(littleEndian: four.loadUnaligned(as: UInt32.self))
    }

    /// Little-endian.
    mutating func fixed64() -> UInt64? {
        guard let eight = take(8) else { return nil }
        return UInt64(littleEndian: eight.loadUnaligned(as: UInt64.self))
    }

    /// Goes back to where the cursor was.
    mutating func rewind(to position: Int) {
        precondition(
            (0...bytes.count).contains(position),
            "a position lies within the bytes or at their end")
        self.position = position
    }
}
