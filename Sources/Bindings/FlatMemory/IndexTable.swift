// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CLinux

/// Finds rows by the hash of their key: an open-addressing table that holds no keys.
///
/// A slot is 8 bytes, the upper half of the caller's 64-bit hash and the row (never 0). The home
/// of a hash is its share of the table's length, so slots are *sorted* by hash, with gaps: a
/// search ends at the first larger hash, equal halves let almost no foreign row be looked at (one
/// in 400 at ten million), and the table grows by an eighth, in place, in two sequential passes
/// that look at no row. At 7/9 to 7/8 full that is 9 to 10 bytes a row, and the peak is no more.
/// Growing past five million rows takes about 32 ms (Xeon of 2023, shared).
///
/// Hashes must be seeded: whoever can predict them can make one long run of equal homes.
@usableFromInline
package struct IndexTable: ~Copyable, Sendable {
    /// Eight longer than `homes` or more, so that a window fits behind each home; the last one is
    /// empty and stops every search.
    @usableFromInline var slots: Column<UInt64>
    @usableFromInline var homes: UInt64 = 0
    @usableFromInline var used = 0

    /// - Parameter reservedSlots: address space of 8 bytes a slot.
    package init(reservedSlots: Int = 1 << 30) {
        slots = Column(capacity: reservedSlots)
        slots.resize(to: Self.window, filling: 0)
    }

    /// The number of slots in a cache line.
    @usableFromInline static var window: Int { 8 }

    @inlinable package var count: Int { used }
    package var bytes: Int { slots.bytes }

    /// The row with this hash for which `matches` holds, or nil.
    ///
    /// Looks at eight slots without a branch that depends on them: a mispredicted one would wait
    /// for the cache miss, and keep the next search from overlapping with it.
    @inlinable
    package func row(hash: UInt64, where matches: (UInt32) -> Bool) -> UInt32? {
        let wanted = hash >> 32
        let window = slots.elements + home(wanted)
        var found: UInt64 = 0
        for offset in 0..<Self.window {
            let slot = window[Self.window &- 1 &- offset]
            found = slot >> 32 == wanted ? slot : found
        }
        if found != 0 {
            let row = UInt32(truncatingIfNeeded: found)
            if row != 0, matches(row) { return row }
        } else if window[Self.window &- 1] == 0 {
            return nil
        }
        return rowBeyondFirst(hash: hash, where: matches)
    }

    /// Has the processor fetch what a search for this hash begins with: one cache line or two.
    package func prefetch(hash: UInt64) {
        let window = slots.elements + home(hash >> 32)
        CLinux_prefetch(window)
        CLinux_prefetch(window + Self.window - 1)
    }

    /// The first row whose hash may be this one. Almost always the one searched for, if there is
    /// one: enough for a prefetch, not for an answer.
    package func likelyRow(hash: UInt64) -> UInt32? { row(hash: hash) { _ in true } }

    /// The whole search, for the few cases in which the first equal hash is not that of the row.
    @inlinable
    func rowBeyondFirst(hash: UInt64, where matches: (UInt32) -> Bool) -> UInt32? {
        let wanted = hash >> 32
        var slot = slots.elements + home(wanted)
        while slot.pointee != 0, slot.pointee >> 32 <= wanted {
            let row = UInt32(truncatingIfNeeded: slot.pointee)
            if slot.pointee >> 32 == wanted, matches(row) { return row }
            slot += 1
        }
        return nil
    }

    /// Calls `body` with every row whose hash may be this one.
    package func forEachRow(hash: UInt64, _ body: (UInt32) -> Void) {
        _ = rowBeyondFirst(hash: hash) { row in
            body(row)
            return false
        }
    }

    /// - Parameter row: not 0 and not in the table.
    package mutating func insert(hash: UInt64, row: UInt32) {
        precondition(row != 0, "a row is not 0, which marks an empty slot")
        // At most 7/8 full: searches then stay within a cache line or two.
        if UInt64(used + 1) * 8 > homes * 7 { grow() }
        let wanted = hash >> 32
        var place = home(wanted)
        while slots[place] != 0, slots[place] >> 32 <= wanted { place += 1 }
        var moved = Self.slot(hash, row)
        while moved != 0 {
            swap(&moved, &slots[place])
            place += 1
        }
        if place == slots.count { slots.append(0) }
        used += 1
    }

    /// Removes a row that was inserted with this hash.
    package mutating func remove(hash: UInt64, row: UInt32) {
        var hole = place(hash: hash, row: row)
        // Backward shift: whatever is not at home moves one closer.
        while slots[hole + 1] != 0, home(slots[hole + 1] >> 32) <= hole {
            slots[hole] = slots[hole + 1]
            hole += 1
        }
        slots[hole] = 0
        used -= 1
    }

    /// Makes the entry of a row that moved name its new number.
    package mutating func replace(hash: UInt64, row: UInt32, with newRow: UInt32) {
        precondition(newRow != 0, "a row is not 0, which marks an empty slot")
        slots[place(hash: hash, row: row)] = Self.slot(hash, newRow)
    }

    /// Calls `body` with every row, in the order of hashes.
    package func forEach(_ body: (UInt32) -> Void) {
        for place in 0..<slots.count where slots[place] != 0 {
            body(UInt32(truncatingIfNeeded: slots[place]))
        }
    }

    /// Calls `body` with rows in the order of hashes, from the hash of `cursor` on, and stops when it
    /// has looked at `most` slots. Rows may come and go between calls: one that stays is visited
    /// exactly once, since its hash stays.
    ///
    /// - Parameter cursor: 0 to begin with, then the last result.
    /// - Returns: where to go on; nil at the end.
    package func visit(from cursor: UInt32, most: Int, _ body: (UInt32) -> Void) -> UInt32? {
        let first = UInt64(cursor)
        let start = home(first)
        var last: UInt64?
        for place in start..<slots.count where slots[place] != 0 {
            let hash = slots[place] >> 32
            if hash < first { continue }
            // Rows of one hash belong together: the cursor cannot tell them apart.
            if place - start >= most, let last, hash != last {
                return UInt32(truncatingIfNeeded: hash)
            }
            body(UInt32(truncatingIfNeeded: slots[place]))
            last = hash
        }
        return nil
    }

    /// Traps unless each slot is sorted and reachable from its home.
    package func checkInvariants() {
        var seen = 0
        for place in 0..<slots.count where slots[place] != 0 {
            seen += 1
            let hash = slots[place] >> 32
            precondition(home(hash) <= place, "a slot stands at its home or after it")
            for between in home(hash)..<place {
                precondition(slots[between] != 0, "no empty slot lies between a slot and its home")
                precondition(slots[between] >> 32 <= hash, "slots are sorted by their hashes")
            }
        }
        precondition(
            seen == used,
            "the count of rows is that of the full slots: \(used) counted, \(seen) full")
        precondition(slots[slots.count - 1] == 0, "the last slot of the table is empty")
    }

    @inlinable
    func home(_ hash: UInt64) -> Int { Int(truncatingIfNeeded: (hash &* homes) >> 32) }

    private static func slot(_ hash: UInt64, _ row: UInt32) -> UInt64 {
        hash & ~0xFFFF_FFFF | UInt64(row)
    }

    private func place(hash: UInt64, row: UInt32) -> Int {
        let wanted = Self.slot(hash, row)
        var place = home(hash >> 32)
        while slots[place] != wanted {
            precondition(slots[place] != 0, "a row that is looked up is in the table: \(row)")
            place += 1
        }
        return place
    }

    /// Where entries land is known only from the front, and they move towards the back: so they
    /// are packed against the new end first and spread out from there.
    private mutating func grow() {
        let oldLength = slots.count
        // How far entries reach past the homes does not increase, by more than rounding (one),
        // when homes move apart: so the old margin and one slot for the end are enough.
        let margin = oldLength - Int(homes)
        homes = max(16, homes + homes / 8)
        let end = Int(homes) + margin
        slots.resize(to: end + 1, filling: 0)

        var packed = end
        for place in (0..<oldLength).reversed() where slots[place] != 0 {
            packed -= 1
            slots[packed] = slots[place]
        }
        // Entry i of n lands at or before end - n + i, where it is read: landings only increase
        // and the last one is before the end. So nothing unread is overwritten.
        var landed = 0
        for place in packed..<end {
            let slot = slots[place]
            let target = max(landed, home(slot >> 32))
            while landed < target {
                slots[landed] = 0
                landed += 1
            }
            slots[target] = slot
            landed = target + 1
        }
        precondition(landed <= end, "the last row lands before the place where the rows ended")
        while landed < end {
            slots[landed] = 0
            landed += 1
        }
    }
}
