// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
internal import PushModel

extension TokenTable {
    struct Outline {
        var records: ByteArena.Outline
        var index: IndexTable.Outline
        var reasons: [String]
        /// Rows of suppressions, row 0 included; how many of them are free.
        var suppressions: UInt64
        var freed: UInt64

        var bytes: UInt64 {
            records.bytes + index.bytes + suppressions * UInt64(MemoryLayout<SuppressionRow>.stride)
                + 4 * freed
        }

        func write(to fields: inout FieldWriter) {
            records.write(to: &fields)
            index.write(to: &fields)
            fields.append(UInt32(reasons.count))
            for reason in reasons { fields.append(reason) }
            fields.append(suppressions)
            fields.append(freed)
        }

        init(from fields: inout FieldReader) throws(SnapshotFault) {
            records = try ByteArena.Outline(from: &fields)
            index = try IndexTable.Outline(from: &fields)
            reasons = []
            for _ in 0..<(try fields.count(ofAtLeast: 4, most: Int(UInt8.max) + 1)) {
                reasons.append(try fields.text(most: TokenTable.reasonBytesMax))
            }
            suppressions = try fields.uint64()
            freed = try fields.uint64()
            guard reasons.first == "", Set(reasons).count == reasons.count,
                (1...1 << 31).contains(suppressions), freed < suppressions
            else { throw SnapshotFault("it has suppressions that cannot be") }
        }

        init(_ table: borrowing TokenTable) {
            records = table.records.outline
            index = table.index.outline
            reasons = table.reasons
            suppressions = UInt64(table.suppressions.count)
            freed = UInt64(table.suppressionRows.freedCount)
        }
    }

    func write(to output: inout ChecksummedOutput) throws(SnapshotFault) {
        precondition(removed.isEmpty, "every token that was removed is reclaimed")
        try output.write(records.content)
        try output.write(index.content)
        try output.write(suppressions.content)
        try output.write(suppressionRows.freedRows)
    }

    /// Fills an empty table, which must be audited before it is used.
    mutating func restore(
        _ outline: Outline, from input: inout ChecksummedInput
    ) throws(SnapshotFault) {
        try records.restore(outline.records, from: &input)
        try index.restore(outline.index, from: &input)
        try suppressions.restore(count: outline.suppressions, from: &input)
        try suppressionRows.restore(
            next: UInt32(outline.suppressions), freed: outline.freed, from: &input)
        reasons = outline.reasons
    }

    /// Throws unless every row can be found, is needed and is apart from the others. Of each token
    /// `pending` says then how many rows of registrations must name it.
    ///
    /// - Parameter units: those of the rows are claimed.
    /// - Returns: how many rows of registrations name tokens.
    mutating func audit(
        routes: Int, units: inout BlockMap
    ) throws(SnapshotFault) -> Int {
        var rows = BlockMap(size: suppressions.count)
        var references = 0
        var audit = IndexAudit()
        while let found = try audit.next(in: index) {
            prefetch(TokenID(rawValue: found.ahead))
            units.prefetch(found.ahead)
            guard records.reaches(found.row, bytes: Self.headerBytes) else { throw Self.fault }
            let header = records[found.row, as: Header.self]
            guard (1...Audience.tokenBytesMax).contains(header.length), !header.isMarked,
                header.route < routes, header.references > 0 || header.suppression > 0,
                header.suppression == 0 || rows.claim(header.suppression, count: 1),
                records.claim(found.row, bytes: Self.headerBytes + header.length, in: &units),
                isAtHome(found)
            else { throw Self.fault }
            records[found.row, as: Header.self].pending = header.references
            references += Int(header.references)
            if header.references > 0 { countHeld(1, of: header.route) }
        }
        try records.claimFreeBlocks(in: &units)
        for row in 1..<suppressions.count
        where rows.begins(UInt32(row)) && Int(suppressions[row].reason) >= reasons.count {
            throw SnapshotFault("it has a suppression of an unknown reason")
        }
        try suppressionRows.claimFree(in: &rows)
        return references
    }

    /// Whether the token is where its hash says, and no other row of that hash is the same token.
    private func isAtHome(_ found: IndexAudit.Found) -> Bool {
        let token = TokenID(rawValue: found.row)
        let (route, bytes) = (route(of: token), bytes(of: token))
        guard UInt32(hash(route: route, bytes: bytes) >> 32) == found.half else { return false }
        return found.equals.allSatisfy { place in
            let other = TokenID(rawValue: index.row(at: place))
            return self.route(of: other) != route || !self.bytes(of: other).elementsEqual(bytes)
        }
    }

    /// A row of a registration names the token: takes one off `pending`. False if that was 0.
    func countDown(_ token: TokenID) -> Bool {
        // SAFETY: of the two threads that do so, `RowAudit.has` gives each token to one.
        records.withUnshared(token.rawValue, as: Header.self) { header in
            guard header.pending > 0 else { return false }
            header.pending -= 1
            return true
        }
    }

    private static let fault = SnapshotFault("it has a token that cannot be")
}
