// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import COpenSSL

/// SHA-256 (FIPS 180-4) of a whole message at once.
package enum SHA256Digest {
    package static let bytes = 32

    package static func of(_ message: [UInt8]) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: bytes) { output, count in
            message.withUnsafeBufferPointer { input in
                // Fails only for want of memory, with the length it would then leave at 0.
                _ = SHA256(input.baseAddress, input.count, output.baseAddress)
            }
            count = bytes
        }
    }

    /// The first eight bytes of the digest as a big-endian number.
    package static func prefix(of message: UnsafeRawBufferPointer) -> UInt64 {
        withUnsafeTemporaryAllocation(byteCount: bytes, alignment: 8) { output in
            _ = SHA256(
                message.baseAddress?.assumingMemoryBound(to: UInt8.self), message.count,
                output.baseAddress?.assumingMemoryBound(to: UInt8.self))
            return UInt64(bigEndian: output.load(as: UInt64.self))
        }
    }
}
