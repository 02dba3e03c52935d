// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
internal import Testing

@Suite struct `An index table` {
    @Test func `an index table finds each row by its hash while it grows`() {
        var table = IndexTable(reservedSlots: 1 << 20)
        for row in 1...50_000 as ClosedRange<UInt32> {
            table.insert(hash: Self.hash(row), row: row)
        }
        table.checkInvariants()
        for row in 1...50_000 as ClosedRange<UInt32> {
            #expect(table.row(hash: Self.hash(row)) { $0 == row } == row)
        }
        #expect(table.row(hash: Self.hash(50_001)) { $0 == 50_001 } == nil)
        #expect(table.bytes < 50_000 * 11)
    }

    @Test func `an index table tells rows of one hash apart`() {
        var table = IndexTable(reservedSlots: 1 << 12)
        for row in 1...100 as ClosedRange<UInt32> { table.insert(hash: .max, row: row) }
        table.checkInvariants()
        #expect(table.row(hash: .max) { $0 == 77 } == 77)
        table.remove(hash: .max, row: 77)
        table.checkInvariants()
        #expect(table.row(hash: .max) { $0 == 77 } == nil)
        #expect(table.row(hash: .max) { $0 == 100 } == 100)
    }

    @Test func `an index table guesses a row by half of its hash, without looking at it`() {
        var table = IndexTable(reservedSlots: 1 << 12)
        #expect(table.likelyRow(hash: 7 << 32) == nil)
        for row in 1...100 as ClosedRange<UInt32> {
            table.insert(hash: UInt64(row) << 32, row: row)
        }
        table.prefetch(hash: 7 << 32)
        #expect(table.likelyRow(hash: 7 << 32 | 1) == 7)
        #expect(table.likelyRow(hash: 101 << 32) == nil)
    }

    @Test func `an index table is gone through in parts, each row that stays exactly once`() {
        var table = IndexTable(reservedSlots: 1 << 16)
        for row in 1...2000 as ClosedRange<UInt32> {
            table.insert(hash: Self.hash(row), row: row)
        }
        var seen: [UInt32] = []
        var cursor: UInt32? = 0
        var (added, removed) = (10_001 as UInt32, 1001 as UInt32)
        while let from = cursor {
            let before = seen.count
            cursor = table.visit(from: from, most: 100) { seen.append($0) }
            #expect(seen.count - before <= 100)
            // It grows, and rows move both ways.
            for _ in 0..<100 {
                table.insert(hash: Self.hash(added), row: added)
                added += 1
            }
            if removed <= 2000 {
                table.remove(hash: Self.hash(removed), row: removed)
                removed += 1
            }
        }
        #expect(seen.filter { $0 <= 1000 }.sorted() == Array(1...1000))
        #expect(Set(seen).count == seen.count)
    }

    @Test func `an index table is gone through though all rows have one hash`() {
        var table = IndexTable(reservedSlots: 1 << 12)
        var seen: [UInt32] = []
        #expect(table.visit(from: 0, most: 3) { seen.append($0) } == nil)
        for row in 1...50 as ClosedRange<UInt32> { table.insert(hash: .max, row: row) }
        #expect(table.visit(from: 0, most: 3) { seen.append($0) } == nil)
        #expect(seen.sorted() == Array(1...50))
    }

    @Test func `an index table never looks at a row of another hash`() {
        var table = IndexTable(reservedSlots: 1 << 12)
        for row in 1...100 as ClosedRange<UInt32> {
            table.insert(hash: UInt64(row) << 32, row: row)
        }
        var looked: [UInt32] = []
        _ = table.row(hash: 55 << 32) { row in
            looked.append(row)
            return false
        }
        #expect(looked == [55])
    }

    @Test(arguments: [0xFFFF_FFFF_FFFF_FFFF, 0x0000_00FF_0000_0000, 0xFF00_0000_0000_0000])
    func `an index table agrees with a dictionary through a random life`(hashMask: UInt64) {
        var table = IndexTable(reservedSlots: 1 << 16)
        var rows: [UInt32: UInt64] = [:]
        var state: UInt64 = hashMask
        for step in 0..<6_000 {
            state = Self.mix(state &+ UInt64(step))
            let row = UInt32(state % 700) + 1
            if let hash = rows[row] {
                if state & 1 << 40 == 0 {
                    table.remove(hash: hash, row: row)
                    rows[row] = nil
                } else if rows[row + 1000] == nil {
                    table.replace(hash: hash, row: row, with: row + 1000)
                    table.replace(hash: hash, row: row + 1000, with: row)
                }
            } else {
                rows[row] = Self.mix(state) & hashMask
                table.insert(hash: rows[row]!, row: row)
            }
            if step % 50 == 0 { table.checkInvariants() }
        }
        table.checkInvariants()
        #expect(table.count == rows.count)
        for (row, hash) in rows {
            #expect(table.row(hash: hash) { $0 == row } == row)
        }
        var seen: Set<UInt32> = []
        table.forEach { seen.insert($0) }
        #expect(seen == Set(rows.keys))
    }

    @Test func `an index table traps on row 0 and on removing what is not there`() async {
        await #expect(processExitsWith: .failure) {
            var table = IndexTable(reservedSlots: 64)
            table.insert(hash: 1, row: 0)
        }
        await #expect(processExitsWith: .failure) {
            var table = IndexTable(reservedSlots: 64)
            table.remove(hash: 1, row: 1)
        }
    }

    private static func hash(_ row: UInt32) -> UInt64 { mix(UInt64(row)) }

    private static func mix(_ value: UInt64) -> UInt64 {
        let mixed = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
        return (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB ^ mixed >> 31
    }
}
