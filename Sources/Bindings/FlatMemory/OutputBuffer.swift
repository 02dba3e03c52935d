// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Bytes that are appended and then lent, in memory that grows up to a bound and is kept for the
/// next use.
///
/// What would go beyond the bound is not written: `hasOverflowed` says so from then on, until
/// `removeAll`. So a writer may ask once in a while, instead of after each byte.
package struct OutputBuffer: ~Copyable {
    private var memory: UnsafeMutableRawPointer
    private var capacity: Int
    /// How many bytes have been appended.
    package private(set) var count = 0
    package private(set) var hasOverflowed = false
    private let bytesMax: Int

    private static let capacityMin = 1024

    /// - Parameter bytesMax: how many bytes may be appended until `removeAll`.
    package init(bytesMax: Int) {
        precondition(bytesMax > 0, "a buffer has room for at least one byte")
        self.bytesMax = bytesMax
        capacity = min(Self.capacityMin, bytesMax)
        memory = .allocate(byteCount: capacity, alignment: 1)
    }

    deinit { memory.deallocate() }

    /// The bytes, valid until the next change.
    package var bytes: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: memory, count: count)
    }

    package mutating func removeAll() {
        count = 0
        hasOverflowed = false
    }

    /// Takes the end away again.
    package mutating func truncate(to count: Int) {
        precondition((0...self.count).contains(count), "no more bytes are removed than there are")
        self.count = count
    }

    package mutating func append(_ byte: UInt8) {
        guard reserve(1) else { return }
        memory.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
        count += 1
    }

    package mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard let start = bytes.baseAddress, reserve(bytes.count) else { return }
        (memory + count).copyMemory(from: start, byteCount: bytes.count)
        count += bytes.count
    }

    package mutating func append(_ text: StaticString) {
        append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }

    /// Appends part of an array.
    package mutating func append(_ bytes: borrowing [UInt8], _ range: Range<Int>) {
        bytes.withUnsafeBytes { append(UnsafeRawBufferPointer(rebasing: $0[range])) }
    }

    /// Lends room for `bytesMax` bytes at the end, of which the closure says how many it has
    /// written. The closure is not called if there is no room.
    package mutating func append(
        upTo bytesMax: Int, _ write: (UnsafeMutableRawBufferPointer) -> Int
    ) {
        guard reserve(bytesMax) else { return }
        let written = write(
            UnsafeMutableRawBufferPointer(start: memory + count, count: bytesMax))
        precondition(
            (0...bytesMax).contains(written), "no more bytes are written than there is room for")
        count += written
    }

    /// Makes room, or says that there is none.
    private mutating func reserve(_ more: Int) -> Bool {
        if more <= capacity - count { return !hasOverflowed }
        guard more <= bytesMax - count, !hasOverflowed else {
            hasOverflowed = true
            return false
        }
        capacity = min(max(capacity * 2, count + more), bytesMax)
        let larger = UnsafeMutableRawPointer.allocate(byteCount: capacity, alignment: 1)
        larger.copyMemory(from: memory, byteCount: count)
        memory.deallocate()
        memory = larger
        return true
    }
}
