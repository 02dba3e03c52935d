// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CLinux

/// The checksum of bytes that come in parts. It tells damage, not malice: anyone can make one.
package struct CRC32C: Hashable, Sendable {
    package private(set) var value: UInt32 = 0

    package init() {}

    package mutating func combine(_ bytes: UnsafeRawBufferPointer) {
        value = CLinux_crc32c(value, bytes.baseAddress, bytes.count)
    }

    package static func of(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
        CLinux_crc32c(0, bytes.baseAddress, bytes.count)
    }

    /// The same, as a processor without an instruction for it computes it.
    static func withoutInstruction(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
        CLinux_crc32cByBit(0, bytes.baseAddress, bytes.count)
    }
}
