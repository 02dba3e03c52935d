// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A 128-bit hash that never changes between releases: `apns-id` is made of it. Each 8 bytes are
/// folded into two lanes by a 64 × 64 → 128 bit multiplication. Not for secrets, and not for hash
/// tables that strangers can fill (those want a seed of their own: `seed`).
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

    // Fractional digits of e and pi: odd, and nobody's choice.
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
            let word = bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
            combine(UInt64(littleEndian: word))
            offset &+= 8
        }
        var tail: UInt64 = 0
        var shift: UInt64 = 0
        while offset < bytes.count {
            tail |= UInt64(bytes[offset]) << shift
            shift &+= 8
            offset &+= 1
        }
        // The count goes in too, so that trailing zero bytes change the value.
        combine(tail)
        length &+= UInt64(bytes.count)
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
