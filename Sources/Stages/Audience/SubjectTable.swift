// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
internal import PushModel

/// Every subject that a registration shows, by (app, bytes), each with the list of its
/// subscriptions; and the same, by (app, name), for all controls of a kind and for the tokens of an
/// installation.
///
/// A record is the header and the bytes in one block: 12 + 20 = 32 bytes for a usual subject. A
/// list is 4 bytes a subscription in a block of its own; a single subscription needs no block.
struct SubjectTable: ~Copyable, Sendable {
    struct Header: BitwiseCopyable {
        /// The block of the list; or the one subscription itself, while `sizeClass` is 0.
        var list: UInt32 = 0
        var count: UInt32 = 0
        /// Bits 0–14: the app. Bit 15: the list of an installation.
        private let owner: UInt16
        private let lengthMinusOne: UInt8
        /// Bits 0–5: size class of the list. Bit 6: kind-wide. Bit 7: a cursor goes through the list.
        var bits: UInt8

        private static let installationBit: UInt16 = 1 << 15
        private static let kindWideBit: UInt8 = 1 << 6
        static let cursorBit: UInt8 = 1 << 7

        var sizeClass: ListSize {
            get { ListSize(rawValue: bits & 63) }
            set { bits = bits & ~63 | newValue.rawValue }
        }
        var length: Int { Int(lengthMinusOne) + 1 }
        var app: AppID { AppID(rawValue: owner & ~Self.installationBit) }
        var scope: ListScope {
            if bits & Self.kindWideBit != 0 { return .kindWide }
            return owner & Self.installationBit == 0 ? .subject : .installation
        }
        /// Whether it is of one scope alone.
        var isSound: Bool { bits & Self.kindWideBit == 0 || owner & Self.installationBit == 0 }
        var hasCursor: Bool { bits & Self.cursorBit != 0 }

        init(_ app: AppID, _ scope: ListScope, length: Int) {
            assert(app.rawValue < Self.installationBit, "the apps have numbers of 15 bits")
            owner = app.rawValue | (scope == .installation ? Self.installationBit : 0)
            lengthMinusOne = UInt8(length - 1)
            bits = scope == .kindWide ? Self.kindWideBit : 0
        }

        /// Whether it is of this list, as far as the header tells.
        func isOf(_ app: AppID, _ scope: ListScope, length: Int) -> Bool {
            owner == app.rawValue | (scope == .installation ? Self.installationBit : 0)
                && (bits & Self.kindWideBit != 0) == (scope == .kindWide) && self.length == length
        }
    }

    var records: ByteArena
    var lists: ByteArena
    var index: IndexTable
    private let seed: UInt64
    private let byAddress = PassedByAddress()
    /// Entries in the lists of subjects, those of whole kinds and of installations not counted.
    var subscriptions = 0
    var subjects = 0

    static let headerBytes = MemoryLayout<Header>.size
    static let usualSubjectBytes = 20

    init(seed: UInt64) {
        records = ByteArena()
        lists = ByteArena()
        index = IndexTable()
        self.seed = seed
    }

    var recordBytes: Int { records.bytes }
    var listBytes: Int { lists.bytes }
    var freeBytes: Int { records.freeBytes + lists.freeBytes }
    var indexBytes: Int { index.bytes }

    // MARK: Rows

    func find(
        _ app: AppID, _ bytes: UnsafeRawBufferPointer, _ scope: ListScope, hash: UInt64
    ) -> SubjectID? {
        index.row(hash: hash) { row in
            records[row, as: Header.self].isOf(app, scope, length: bytes.count)
                && records.holds(bytes, at: row, offset: Self.headerBytes)
        }.map { SubjectID(rawValue: $0) }
    }

