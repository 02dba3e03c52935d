// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
internal import PushModel

extension RegistrationTable {
    struct Outline {
        var blocks: ByteArena.Outline
        var index: IndexTable.Outline

        var bytes: UInt64 { blocks.bytes + index.bytes }

        func write(to fields: inout FieldWriter) {
            blocks.write(to: &fields)
            index.write(to: &fields)
        }

        init(from fields: inout FieldReader) throws(SnapshotFault) {
            blocks = try ByteArena.Outline(from: &fields)
            index = try IndexTable.Outline(from: &fields)
        }

        init(_ table: borrowing RegistrationTable) {
            blocks = table.blocks.outline
            index = table.index.outline
        }
    }

    func write(to output: inout ChecksummedOutput) throws(SnapshotFault) {
        try output.write(blocks.content)
        try output.write(index.content)
    }

    /// Fills an empty table, which must be audited before it is used.
    mutating func restore(
        _ outline: Outline, from input: inout ChecksummedInput
    ) throws(SnapshotFault) {
        try blocks.restore(outline.blocks, from: &input)
        try index.restore(outline.index, from: &input)
    }

    /// Throws unless every registration can be found and its block is apart from the others. What the
    /// rows name is for the audience's audit.
    ///
    /// - Parameter units: those of the blocks are claimed.
    mutating func audit(units: inout BlockMap) throws(SnapshotFault) {
        var audit = IndexAudit()
        while let found = try audit.next(in: index) {
            blocks.prefetch(found.ahead, count: Self.headerBytes)
            units.prefetch(found.ahead)
            guard blocks.reaches(found.row, bytes: Self.headerBytes) else { throw Self.fault }
            let header = blocks[found.row, as: Header.self]
            let bytes = Self.headerBytes + Int(header.count) * Self.rowBytes
            guard header.count > 0, blocks.claim(found.row, bytes: bytes, in: &units),
                isAlone(found)
            else { throw Self.fault }
            rows += Int(header.count)
        }
        try blocks.claimFreeBlocks(in: &units)
    }

    private func isAlone(_ found: IndexAudit.Found) -> Bool {
        let header = blocks[found.row, as: Header.self]
        return found.equals.allSatisfy { place in
            let other = blocks[index.row(at: place), as: Header.self]
            return other.hashLow != header.hashLow || other.hashMiddle != header.hashMiddle
        }
    }

    /// Whether all bits of a row mean something: a Boolean is 0 or 1, and reading another one is
    /// undefined. To be asked before the row is read.
    func isReadable(row: UInt32) -> Bool {
        blocks[row, offset: Self.hearsChangesOffset, as: UInt8.self] <= 1
    }

    private static let hearsChangesOffset = MemoryLayout<Subscription>.offset(
        of: \Subscription.hearsChanges)!
    private static let fault = SnapshotFault("it has a registration that cannot be")
}
