// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

extension IndexTable {
    /// What is to be known of a table besides its slots.
    package struct Outline: Equatable, Sendable {
        var homes: UInt64
        var used: UInt64
        var slots: UInt64

        /// The bytes that the table takes in a file.
        package var bytes: UInt64 { slots * 8 }

        package func write(to fields: inout FieldWriter) {
            fields.append(homes)
            fields.append(used)
            fields.append(slots)
        }

        package init(from fields: inout FieldReader) throws(SnapshotFault) {
            homes = try fields.uint64()
            used = try fields.uint64()
            slots = try fields.uint64()
            guard homes < 1 << 32, slots < 1 << 33, used <= slots,
                slots >= homes + UInt64(IndexTable.window), used * 8 <= homes * 7
            else { throw SnapshotFault("it has an index of an impossible size") }
        }

        init(homes: UInt64, used: UInt64, slots: UInt64) {
            self.homes = homes
            self.used = used
            self.slots = slots
        }
    }

    package var outline: Outline {
        Outline(homes: homes, used: UInt64(used), slots: UInt64(slots.count))
    }

    package var content: UnsafeRawBufferPointer { slots.content }

    /// Fills an empty table, which must be audited before it is used.
    package mutating func restore(
        _ outline: Outline, from input: inout ChecksummedInput
    ) throws(SnapshotFault) {
        precondition(used == 0, "a table is read only while it is empty")
        try slots.restore(count: outline.slots, from: &input)
        homes = outline.homes
        used = Int(outline.used)
    }

    /// The row at one of the places that an audit tells.
    package func row(at place: Int) -> UInt32 { UInt32(truncatingIfNeeded: slots[place]) }
}

/// Goes through a table that was read from a file, in the order of hashes, and throws unless its slots
/// are as `insert` and `remove` leave them: sorted, reachable from their homes, and no more of one hash
/// than chance brings.
package struct IndexAudit {
    package struct Found {
        package let row: UInt32
        /// The upper half of the row's hash.
        package let half: UInt32
        /// The places of the rows before it that have the same half.
        package let equals: Range<Int>
        /// A row that will be found soon, for a prefetch; it may be any number.
        package let ahead: UInt32
        /// One of those that were `ahead` a while ago.
        package let near: UInt32
    }

    private var place = 0
    private var runStart = 0
    private var equalStart = 0
    private var lastHalf: UInt64 = 0
    private var seen = 0

    /// The most slots between a row and its home. Runs this long do not come about at 7/8 full: e^-140
    /// for one of 16,384.
    private static let distanceMax = 16_384
    /// The most rows with one half of a hash. One in 2^32 is expected for each pair.
    private static let equalMax = 64
    private static let lookAhead = 24
    private static let lookNear = 8

    package init() {}

    /// The next row; nil at the end of a sound table.
    package mutating func next(
        in table: borrowing IndexTable
    ) throws(SnapshotFault) -> Found? {
        let length = table.slots.count
        while place < length, table.slots[place] == 0 {
            place += 1
            (runStart, equalStart) = (place, place)
        }
        guard place < length else {
            guard seen == table.count, table.slots[length - 1] == 0 else { throw Self.fault }
            return nil
        }
        let slot = table.slots[place]
        let (half, row) = (slot >> 32, UInt32(truncatingIfNeeded: slot))
        let home = table.home(half)
        guard row != 0, half >= lastHalf, home <= place, home >= runStart,
            place - home <= Self.distanceMax
        else { throw Self.fault }
        if half != lastHalf { equalStart = place }
        guard place - equalStart < Self.equalMax else { throw Self.fault }
        lastHalf = half
        seen += 1
        place += 1
        return Found(
            row: row, half: UInt32(half), equals: equalStart..<place - 1,
            ahead: place + Self.lookAhead < length ? table.row(at: place + Self.lookAhead) : 0,
            near: place + Self.lookNear < length ? table.row(at: place + Self.lookNear) : 0)
    }

    private static let fault = SnapshotFault("it has an index in which rows would not be found")
}