    /// The subject's row, made with an empty list if there is none yet.
    mutating func intern(
        app: AppID, bytes: UnsafeRawBufferPointer, scope: ListScope
    ) -> SubjectID {
        let hash = hash(app, bytes, scope)
        if let known = find(app, bytes, scope, hash: hash) { return known }
        let row = records.allocate(bytes: Self.headerBytes + bytes.count)
        records[row, as: Header.self] = Header(app, scope, length: bytes.count)
        records.write(bytes, to: row, offset: Self.headerBytes)
        index.insert(hash: hash, row: row)
        if scope == .subject { subjects += 1 }
        return SubjectID(rawValue: row)
    }

    func count(_ subject: SubjectID) -> Int {
        Int(records[subject.rawValue, as: Header.self].count)
    }

    func app(of subject: SubjectID) -> AppID {
        records[subject.rawValue, as: Header.self].app
    }

    func bytes(of subject: SubjectID) -> UnsafeRawBufferPointer {
        records.bytes(
            subject.rawValue, offset: Self.headerBytes,
            count: records[subject.rawValue, as: Header.self].length)
    }

    func scope(of subject: SubjectID) -> ListScope {
        records[subject.rawValue, as: Header.self].scope
    }

    func hasCursor(_ subject: SubjectID) -> Bool {
        records[subject.rawValue, as: Header.self].hasCursor
    }

    /// A subject without entries is freed once it has no cursor.
    mutating func setCursor(_ subject: SubjectID, _ value: Bool) {
        if value {
            records[subject.rawValue, as: Header.self].bits |= Header.cursorBit
        } else {
            records[subject.rawValue, as: Header.self].bits &= ~Header.cursorBit
            freeUnlessNeeded(subject)
        }
    }

    mutating func freeUnlessNeeded(_ subject: SubjectID) {
        let header = records[subject.rawValue, as: Header.self]
        guard header.count == 0, !header.hasCursor else { return }
        index.remove(
            hash: hash(app(of: subject), bytes(of: subject), header.scope),
            row: subject.rawValue)
        if header.scope == .subject { subjects -= 1 }
        records.free(subject.rawValue, bytes: Self.headerBytes + header.length)
    }

    // MARK: Prefetching

    /// Has the processor fetch where the search for this hash begins.
    func prefetchSlot(hash: UInt64) { index.prefetch(hash: hash) }

    /// Has the processor fetch the record of a subject of usual length, and returns its row. It is
    /// only a hint: another subject may have the same half of the hash.
    func prefetchRecord(hash: UInt64) -> UInt32? {
        guard let row = index.likelyRow(hash: hash) else { return nil }
        records.prefetch(row, count: Self.headerBytes + Self.usualSubjectBytes)
        return row
    }

    /// Has the processor fetch the record of a subject of usual length.
    func prefetch(_ subject: SubjectID) {
        records.prefetch(subject.rawValue, count: Self.headerBytes + Self.usualSubjectBytes)
    }

    /// The only subscription of a subject. For a subject with a list it returns nil and has the
    /// processor fetch the start of the list.
    func soleSubscription(prefetchingListOf row: UInt32) -> UInt32? {
        let header = records[row, as: Header.self]
        guard header.count > 0 else { return nil }
        if header.sizeClass.isInline { return header.list }
        lists.prefetch(header.list, count: 4)
        return nil
    }

    /// Has the processor fetch the entry at a position; it may be any number.
    func prefetchEntry(_ subject: SubjectID, at position: UInt32) {
        let header = records[subject.rawValue, as: Header.self]
        guard !header.sizeClass.isInline, position < header.count else { return }
        lists.prefetch(header.list &+ position / 2, count: 4)
    }

    // MARK: Lists

    /// The subscription at a position below `count`.
    func subscription(_ subject: SubjectID, at position: Int) -> UInt32 {
        let header = records[subject.rawValue, as: Header.self]
        precondition(position < Int(header.count), "a position lies below the list's count")
        return header.sizeClass.isInline
            ? header.list : lists[header.list, offset: 4 * position, as: UInt32.self]
    }

