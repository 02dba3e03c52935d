// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Structures without pointers are written to a file as they are in memory, and read into the memory
/// of new ones. What a file says is not believed: see `IndexAudit` and `BlockMap`.
///
/// Read, and not mapped: pages of a file are small, each is copied at its first change, which would
/// be while a push waits, and whoever shortens the file ends the process.

extension ByteArena {
    /// What is to be known of an arena besides its bytes.
    package struct Outline: Equatable, Sendable {
        var usedUnits: UInt64
        var freeHeads: [UInt32]

        /// The bytes that the arena takes in a file: unit 0 is not written.
        package var bytes: UInt64 { (usedUnits - 1) * UInt64(ByteArena.unitBytes) }

        package func write(to fields: inout FieldWriter) {
            fields.append(usedUnits)
            let heads = freeHeads.indices.filter { freeHeads[$0] != 0 }
            fields.append(UInt32(heads.count))
            for index in heads {
                fields.append(UInt16(index))
                fields.append(freeHeads[index])
            }
        }

        package init(from fields: inout FieldReader) throws(SnapshotFault) {
            usedUnits = try fields.uint64()
            freeHeads = Array(repeating: 0, count: SizeClass.count)
            guard (1...1 << 32).contains(usedUnits) else {
                throw SnapshotFault("it has an arena of \(usedUnits) units")
            }
            for _ in 0..<(try fields.count(ofAtLeast: 6, most: SizeClass.count)) {
                let index = Int(try fields.uint16())
                let head = try fields.uint32()
                guard index < SizeClass.count else {
                    throw SnapshotFault("it has free blocks of an impossible size")
                }
                freeHeads[index] = head
            }
        }

        init(usedUnits: UInt64, freeHeads: [UInt32]) {
            self.usedUnits = usedUnits
            self.freeHeads = freeHeads
        }
    }

    package var outline: Outline { Outline(usedUnits: usedUnits, freeHeads: freeHeads) }

    /// Everything after unit 0, which holds nothing.
    package var content: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(
            start: memory.base + Self.unitBytes, count: (Int(usedUnits) - 1) * Self.unitBytes)
    }

    /// Fills an empty arena. Its blocks are to be claimed before it is used, and then the free ones.
    package mutating func restore(
        _ outline: Outline, from input: inout ChecksummedInput
    ) throws(SnapshotFault) {
        precondition(usedUnits == 1, "an arena is read only while it is empty")
        let bytes = Int(outline.usedUnits) * Self.unitBytes
        guard bytes <= memory.bytes else {
            throw SnapshotFault("it has an arena of \(bytes >> 20) MiB, too large for this process")
        }
        try input.fill(
            UnsafeMutableRawBufferPointer(
                start: memory.base + Self.unitBytes, count: bytes - Self.unitBytes))
        usedUnits = outline.usedUnits
        freeHeads = outline.freeHeads
    }

    /// A set for the units of this arena's blocks.
    package var emptyMap: BlockMap { BlockMap(size: Int(usedUnits)) }

    /// Whether so many bytes from the start of a block are within the arena.
    package func reaches(_ reference: Reference, bytes: Int) -> Bool {
        reference != 0
            && UInt64(reference) * UInt64(Self.unitBytes) + UInt64(bytes)
                <= usedUnits * UInt64(Self.unitBytes)
    }

    /// Claims the units of a block in use. False if it is not within the arena, or overlaps with
    /// another one.
    package func claim(_ reference: Reference, bytes: Int, in map: inout BlockMap) -> Bool {
        reference != 0 && (1...Int(memory.bytes)).contains(bytes)
            && map.claim(reference, count: SizeClass(bytes: bytes).units)
    }

    /// Claims the free blocks, after those in use. Throws unless all units then belong to one block
    /// each.
    package mutating func claimFreeBlocks(
        in map: inout BlockMap
    ) throws(SnapshotFault) {
        freeUnits = 0
        for index in freeHeads.indices {
            let units = SizeClass.units(index: index)
            var block = freeHeads[index]
            while block != 0 {
                // One that was claimed before ends a chain that goes round.
                guard map.claimFree(block, count: units) else {
                    throw SnapshotFault("it has free blocks that overlap with others")
                }
                freeUnits += units
                block = self[block, as: UInt32.self]
            }
        }
        guard map.count == Int(usedUnits) - 1 else {
            throw SnapshotFault("it has blocks that are neither free nor in use")
        }
    }
}

extension Column {
    package var content: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: memory.base, count: size * MemoryLayout<Element>.stride)
    }

    /// Makes the column so many elements long and fills it. Elements must be such that all bits mean
    /// something.
    package mutating func restore(
        count: UInt64, from input: inout ChecksummedInput
    ) throws(SnapshotFault) {
        guard count <= UInt64(capacity) else {
            throw SnapshotFault("it has a table of \(count) rows, too large for this process")
        }
        let bytes = Int(count) * MemoryLayout<Element>.stride
        try input.fill(UnsafeMutableRawBufferPointer(start: memory.base, count: bytes))
        size = Int(count)
        peak = max(peak, size)
    }
}

extension FreeList {
    package var freedRows: UnsafeRawBufferPointer { freed.content }
    package var freedCount: Int { freed.count }

    /// Reads the free rows, which are to be claimed before the list is used.
    package mutating func restore(
        next: UInt32, freed count: UInt64, from input: inout ChecksummedInput
    ) throws(SnapshotFault) {
        guard next >= first, count <= UInt64(next - first) else {
            throw SnapshotFault("it has more free rows than rows")
        }
        self.next = next
        try freed.restore(count: count, from: &input)
    }

    /// Claims the free rows, after those in use. Throws unless each row is either.
    package func claimFree(in map: inout BlockMap) throws(SnapshotFault) {
        for place in 0..<freed.count {
            guard freed[place] >= first, map.claimFree(freed[place], count: 1) else {
                throw SnapshotFault("it has a free row that is in use, or free twice")
            }
        }
        guard map.count == Int(next - first) else {
            throw SnapshotFault("it has rows that are neither free nor in use")
        }
    }
}
