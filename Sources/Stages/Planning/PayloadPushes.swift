// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
package import PushModel

/// Finds the slot of a push with a payload by its token and coalescing key. (A push without a
/// payload has a cell per token in the audience.) It takes two look-ups in flat tables, however
/// many pushes one token has.
package struct PayloadPushes: ~Copyable {
    private var byKey = IndexTable(reservedSlots: 1 << 24)
    private var byToken = IndexTable(reservedSlots: 1 << 24)
    /// Indexed by slot + 1: row 0 marks an empty place in the tables.
    private var rows: [Row] = [Row(token: TokenID(rawValue: 0), key: 0)]
    private let seed: UInt64

    private struct Row {
        var token: TokenID
        var key: UInt64
        /// The next row of the same token; the first one is in `byToken`.
        var next: UInt32 = 0
        var previous: UInt32 = 0
    }

    package init(seed: UInt64) { self.seed = seed }

    package var isEmpty: Bool { byKey.count == 0 }

    package func slot(token: TokenID, key: UInt64) -> UInt32? {
        byKey.row(hash: hash(token, key)) {
            rows[Int($0)].token == token && rows[Int($0)].key == key
        }
        .map { $0 - 1 }
    }

    /// - Parameter slot: must not be in here yet; nor may the token have a push of this key.
    package mutating func insert(_ slot: UInt32, token: TokenID, key: UInt64) {
        let row = slot + 1
        while rows.count <= Int(row) { rows.append(Row(token: TokenID(rawValue: 0), key: 0)) }
        rows[Int(row)] = Row(token: token, key: key)
        byKey.insert(hash: hash(token, key), row: row)
        if let first = first(of: token) {
            byToken.replace(hash: hash(token, 0), row: first, with: row)
            rows[Int(row)].next = first
            rows[Int(first)].previous = row
        } else {
            byToken.insert(hash: hash(token, 0), row: row)
        }
    }

    package mutating func remove(_ slot: UInt32) {
        let row = slot + 1
        let (token, next, previous) = (
            rows[Int(row)].token, rows[Int(row)].next, rows[Int(row)].previous
        )
        byKey.remove(hash: hash(token, rows[Int(row)].key), row: row)
        if next != 0 { rows[Int(next)].previous = previous }
        if previous != 0 {
            rows[Int(previous)].next = next
        } else if next != 0 {
            byToken.replace(hash: hash(token, 0), row: row, with: next)
        } else {
            byToken.remove(hash: hash(token, 0), row: row)
        }
    }

    /// Removes all pushes of this token.
    /// - Returns: their slots, the latest first.
    package mutating func removeAll(of token: TokenID) -> [UInt32] {
        var slots: [UInt32] = []
        while let row = first(of: token) {
            slots.append(row - 1)
            remove(row - 1)
        }
        return slots
    }

    /// The slots of the token's pushes, the latest first.
    package func slots(of token: TokenID) -> [UInt32] {
        var slots: [UInt32] = []
        var row = first(of: token) ?? 0
        while row != 0 {
            slots.append(row - 1)
            row = rows[Int(row)].next
        }
        return slots
    }

    private func first(of token: TokenID) -> UInt32? {
        byToken.row(hash: hash(token, 0)) { rows[Int($0)].token == token }
    }

    /// A key is never 0, which stands for the token's first push.
    private func hash(_ token: TokenID, _ key: UInt64) -> UInt64 {
        var hash = StableHash(seed: seed)
        hash.combine(UInt64(token.rawValue))
        hash.combine(key)
        return hash.finish().low
    }

    package func checkInvariants() {
        byKey.checkInvariants()
        byToken.checkInvariants()
        var listed = 0
        byToken.forEach { first in
            var (row, previous) = (first, UInt32(0))
            while row != 0 {
                precondition(
                    rows[Int(row)].previous == previous,
                    "a row's back link names the list entry that names the row")
                precondition(
                    slot(token: rows[Int(row)].token, key: rows[Int(row)].key) == row - 1,
                    "a push is found by its token and key")
                listed += 1
                (row, previous) = (rows[Int(row)].next, row)
            }
        }
        precondition(listed == byKey.count, "each push is on the list of its token")
    }
}