    /// Writes the entry at a position, such as for a subscription whose row has moved.
    mutating func set(_ subject: SubjectID, at position: Int, to subscription: UInt32) {
        let header = records[subject.rawValue, as: Header.self]
        if header.sizeClass.isInline {
            records[subject.rawValue, as: Header.self].list = subscription
        } else {
            lists[header.list, offset: 4 * position, as: UInt32.self] = subscription
        }
    }

    /// Appends an entry and returns its position.
    mutating func append(_ subject: SubjectID, _ subscription: UInt32) -> UInt32 {
        let header = records[subject.rawValue, as: Header.self]
        if Int(header.count) == header.sizeClass.capacity {
            resize(subject, to: header.sizeClass.larger)
        }
        records[subject.rawValue, as: Header.self].count += 1
        set(subject, at: Int(header.count), to: subscription)
        if header.scope == .subject { subscriptions += 1 }
        return header.count
    }

    /// Removes an entry; the last one takes its place and is returned, if it was another.
    mutating func remove(_ subject: SubjectID, at position: UInt32) -> UInt32? {
        let header = records[subject.rawValue, as: Header.self]
        let last = subscription(subject, at: Int(header.count) - 1)
        let moves = position != header.count - 1
        if moves { set(subject, at: Int(position), to: last) }
        records[subject.rawValue, as: Header.self].count -= 1
        if header.scope == .subject { subscriptions -= 1 }
        // A list shrinks only when it fits two sizes down: an entry that comes and goes at a
        // boundary copies nothing.
        let smaller = header.sizeClass.smaller
        if Int(header.count) - 1 <= smaller.smaller.capacity, !header.sizeClass.isInline {
            resize(subject, to: smaller)
        }
        return moves ? last : nil
    }

    private mutating func resize(_ subject: SubjectID, to size: ListSize) {
        let header = records[subject.rawValue, as: Header.self]
        var list: UInt32 = 0
        if size.isInline {
            if header.count > 0 { list = subscription(subject, at: 0) }
        } else {
            list = lists.allocate(bytes: 4 * size.capacity)
            if header.sizeClass.isInline {
                lists[list, as: UInt32.self] = header.list
            } else {
                lists.copy(from: header.list, to: list, count: 4 * Int(header.count))
            }
        }
        if !header.sizeClass.isInline {
            lists.free(header.list, bytes: 4 * header.sizeClass.capacity)
        }
        records[subject.rawValue, as: Header.self].list = list
        records[subject.rawValue, as: Header.self].sizeClass = size
    }

    // MARK: Checks

    func forEach(_ body: (SubjectID) -> Void) {
        index.forEach { body(SubjectID(rawValue: $0)) }
    }

    /// Traps unless every row can be found, is needed, and its list fits its block.
    func checkInvariants() {
        index.checkInvariants()
        var entries = 0
        var found = 0
        forEach { subject in
            let header = records[subject.rawValue, as: Header.self]
            let (app, bytes) = (app(of: subject), bytes(of: subject))
            let known = find(
                app, bytes, header.scope, hash: hash(app, bytes, header.scope))
            precondition(known == subject, "a subject is found by its app, bytes and scope")
            precondition(
                header.count > 0 || header.hasCursor,
                "a subject is kept only while it has an entry or a cursor")
            precondition(
                Int(header.count) <= header.sizeClass.capacity,
                "a list has no more entries than its size class holds")
            if header.scope == .subject {
                entries += Int(header.count)
                found += 1
            }
        }
        precondition(
            entries == subscriptions && found == subjects,
            "the counts of entries and subjects are those found in the index")
    }

    func hash(
        _ app: AppID, _ bytes: UnsafeRawBufferPointer, _ scope: ListScope
    ) -> UInt64 {
        let domain = UInt64(app.rawValue) << 8 | UInt64(scope.rawValue)
        return StableHash.hash64(bytes, seed: seed &+ domain &* 0x9E37_79B9_7F4A_7C15)
    }
}
