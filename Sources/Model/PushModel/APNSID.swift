// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The value of `apns-id`: a UUIDv8 hashed from (topic, partition, offset, token) of the oldest
/// event that a push answers for. It is the same on every try and after every crash, so that a
/// duplicate can be recognised on both sides.
package struct APNSID: Hashable, Sendable, BitwiseCopyable {
    package var high: UInt64
    package var low: UInt64

    package init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// Leaves the header out, so that APNs makes an identifier up. Only benchmarks use it: every
    /// push of a worker has an `apns-id`.
    package static let none = APNSID(high: 0, low: 0)

    /// Makes a UUIDv8 of a hash: the version and the RFC 9562 variant overwrite six of its 128
    /// bits.
    package init(hash: StableHash.Value) {
        high = hash.high & ~0xF000 | 0x8000
        low = hash.low & ~(0b11 << 62) | 0b10 << 62
    }

    /// The length in bytes of the canonical text: 8-4-4-4-12 lowercase hexadecimal digits.
    package static let textBytes = 36

    /// Writes the canonical text to `output`, which must have room for `textBytes`.
    package func write(to output: UnsafeMutablePointer<UInt8>) {
        var position = 0
        for index in 0..<16 {
            if index == 4 || index == 6 || index == 8 || index == 10 {
                output[position] = 0x2D
                position += 1
            }
            let word = index < 8 ? high : low
            let byte = UInt8(truncatingIfNeeded: word >> UInt64((7 - index & 7) * 8))
            output[position] = Hexadecimal.digit(byte >> 4)
            output[position + 1] = Hexadecimal.digit(byte & 15)
            position += 2
        }
    }

    package var text: String {
        String(unsafeUninitializedCapacity: Self.textBytes) { buffer in
            write(to: buffer.baseAddress!)
            return Self.textBytes
        }
    }
}
