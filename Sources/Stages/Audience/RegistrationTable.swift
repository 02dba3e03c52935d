// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
internal import PushModel

/// One (token, subject, kind) of one registration: 16 bytes, a row of the registration's block.
struct Subscription: BitwiseCopyable {
    var token: TokenID
    /// The subject shown. With `noSubject` the target shows none, and the row only holds the token.
    var subject: SubjectID
    /// The position of this row in the subject's list.
    var position: UInt32 = 0
    var kind: KindID
    var hearsChanges: Bool

    static let noSubject = SubjectID(rawValue: 0)

    var entry: AudienceEntry {
        AudienceEntry(token: token, kind: kind, hearsChanges: hearsChanges)
    }

    /// Whether a subscription of the next snapshot is this one.
    func isSame(as other: Subscription) -> Bool {
        token == other.token && subject == other.subject && kind == other.kind
    }

    static func precedes(_ left: Subscription, _ right: Subscription) -> Bool {
        let leftKey = UInt64(left.token.rawValue) << 32 | UInt64(left.subject.rawValue)
        let rightKey = UInt64(right.token.rawValue) << 32 | UInt64(right.subject.rawValue)
        if leftKey != rightKey { return leftKey < rightKey }
        return left.kind.rawValue < right.kind.rawValue
    }
}

/// What the last snapshot of each installation and handler showed.
///
/// A registration's key is known by its 128-bit hash under a secret seed: keys are about 80 bytes
/// long and never needed again, and among 2.5 million of them two would collide once in 10^26
/// starts. 32 of the 128 bits live in the index. A block is a header of 16 bytes and 16 for each
/// subscription, sorted, so that snapshots are compared by merging.
struct RegistrationTable: ~Copyable, Sendable {
    /// Identifies a registration by the hash of its key.
    struct Identity {
        let hash: StableHash.Value

        init(key: UnsafeRawBufferPointer, seed: UInt64) {
            var hash = StableHash(seed: seed)
            hash.combine(key)
            self.hash = hash.finish()
        }

        init(hash: StableHash.Value) { self.hash = hash }
    }

    struct Header: BitwiseCopyable {
        var hashLow: UInt64
        /// The half of `hash.high` that the index does not hold.
        var hashMiddle: UInt32
        var count: UInt32
    }

    var blocks: ByteArena
    var index: IndexTable
    var rows = 0

    static let headerBytes = MemoryLayout<Header>.size
    static let rowBytes = MemoryLayout<Subscription>.stride
    /// The size of the header in the arena's units of 8 bytes.
    private static let headerUnits = UInt32(headerBytes / 8)
    private static let rowUnits = UInt32(rowBytes / 8)

    init() {
        blocks = ByteArena()
        index = IndexTable()
    }

    var count: Int { index.count }
    var blockBytes: Int { blocks.bytes }
    var freeBytes: Int { blocks.freeBytes }
    var indexBytes: Int { index.bytes }

    /// The block of a registration, or nil if it has no subscription.
    func find(_ identity: Identity) -> UInt32? {
        let hash = identity.hash
        return index.row(hash: hash.high) { block in
            let header = blocks[block, as: Header.self]
            return header.hashLow == hash.low
                && header.hashMiddle == UInt32(truncatingIfNeeded: hash.high)
        }
    }

    func count(_ block: UInt32) -> Int { Int(blocks[block, as: Header.self].count) }

    /// The row number of a block's subscription, as subjects' lists name it.
    func row(_ block: UInt32, _ offset: Int) -> UInt32 {
        block + Self.headerUnits + UInt32(offset) * Self.rowUnits
    }

    subscript(row: UInt32) -> Subscription {
        get { blocks[row, as: Subscription.self] }
        _modify { yield &blocks[row, as: Subscription.self] }
    }

    /// Has the processor fetch a row.
    func prefetch(row: UInt32) { blocks.prefetch(row, count: Self.rowBytes) }

    /// Allocates a block whose rows are yet to be written.
    mutating func allocate(_ identity: Identity, count: Int) -> UInt32 {
        let block = blocks.allocate(bytes: Self.headerBytes + count * Self.rowBytes)
        blocks[block, as: Header.self] = Header(
            hashLow: identity.hash.low,
            hashMiddle: UInt32(truncatingIfNeeded: identity.hash.high), count: UInt32(count))
        rows += count
        return block
    }

    /// Makes `new` the registration's block, and frees the old one.
    mutating func replace(_ identity: Identity, _ old: UInt32?, with new: UInt32?) {
        switch (old, new) {
        case (nil, nil): break
        case (nil, let new?): index.insert(hash: identity.hash.high, row: new)
        case (let old?, nil): index.remove(hash: identity.hash.high, row: old)
        case (let old?, let new?): index.replace(hash: identity.hash.high, row: old, with: new)
        }
        guard let old else { return }
        let count = count(old)
        rows -= count
        blocks.free(old, bytes: Self.headerBytes + count * Self.rowBytes)
    }

    func forEachRow(of block: UInt32, _ body: (Subscription) -> Void) {
        for offset in 0..<count(block) { body(self[row(block, offset)]) }
    }

    /// Calls `body` with at most `most` rows of a block, and returns how many it has.
    func visitRows(
        of block: UInt32, from first: Int, most: Int, _ body: (Subscription) -> Void
    ) -> Int {
        let count = count(block)
        for offset in min(first, count)..<min(first + most, count) {
            body(self[row(block, offset)])
        }
        return count
    }

    /// Calls `body` with the rows of some registrations; see `IndexTable.visit`.
    func visit(from cursor: UInt32, most: Int, _ body: (Subscription) -> Void) -> UInt32? {
        index.visit(from: cursor, most: most) { forEachRow(of: $0, body) }
    }

    func forEach(_ body: (_ row: UInt32) -> Void) {
        index.forEach { block in
            for offset in 0..<count(block) { body(row(block, offset)) }
        }
    }

    /// Traps unless each block is sorted and the rows add up.
    func checkInvariants() {
        index.checkInvariants()
        var found = 0
        index.forEach { block in
            precondition(count(block) > 0, "a registration that is kept has at least one row")
            found += count(block)
            for offset in 1..<count(block) {
                let before = blocks[row(block, offset - 1), as: Subscription.self]
                let after = blocks[row(block, offset), as: Subscription.self]
                precondition(Subscription.precedes(before, after), "the rows of a block are sorted")
            }
        }
        precondition(
            found == rows,
            "the count of rows is that of all blocks: \(rows) counted, \(found) found")
    }
}
