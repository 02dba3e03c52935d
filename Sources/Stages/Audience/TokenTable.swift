// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
internal import PushModel

/// Every token that a registration holds or a suppression names, by (route, bytes).
///
/// A record is the header and the bytes in one block, so that a push costs one cache miss here:
/// 24 + 32 = 56 bytes for the usual token.
struct TokenTable: ~Copyable, Sendable {
    struct Header: BitwiseCopyable {
        /// When its latest registration was registered, in milliseconds; `.min` before the first.
        var registeredAt: Int64 = .min
        var pending: UInt32 = 0
        /// The number of subscriptions that name the token.
        var references: UInt32 = 0
        /// Row in `suppressions`; 0 for none.
        var suppression: UInt32 = 0
        var route: UInt16
        /// Bit 15: whether the token is listed in `removed`. The other bits: its length in bytes.
        var lengthAndMark: UInt16

        static let mark: UInt16 = 1 << 15
        var isMarked: Bool { lengthAndMark & Self.mark != 0 }
        var length: Int { Int(lengthAndMark & ~Self.mark) }
    }

    struct SuppressionRow: BitwiseCopyable {
        /// In milliseconds.
        var registeredAt: Int64
        /// When it was recorded, in seconds; 0 if that is not known.
        var recordedAt: UInt32 = 0
        var status: UInt16 = 0
        /// Position in `reasons`.
        var reason: UInt8 = 0
    }

    var records: ByteArena
    var index: IndexTable
    var suppressions: Column<SuppressionRow>
    /// The reasons of suppressions. Row 0 stands for those that came when the table was full.
    var reasons = [""]
    var suppressionRows = FreeList(first: 1, capacity: Self.suppressionsMax)
    /// Tokens that reached zero references since the last reclaim, each once.
    private(set) var removed: [UInt32] = []
    private let seed: UInt64
    private let byAddress = PassedByAddress()
    /// The number of tokens that a registration holds.
    private(set) var count = 0
    /// The same, by route.
    private(set) var counts: [Int]

    static let headerBytes = MemoryLayout<Header>.size
    static let usualTokenBytes = 32
    static let reasonBytesMax = 64
    /// The most suppressions known at once; with their tokens' rows they would fill 64 GiB.
    private static let suppressionsMax = 1 << 30

    init(seed: UInt64, routes: Int) {
        counts = Array(repeating: 0, count: routes)
        records = ByteArena()
        index = IndexTable()
        suppressions = Column(capacity: Self.suppressionsMax)
        suppressions.append(SuppressionRow(registeredAt: 0))
        self.seed = seed
    }

    var suppressionCount: Int { suppressionRows.count }
    var recordBytes: Int { records.bytes }
    var freeBytes: Int { records.freeBytes }
    var indexBytes: Int { index.bytes }
    var suppressionBytes: Int { suppressions.bytes + suppressionRows.bytes }

    // MARK: Rows

    func find(route: RouteID, bytes: UnsafeRawBufferPointer) -> TokenID? {
        find(route: route, bytes: bytes, hash: hash(route: route, bytes: bytes))
    }

    private func find(
        route: RouteID, bytes: UnsafeRawBufferPointer, hash: UInt64
    ) -> TokenID? {
        index.row(hash: hash) { row in
            let header = records[row, as: Header.self]
            return header.route == route.rawValue && header.length == bytes.count
                && records.holds(bytes, at: row, offset: Self.headerBytes)
        }.map { TokenID(rawValue: $0) }
    }

    /// The token's row, made with no references if there is none yet.
    mutating func intern(route: RouteID, bytes: UnsafeRawBufferPointer) -> TokenID {
        let hash = hash(route: route, bytes: bytes)
        if let known = find(route: route, bytes: bytes, hash: hash) { return known }
        let row = records.allocate(bytes: Self.headerBytes + bytes.count)
        records[row, as: Header.self] = Header(
            route: route.rawValue, lengthAndMark: UInt16(bytes.count))
        records.write(bytes, to: row, offset: Self.headerBytes)
        index.insert(hash: hash, row: row)
        return TokenID(rawValue: row)
    }

    /// A token of this route has become one that a registration holds, or ceased to be one.
    mutating func countHeld(_ change: Int, of route: UInt16) {
        count += change
        counts[Int(route)] += change
    }

