// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
internal import PushModel

extension KindTable {
    /// Apps and rows are few, so they are encoded, each row by itself.
    struct Outline {
        var names: ByteArena.Outline
        var index: IndexTable.Outline
        var apps: [App]
        /// By app, without row 0, which no kind has.
        var rows: [[Row]]

        var bytes: UInt64 { names.bytes + index.bytes }

        func write(to fields: inout FieldWriter) {
            names.write(to: &fields)
            index.write(to: &fields)
            fields.append(UInt32(apps.count))
            for (app, rows) in zip(apps, rows) {
                fields.append(app.free)
                fields.append(UInt32(clamping: app.refused))
                fields.append(UInt32(rows.count))
                for row in rows {
                    fields.append(row.block)
                    fields.append(row.references)
                    fields.append(row.length)
                }
            }
        }

        init(from fields: inout FieldReader) throws(SnapshotFault) {
            names = try ByteArena.Outline(from: &fields)
            index = try IndexTable.Outline(from: &fields)
            (apps, rows) = ([], [])
            for _ in 0..<(try fields.count(ofAtLeast: 12, most: Int(UInt16.max))) {
                var app = App(free: try fields.uint32(), refused: Int(try fields.uint32()))
                let count = try fields.count(ofAtLeast: 10, most: KindTable.countMax)
                var rows: [Row] = []
                for _ in 0..<count {
                    rows.append(
                        Row(
                            block: try fields.uint32(), references: try fields.uint32(),
                            length: try fields.uint16()))
                }
                app.fresh = UInt32(count) + 1
                apps.append(app)
                self.rows.append(rows)
            }
        }

        init(_ table: borrowing KindTable) {
            names = table.names.outline
            index = table.index.outline
            apps = table.apps
            rows = []
            for (app, kinds) in apps.enumerated() {
                rows.append(
                    (1..<max(1, Int(kinds.fresh))).map { table.rows[app << 16 | $0] })
            }
        }
    }

    func write(to output: inout ChecksummedOutput) throws(SnapshotFault) {
        try output.write(names.content)
        try output.write(index.content)
    }

    /// Fills an empty table, which must be audited before it is used.
    mutating func restore(
        _ outline: Outline, from input: inout ChecksummedInput
    ) throws(SnapshotFault) {
        guard outline.apps.count == apps.count else { throw Self.fault }
        try names.restore(outline.names, from: &input)
        try index.restore(outline.index, from: &input)
        apps = outline.apps
        for (app, kinds) in outline.rows.enumerated() {
            for (place, row) in kinds.enumerated() { rows[app << 16 | place + 1] = row }
        }
    }

    /// Throws unless every kind can be found and has exactly these references, and every other number
    /// is free. Kinds that nobody shows are listed as unused.
    ///
    /// - Parameter counted: by app and number.
    mutating func audit(counted: [[UInt32]]) throws(SnapshotFault) {
        var units = names.emptyMap
        var used = BlockMap(size: rows.count)
        var audit = IndexAudit()
        while let found = try audit.next(in: index) {
            let (app, number) = (Int(found.row >> 16), Int(found.row & 0xFFFF))
            guard app < apps.count, number > 0, number < apps[app].fresh,
                used.claim(found.row, count: 1)
            else { throw Self.fault }
            let row = rows[Int(found.row)]
            guard (1...Self.bytesMax).contains(Int(row.length)),
                row.references == counted[app][number],
                names.claim(row.block, bytes: Int(row.length), in: &units), isAtHome(found)
            else { throw Self.fault }
            rows[Int(found.row)].isListedUnused = row.references == 0
            if row.references == 0 { unused.append(found.row) }
            apps[app].count += 1
        }
        try names.claimFreeBlocks(in: &units)
        for app in apps.indices { try claimFreeNumbers(of: app, in: &used) }
    }

    private func claimFreeNumbers(
        of app: Int, in used: inout BlockMap
    ) throws(SnapshotFault) {
        var free = apps[app].count
        var number = apps[app].free
        while number != 0 {
            let row = UInt32(app) << 16 | number
            guard number < apps[app].fresh, used.claim(row, count: 1),
                rows[Int(row)].length == 0, rows[Int(row)].references == 0
            else { throw Self.fault }
            free += 1
            number = rows[Int(row)].block
        }
        guard free == Int(apps[app].fresh) - 1 else { throw Self.fault }
    }

    /// Whether the kind is where its hash says, and no other row of that hash is the same kind.
    private func isAtHome(_ found: IndexAudit.Found) -> Bool {
        let app = AppID(rawValue: UInt16(found.row >> 16))
        let name = name(ofRow: found.row)
        guard UInt32(hash(app, name) >> 32) == found.half else { return false }
        return found.equals.allSatisfy { place in
            let other = index.row(at: place)
            return other >> 16 != found.row >> 16
                || !self.name(ofRow: other).elementsEqual(name)
        }
    }

    fileprivate static let fault = SnapshotFault("it has a kind that cannot be")
}
