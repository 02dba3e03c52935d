// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A 128-bit hash that never changes between releases: `apns-id` is made of it. Each 8 bytes are
/// folded into two words of state by a 64 × 64 → 128 bit multiplication. It is not for secrets. A
/// hash table whose keys come from outside needs a `seed` of its own.
package struct StableHash {
    package struct Value: Hashable, Sendable {
        package var high: UInt64
        package var low: UInt64

        package init(high: UInt64, low: UInt64) {
            self.high = high
            self.low = low
        }
    }

    private var first: UInt64
    private var second: UInt64
    private var length: UInt64 = 0

    // Fractional digits of e and pi: odd numbers that nobody has chosen for a purpose.
    private static let keyOne: UInt64 = 0xB7E1_5162_8AED_2A6B
    private static let keyTwo: UInt64 = 0x243F_6A88_85A3_08D3

    package init(seed: UInt64 = 0) {
        first = Self.keyOne ^ seed
        second = Self.keyTwo &+ seed
    }

    package mutating func combine(_ word: UInt64) {
        first = Self.fold(first ^ word, Self.keyTwo)
        second = Self.fold(second &+ word, Self.keyOne) ^ first
        length &+= 8
    }

    package mutating func combine(_ bytes: UnsafeRawBufferPointer) {
        var offset = 0
        while offset &+ 8 <= bytes.count {
            combine(Self.word(of: bytes, at: offset))
            offset &+= 8
        }
        // The count goes in too, so that trailing zero bytes change the value.
        combine(Self.tail(of: bytes))
        length &+= UInt64(bytes.count)
    }

    private static func word(of bytes: UnsafeRawBufferPointer, at offset: Int) -> UInt64 {
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    }

    /// The last bytes, which fill no whole word, in little-endian order. Loads may overlap: reading
    /// byte by byte cost 115 instructions more per push.
    private static func tail(of bytes: UnsafeRawBufferPointer) -> UInt64 {
        let count = bytes.count & 7
        if count == 0 { return 0 }
        if bytes.count > 8 {
            return word(of: bytes, at: bytes.count &- 8) >> UInt64(64 &- 8 &* count)
        }
        func byte(_ offset: Int) -> UInt64 { UInt64(bytes[offset]) << UInt64(8 &* offset) }
        if count < 4 { return byte(0) | byte(count >> 1) | byte(count &- 1) }
        func half(_ offset: Int) -> UInt64 {
            let half = bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)
            return UInt64(UInt32(littleEndian: half)) << UInt64(8 &* offset)
        }
        return half(0) | half(count &- 4)
    }

    package func finish() -> Value {
        let high = Self.fold(first ^ length, Self.keyOne ^ second)
        let low = Self.fold(second ^ length, Self.keyTwo ^ high)
        return Value(high: high, low: low)
    }

    package static func hash64(_ bytes: UnsafeRawBufferPointer, seed: UInt64) -> UInt64 {
        var hash = StableHash(seed: seed)
        hash.combine(bytes)
        return hash.finish().low
    }

    private static func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let product = left.multipliedFullWidth(by: right)
        return product.high ^ product.low
    }
}