    mutating func retain(_ token: TokenID) {
        let header = records[token.rawValue, as: Header.self]
        if header.references == 0 { countHeld(1, of: header.route) }
        records[token.rawValue, as: Header.self].references += 1
    }

    /// Gives a reference back. Returns whether it was the last one.
    mutating func release(_ token: TokenID) -> Bool {
        records[token.rawValue, as: Header.self].references -= 1
        let header = records[token.rawValue, as: Header.self]
        guard header.references == 0 else { return false }
        countHeld(-1, of: header.route)
        if !header.isMarked {
            records[token.rawValue, as: Header.self].lengthAndMark |= Header.mark
            removed.append(token.rawValue)
        }
        return true
    }

    /// Frees the rows of tokens that are still without a reference. A token with a suppression
    /// keeps its row.
    mutating func reclaimRemoved() {
        for row in removed {
            records[row, as: Header.self].lengthAndMark &= ~Header.mark
            guard records[row, as: Header.self].references == 0 else { continue }
            records[row, as: Header.self].pending = 0
            records[row, as: Header.self].registeredAt = .min
            freeUnlessNeeded(row)
        }
        removed.removeAll(keepingCapacity: true)
    }

    private mutating func freeUnlessNeeded(_ row: UInt32) {
        let header = records[row, as: Header.self]
        guard header.references == 0, header.suppression == 0, !header.isMarked else { return }
        let token = TokenID(rawValue: row)
        index.remove(hash: hash(route: route(of: token), bytes: bytes(of: token)), row: row)
        records.free(row, bytes: Self.headerBytes + header.length)
    }

    /// Has the processor fetch where the search for this hash begins.
    func prefetchSlot(hash: UInt64) { index.prefetch(hash: hash) }

    /// Has the processor fetch the row that the search for this hash probably ends with.
    func prefetchRecord(hash: UInt64) {
        if let row = index.likelyRow(hash: hash) { prefetch(TokenID(rawValue: row)) }
    }

    /// Has the processor fetch the row of a token of usual length.
    func prefetch(_ token: TokenID) {
        records.prefetch(token.rawValue, count: Self.headerBytes + Self.usualTokenBytes)
    }

    // MARK: What a row says

    /// A registration names the token. Called before its rows are retained: if the token has no
    /// reference, `registeredAt` of its earlier registrations does not count.
    mutating func registered(_ token: TokenID, at time: WallTime) {
        let header = records[token.rawValue, as: Header.self]
        if header.references == 0 || header.registeredAt < time.milliseconds {
            records[token.rawValue, as: Header.self].registeredAt = time.milliseconds
        }
    }

    func registeredAt(of token: TokenID) -> WallTime {
        WallTime(milliseconds: records[token.rawValue, as: Header.self].registeredAt)
    }

    func route(of token: TokenID) -> RouteID {
        RouteID(rawValue: records[token.rawValue, as: Header.self].route)
    }

    func bytes(of token: TokenID) -> UnsafeRawBufferPointer {
        records.bytes(
            token.rawValue, offset: Self.headerBytes,
            count: records[token.rawValue, as: Header.self].length)
    }

    func references(of token: TokenID) -> Int {
        Int(records[token.rawValue, as: Header.self].references)
    }

    func pending(_ token: TokenID) -> UInt32 {
        records[token.rawValue, as: Header.self].pending
    }

    mutating func setPending(_ token: TokenID, _ value: UInt32) {
        records[token.rawValue, as: Header.self].pending = value
    }

    // MARK: Suppressions

    func suppressionRegisteredAt(_ token: TokenID) -> WallTime? {
        let suppression = records[token.rawValue, as: Header.self].suppression
        return suppression == 0
            ? nil : WallTime(milliseconds: suppressions[Int(suppression)].registeredAt)
    }

    /// What was recorded when the token was suppressed.
    func suppression(of token: TokenID) -> RecordedSuppression? {
        let number = records[token.rawValue, as: Header.self].suppression
        guard number != 0 else { return nil }
        let row = suppressions[Int(number)]
        return RecordedSuppression(
            status: row.status, reason: reasons[Int(row.reason)],
            registeredAt: WallTime(milliseconds: row.registeredAt),
            recordedAt: row.recordedAt == 0
                ? nil : WallTime(milliseconds: Int64(row.recordedAt) * 1000))
    }

