// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
internal import PushModel

extension SubjectTable {
    struct Outline {
        var records: ByteArena.Outline
        var lists: ByteArena.Outline
        var index: IndexTable.Outline

        var bytes: UInt64 { records.bytes + lists.bytes + index.bytes }

        func write(to fields: inout FieldWriter) {
            records.write(to: &fields)
            lists.write(to: &fields)
            index.write(to: &fields)
        }

        init(from fields: inout FieldReader) throws(SnapshotFault) {
            records = try ByteArena.Outline(from: &fields)
            lists = try ByteArena.Outline(from: &fields)
            index = try IndexTable.Outline(from: &fields)
        }

        init(_ table: borrowing SubjectTable) {
            records = table.records.outline
            lists = table.lists.outline
            index = table.index.outline
        }
    }

    func write(to output: inout ChecksummedOutput) throws(SnapshotFault) {
        try output.write(records.content)
        try output.write(lists.content)
        try output.write(index.content)
    }

    /// Fills an empty table, which must be audited before it is used.
    mutating func restore(
        _ outline: Outline, from input: inout ChecksummedInput
    ) throws(SnapshotFault) {
        try records.restore(outline.records, from: &input)
        try lists.restore(outline.lists, from: &input)
        try index.restore(outline.index, from: &input)
    }

    /// Throws unless every subject can be found and is apart from the others, as its list is. What the
    /// lists hold is for the registrations' audit. The cursors of the process that wrote the file are
    /// forgotten, and subjects that only they needed are freed.
    ///
    /// - Parameter units: those of the rows are claimed.
    /// - Returns: how many entries the lists have, those of kinds and installations included.
    mutating func audit(
        apps: Int, furtherLists: FurtherLists, units: inout BlockMap
    ) throws(SnapshotFault) -> Int {
        var blocks = lists.emptyMap
        var entries = 0
        var unneeded: [SubjectID] = []
        var audit = IndexAudit()
        while let found = try audit.next(in: index) {
            records.prefetch(found.ahead, count: Self.headerBytes + Self.usualSubjectBytes)
            units.prefetch(found.ahead)
            if records.reaches(found.near, bytes: Self.headerBytes) {
                // Any number, as the row may be none.
                blocks.prefetch(records[found.near, as: Header.self].list)
            }
            guard records.reaches(found.row, bytes: Self.headerBytes) else { throw Self.fault }
            let header = records[found.row, as: Header.self]
            guard header.app.rawValue < apps, header.isSound,
                furtherLists.include(header.scope), header.count > 0 || header.hasCursor,
                header.sizeClass.rawValue <= Self.sizeClassMax,
                Int(header.count) <= header.sizeClass.capacity,
                records.claim(found.row, bytes: Self.headerBytes + header.length, in: &units),
                header.sizeClass.isInline
                    || lists.claim(
                        header.list, bytes: 4 * header.sizeClass.capacity, in: &blocks),
                isAtHome(found)
            else { throw Self.fault }
            if header.hasCursor { records[found.row, as: Header.self].bits &= ~Header.cursorBit }
            if header.count == 0 { unneeded.append(SubjectID(rawValue: found.row)) }
            entries += Int(header.count)
            if header.scope == .subject {
                subjects += 1
                subscriptions += Int(header.count)
            }
        }
        try records.claimFreeBlocks(in: &units)
        try lists.claimFreeBlocks(in: &blocks)
        for subject in unneeded { free(unneeded: subject) }
        return entries
    }

    /// 2^32 entries: more than references can name.
    private static let sizeClassMax: UInt8 = 62

    private mutating func free(unneeded subject: SubjectID) {
        let header = records[subject.rawValue, as: Header.self]
        if !header.sizeClass.isInline {
            lists.free(header.list, bytes: 4 * header.sizeClass.capacity)
        }
        freeUnlessNeeded(subject)
    }

    /// Whether the subject is where its hash says, and no other row of that hash is the same subject.
    private func isAtHome(_ found: IndexAudit.Found) -> Bool {
        let subject = SubjectID(rawValue: found.row)
        let (app, bytes, scope) = (app(of: subject), bytes(of: subject), scope(of: subject))
        guard UInt32(hash(app, bytes, scope) >> 32) == found.half else { return false }
        return found.equals.allSatisfy { place in
            let other = SubjectID(rawValue: index.row(at: place))
            return self.app(of: other) != app || self.scope(of: other) != scope
                || !self.bytes(of: other).elementsEqual(bytes)
        }
    }

    private static let fault = SnapshotFault("it has a subject that cannot be")
}
