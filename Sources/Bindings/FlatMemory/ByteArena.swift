// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CLinux
internal import Glibc

/// Blocks of any length at fixed addresses, named by 32-bit references.
///
/// A reference counts units of 8 bytes, so 32 GiB can be named; 0 is never handed out. A block
/// carries no header: its owner knows its length and says it again when it frees it. Freed blocks
/// are kept by size class and reused; blocks are never merged, which suits tables whose records
/// have few sizes. The memory of large freed blocks is returned to the kernel meanwhile.
@usableFromInline
package struct ByteArena: ~Copyable, Sendable {
    @usableFromInline let memory: Reservation
    /// Units handed out so far, free ones included; unit 0 is never used.
    var usedUnits: UInt64 = 1
    var freeUnits: UInt64 = 0
    var freeHeads = [UInt32](repeating: 0, count: SizeClass.count)

    @usableFromInline package typealias Reference = UInt32

    @usableFromInline static var unitBytes: Int { 8 }
    /// The smallest block whose memory is worth a system call to return it.
    private static let discardBytesMin = 64 << 10
    /// All that 32-bit references can name.
    package static let reservedBytesMax = 8 << 32

    /// - Parameter reservedBytes: address space, not memory; going past it ends the process.
    package init(reservedBytes: Int = reservedBytesMax) {
        precondition(reservedBytes <= Self.reservedBytesMax, "references name at most 32 GiB")
        memory = Reservation(bytes: reservedBytes)
    }

    /// Memory touched so far: blocks in use and free ones.
    package var bytes: Int { Int(usedUnits) * Self.unitBytes }
    package var freeBytes: Int { Int(freeUnits) * Self.unitBytes }

    /// A block of at least `bytes`, 8-byte aligned, with unspecified content.
    package mutating func allocate(bytes: Int) -> Reference {
        let size = SizeClass(bytes: bytes)
        let head = freeHeads[size.index]
        if head != 0 {
            freeHeads[size.index] = self[head, as: UInt32.self]
            freeUnits -= size.units
            return head
        }
        let start = usedUnits
        usedUnits += size.units
        if Int(usedUnits) * Self.unitBytes > memory.bytes { OutOfSpace.isFull(memory.bytes) }
        return UInt32(start)
    }

    /// - Parameter bytes: exactly what the block was allocated with.
    package mutating func free(_ reference: Reference, bytes: Int) {
        let size = SizeClass(bytes: bytes)
        precondition(
            reference != 0 && UInt64(reference) + size.units <= usedUnits,
            "a block that is freed was allocated")
        if bytes >= Self.discardBytesMin {
            memory.discard(
                offset: Int(reference) * Self.unitBytes, count: Int(size.units) * Self.unitBytes)
        }
        self[reference, as: UInt32.self] = freeHeads[size.index]
        freeHeads[size.index] = reference
        freeUnits += size.units
        assert(freeUnits < usedUnits, "less is free than was ever allocated")
    }

    /// The `Value` at a place inside a block, given in bytes from its start.
    @inlinable
    package subscript<Value: BitwiseCopyable>(
        _ reference: Reference, offset offset: Int = 0, as type: Value.Type
    ) -> Value {
        get { address(reference, offset).assumingMemoryBound(to: type).pointee }
        _modify { yield &address(reference, offset).assumingMemoryBound(to: type).pointee }
    }

    /// Changes a block through an arena that other threads read at the same time, or change in other blocks.
    // SAFETY: a borrow does not exclude others, so the caller answers for it that no other thread is at this
    // block. Inlinable as it is called for each row of an index that is loaded.
    @inlinable
    package func withUnshared<Value: BitwiseCopyable, Result>(
        _ reference: Reference, as type: Value.Type, _ body: (inout Value) -> Result
    ) -> Result {
        body(&address(reference, 0).assumingMemoryBound(to: type).pointee)
    }

    /// The bytes of a block, valid until the block is freed.
    @inlinable
    package func bytes(_ reference: Reference, offset: Int, count: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: address(reference, offset), count: count)
    }

    /// Has the processor fetch the first and the last cache line of these bytes.
    package func prefetch(_ reference: Reference, count: Int) {
        CLinux_prefetch(address(reference, 0))
        CLinux_prefetch(address(reference, count - 1))
    }

    package mutating func write(
        _ source: UnsafeRawBufferPointer, to reference: Reference, offset: Int
    ) {
        guard let start = source.baseAddress else { return }
        address(reference, offset).copyMemory(from: start, byteCount: source.count)
    }

    /// Copies `count` bytes from the start of one block to the start of another.
    package mutating func copy(from source: Reference, to target: Reference, count: Int) {
        address(target, 0).copyMemory(from: address(source, 0), byteCount: count)
    }

    package func holds(
        _ other: UnsafeRawBufferPointer, at reference: Reference, offset: Int
    ) -> Bool {
        guard let start = other.baseAddress else { return true }
        return memcmp(address(reference, offset), start, other.count) == 0
    }

    @inlinable
    func address(_ reference: Reference, _ offset: Int) -> UnsafeMutableRawPointer {
        memory.base + (Int(reference) &* Self.unitBytes &+ offset)
    }
}

/// Up to 64 units (512 bytes) every size is a class of its own; above, each doubling has eight, so
/// that rounding up costs less than an eighth.
struct SizeClass {
    let units: UInt64
    let index: Int

    private static let exactUnitsMax: UInt64 = 64
    /// 64 exact ones; then 2^6 to 2^32 units are 26 doublings of 8.
    static let count = 64 + 26 * 8

    /// The units of the class with this index.
    static func units(index: Int) -> UInt64 {
        guard index >= Int(exactUnitsMax) else { return UInt64(index) + 1 }
        let place = index - Int(exactUnitsMax)
        return UInt64(place & 7 + 9) << UInt64(place >> 3 + 3)
    }

    init(bytes: Int) {
        precondition(bytes > 0, "a block has at least one byte")
        let wanted = (UInt64(bytes) + 7) / 8
        guard wanted > Self.exactUnitsMax else {
            units = wanted
            index = Int(wanted) - 1
            return
        }
        // The four leading bits of `wanted - 1` name the class: 8 to 15.
        let shift = 60 - (wanted - 1).leadingZeroBitCount
        let leading = (wanted - 1) >> UInt64(shift)
        units = (leading + 1) << UInt64(shift)
        index = Int(Self.exactUnitsMax) + (shift - 3) * 8 + Int(leading) - 8
        precondition(index < Self.count, "a block has less than 32 GiB")
    }
}