    func isSuppressed(_ token: TokenID) -> Bool {
        let header = records[token.rawValue, as: Header.self]
        return header.suppression != 0
            && suppressions[Int(header.suppression)].registeredAt >= header.registeredAt
    }

    /// Applies a suppression. Returns whether it is newer than the one that was known.
    mutating func apply(
        _ suppression: Suppression, recordedAt time: WallTime, to token: TokenID
    ) -> Bool {
        let known = records[token.rawValue, as: Header.self].suppression
        let row = SuppressionRow(
            registeredAt: suppression.registeredAt.milliseconds,
            recordedAt: UInt32(clamping: time.seconds), status: suppression.status,
            reason: number(ofReason: suppression.reason))
        if known != 0 {
            guard suppressions[Int(known)].registeredAt < row.registeredAt else { return false }
            suppressions[Int(known)] = row
            return true
        }
        let place = suppressionRows.take()
        if Int(place) == suppressions.count { suppressions.append(row) }
        suppressions[Int(place)] = row
        records[token.rawValue, as: Header.self].suppression = place
        return true
    }

    /// There are a handful of reasons, unless somebody writes to the topic by hand.
    private mutating func number(ofReason reason: String) -> UInt8 {
        if let known = reasons.firstIndex(of: reason) { return UInt8(known) }
        guard reasons.count <= UInt8.max, reason.utf8.count <= Self.reasonBytesMax else { return 0 }
        reasons.append(reason)
        return UInt8(reasons.count - 1)
    }

    /// Removes the suppression. Returns whether there was one.
    mutating func revokeSuppression(of token: TokenID) -> Bool {
        let suppression = records[token.rawValue, as: Header.self].suppression
        guard suppression != 0 else { return false }
        suppressionRows.give(suppression)
        records[token.rawValue, as: Header.self].suppression = 0
        freeUnlessNeeded(token.rawValue)
        return true
    }

    // MARK: Checks

    /// Calls `body` with some of the tokens that a registration holds or a suppression names; see
    /// `IndexTable.visit`.
    func visit(from cursor: UInt32, most: Int, _ body: (TokenID) -> Void) -> UInt32? {
        index.visit(from: cursor, most: most) { body(TokenID(rawValue: $0)) }
    }

    /// Calls `body` with every token that a registration holds.
    func forEach(_ body: (TokenID) -> Void) {
        index.forEach { row in
            if records[row, as: Header.self].references > 0 { body(TokenID(rawValue: row)) }
        }
    }

    /// Traps unless every row can be found, is needed, and has exactly `references[row]`.
    func checkInvariants(references expected: [UInt32: Int]) {
        index.checkInvariants()
        var held = counts.map { _ in 0 }
        var judged = 0
        index.forEach { row in
            let token = TokenID(rawValue: row)
            let header = records[row, as: Header.self]
            precondition(
                find(route: route(of: token), bytes: bytes(of: token)) == token,
                "a token is found by its route and bytes")
            precondition(
                Int(header.references) == expected[row, default: 0],
                "a token's count of references is that of the rows that name it")
            precondition(
                header.references > 0 || header.suppression > 0 || header.isMarked,
                "a token is kept only while it is referred to, suppressed or marked")
            precondition(
                header.isMarked == removed.contains(row),
                "a token is marked exactly while it is listed as removed")
            if header.references > 0 { held[Int(header.route)] += 1 }
            if header.suppression > 0 { judged += 1 }
        }
        precondition(
            held == counts, "a route's count of tokens is that of its tokens with a reference")
        precondition(
            held.reduce(0, +) == count && expected.count == count,
            "the tokens with a reference are exactly those that a row names")
        precondition(
            judged == suppressionRows.count, "each suppression is that of a token in the index")
    }

    func hash(route: RouteID, bytes: UnsafeRawBufferPointer) -> UInt64 {
        StableHash.hash64(bytes, seed: seed &+ UInt64(route.rawValue) &* 0x9E37_79B9_7F4A_7C15)
    }
}
