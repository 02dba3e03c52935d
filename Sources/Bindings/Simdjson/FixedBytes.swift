// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A short byte string put together in place, whose bytes can be lent until the next change.
package struct FixedBytes: ~Copyable {
    private let memory: UnsafeMutableRawBufferPointer
    private var count = 0

    package init(capacity: Int) {
        memory = .allocate(byteCount: capacity, alignment: 1)
    }

    deinit { memory.deallocate() }

    package var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[..<count]) }

    package mutating func removeAll() { count = 0 }

    /// Appends bytes. Returns false, with nothing appended, when there is no room.
    package mutating func append(_ more: UnsafeRawBufferPointer) -> Bool {
        guard more.count <= memory.count - count else { return false }
        UnsafeMutableRawBufferPointer(rebasing: memory[count...]).copyMemory(from: more)
        count += more.count
        return true
    }
}
