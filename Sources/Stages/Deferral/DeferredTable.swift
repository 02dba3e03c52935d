// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
package import Ledger
package import Planning
package import PushModel

/// This worker's partitions of `deferred` as a table: one row for each key of each partition,
/// however many records the key has. A heap wakes the rows, and a queue per route holds those whose
/// time has come.
///
/// Each row is a claim of the offset tracker, with one reference while it waits. When the row is
/// taken, its claim passes to the push that is made of it. The row has ended when its last claim
/// has been given back.
package struct DeferredTable: ~Copyable {
    package private(set) var bodies = BodyStore()
    var rows: [Row] = []
    private var free: [UInt32] = []
    private var index = IndexTable()
    private var tokens = ByteArena()
    private(set) var waiting = WakeHeap()
    private var ready: [Queue]
    /// The rows of each route whose push is announced, or about to be, and not made yet.
    var announcedCounts: [Int]
    /// How many announcements are on their way to Kafka.
    package internal(set) var announcingCount = 0
    /// The rows whose latest record announces a push of which nobody knows that it was sent.
    package internal(set) var overstatedRows: Set<UInt32> = []
    /// The row of each claim, indexed by `ClaimID`; 0 for none.
    private var rowsByClaim: [UInt32] = []
    private var sweepPosition = 0
    var forgetPosition = 0
    private let seed: UInt64
    private let byAddress = PassedByAddress()

    static let none = UInt32.max
    static let distantPast = MonotonicTime(nanoseconds: .min)
    /// Times in records are whole milliseconds and come from another worker's clock, so smaller
    /// differences do not count.
    private static let clockSlack = Duration.seconds(1)

    /// States:
    /// - `replaying`: its partition has not been read to its end, so a record that ends the row may
    ///   follow. Can transition to: `waiting`, gone.
    /// - `waiting`: in the heap. Can transition to: `ready`, gone.
    /// - `ready`: in its route's queue. Can transition to: `announcing`, `taken`, `waiting`, gone.
    /// - `announcing`: its record says that a push is about to be sent, and Kafka has not
    ///   acknowledged it. Can transition to: `ready`, `waiting`, gone.
    /// - `taken`: a push has its claim. Can transition to: `waiting` (put back, or written anew by
    ///   another worker meanwhile), gone.
    enum State: UInt8 { case free, replaying, waiting, ready, announcing, taken }

    struct Row {
        var content: DeferredContent
        let claim: OffsetClaim
        /// The offset at which its latest content was first written; a rewrite does not change it.
        var offset: Int64
        let coalescingKey: UInt64
        let token: ByteArena.Reference
        let tokenBytes: UInt16
        let route: RouteID
        /// The partition of its record, to which its tombstone must be written too. If the topic
        /// has been given more partitions, the key may lead to another one; a tombstone there would
        /// leave the record to be sent again after each replay.
        let partition: Int32
        var state = State.replaying
        /// Whether somebody else ended the row while a push had its claim.
        var isRevoked = false
        /// Whether Kafka's latest record of the key does not say all that is owed.
        var needsRewrite = false
        /// How many rewrites of the row this worker has yet to read.
        var unreadRewrites: UInt8 = 0
        /// Whether the row was due once while no registration had its token.
        var wasMissed = false
        /// Whether its latest content was first written while this worker had the partition.
        var isFresh = false
        /// When the push expires by the row's record; events that have joined it may do so later.
        var expiresInKafka = distantPast
        /// When the announcement of the next push was written; meaningful while it is on its way.
        var announcedAt = distantPast
        /// Until when the push that was announced last is handed over at the latest; the distant
        /// past if none was, or if what became of it is known.
        var announcedUntil = distantPast
        /// Whether Kafka has the announcement of the next push.
        var isAnnounced = false
        /// The ticket of the record that this worker has written of the row last; 0 for none.
        var latestTicket: UInt64 = 0
        /// Whether the row has expired by this worker's clock, which may be ahead.
        var isHeldBack = false
        var next = none
        var previous = none
    }

    private struct Queue {
        var head = none
        var tail = none
    }

    package init(routes: Int, seed: UInt64) {
        ready = Array(repeating: Queue(), count: routes)
        announcedCounts = Array(repeating: 0, count: routes)
        owedCounts = announcedCounts
        self.seed = seed
        // Row 0 marks an empty place in the index.
        rows.append(
            Row(
                content: DeferredContent(
                    PushContent(
                        type: .controls, priority: 0, expiration: .none,
                        expiresAt: .distantFuture, origin: nil, readSequence: 0, subject: .none,
                        subjectTag: 0),
                    past: PushRequest.Past(attempts: 0, firstTriedAt: nil)),
                claim: OffsetClaim(epoch: 0, id: ClaimID(rawValue: .max), offset: 0),
                offset: 0, coalescingKey: 0, token: 0, tokenBytes: 0, route: RouteID(rawValue: 0),
                partition: 0, state: .free))
    }

    package var count: Int { rows.count - 1 - free.count }
    /// The number of rows whose claim a push has.
    package private(set) var takenCount = 0
    package private(set) var readyCount = 0
    /// The number of rows that owe nothing, and only keep the time of the last push.
    package internal(set) var sentCount = 0
    /// The number of rows that are held back since nothing confirms that they have expired.
    package private(set) var heldBackCount = 0
    /// The number of rows that owe a push, by route.
    var owedCounts: [Int]
    package var nextDue: MonotonicTime { waiting.nextDue }

    /// The memory of the rows, with their tokens and payloads.
    package var bytes: Int {
        rows.capacity * MemoryLayout<Row>.stride
            + rowsByClaim.capacity * MemoryLayout<UInt32>.stride + index.bytes + tokens.bytes
            + bodies.bytes
    }

    // MARK: One row

    package func content(of row: UInt32) -> DeferredContent { rows[Int(row)].content }
    package func route(of row: UInt32) -> RouteID { rows[Int(row)].route }
    package func coalescingKey(of row: UInt32) -> UInt64 { rows[Int(row)].coalescingKey }
    package func claim(of row: UInt32) -> OffsetClaim { rows[Int(row)].claim }
    package func partition(of row: UInt32) -> Int32 { rows[Int(row)].partition }
    package func offset(of row: UInt32) -> Int64 { rows[Int(row)].offset }
    package func isTaken(_ row: UInt32) -> Bool { rows[Int(row)].state == .taken }

    /// One past the highest row.
    package var rowEnd: UInt32 { UInt32(rows.count) }

    /// Until when the row waits; nil for one that is free or whose push is under way.
    package func waitsUntil(_ row: UInt32) -> MonotonicTime? {
        switch rows[Int(row)].state {
        case .free, .taken: nil
        case .waiting: waiting.time(of: row)
        case .replaying, .ready, .announcing: rows[Int(row)].content.push.notBefore
        }
    }

    /// When the event that brought the payload was read. The row must have a payload.
    package func payloadReadAt(of row: UInt32) -> WallTime {
        bodies.readAt(rows[Int(row)].content.push.body)
    }

    package func payloadAge(of row: UInt32) -> BodyAge {
        bodies.age(of: rows[Int(row)].content.push.body, sequence: 0)
    }

    package func tokenBytes(of row: UInt32) -> UnsafeRawBufferPointer {
        tokens.bytes(rows[Int(row)].token, offset: 0, count: Int(rows[Int(row)].tokenBytes))
    }

    /// The row of this key in the partition of this assignment. A topic that was given more
    /// partitions has some keys in two of them, whose offsets must not be compared.
    package func row(
        route: RouteID, token: UnsafeRawBufferPointer, coalescingKey: UInt64,
        assignment: AssignmentID
    ) -> UInt32? {
        index.row(hash: hash(route, token, coalescingKey)) { row in
            rows[Int(row)].route == route && rows[Int(row)].coalescingKey == coalescingKey
                && rows[Int(row)].claim.epoch == assignment.epoch
                && tokenBytes(of: row).elementsEqual(token)
        }
    }

    /// Calls `body` with the rows of this key in all of this worker's partitions.
    package func forEachRow(
        route: RouteID, token: UnsafeRawBufferPointer, coalescingKey: UInt64,
        _ body: (UInt32) -> Void
    ) {
        guard count > 0 else { return }
        index.forEachRow(hash: hash(route, token, coalescingKey)) { row in
            if rows[Int(row)].route == route, rows[Int(row)].coalescingKey == coalescingKey,
                tokenBytes(of: row).elementsEqual(token)
            {
                body(row)
            }
        }
    }

    /// The row whose claim this is; nil when it is gone.
    package func row(of claim: OffsetClaim) -> UInt32? {
        let id = Int(claim.id.rawValue)
        guard id < rowsByClaim.count, rowsByClaim[id] != 0 else { return nil }
        let row = rowsByClaim[id]
        return rows[Int(row)].claim == claim ? row : nil
    }

    // MARK: Records are read

    /// Whose push a record is. The token's bytes are lent for a call.
    package struct Key {
        let route: RouteID
        let token: UnsafeRawBufferPointer
        let coalescingKey: UInt64

        package init(route: RouteID, token: UnsafeRawBufferPointer, coalescingKey: UInt64) {
            (self.route, self.token, self.coalescingKey) = (route, token, coalescingKey)
        }
    }

    /// Where a record was read, and what that says of it.
    package struct Place {
        let assignment: AssignmentID
        /// The partition of the assignment.
        let partition: Int32
        let offset: Int64
        /// The offset at which its content was first written: another one if it is a rewrite.
        let saidAt: Int64
        /// Whether the partition has been read to its end; until then no row acts.
        let isActive: Bool

        package init(
            _ assignment: AssignmentID, partition: Int32, offset: Int64, saidAt: Int64,
            isActive: Bool
        ) {
            (self.assignment, self.partition) = (assignment, partition)
            (self.offset, self.saidAt, self.isActive) = (offset, saidAt, isActive)
        }
    }

    /// Stores a body. Its bytes stay until the row's content is replaced or the row is gone.
    package mutating func keep(
        _ payload: EventPayload, collapseID: [UInt8], readAt: WallTime, knownSince: UInt64,
        origin: RecordPosition?
    ) -> BodyID {
        bodies.insert(
            payload.body, collapseID: collapseID, readAt: readAt, knownSince: knownSince,
            activity: payload.activity, origin: origin)
    }

    /// The body's event is about this subject, or for this installation.
    package mutating func add(_ scope: ListScope, _ name: [UInt8], to body: BodyID) {
        name.withUnsafeBytes { bodies.add(scope, $0, to: body) }
    }

    /// Makes a row of the first record of a key. The row claims the record's offset.
    package mutating func insert(
        _ content: DeferredContent, of key: Key, at place: Place, _ tracker: inout OffsetTracker
    ) -> UInt32 {
        let claim = tracker.claimRow(place.assignment, offset: place.offset)
        let reference = tokens.allocate(bytes: max(1, key.token.count))
        tokens.write(key.token, to: reference, offset: 0)
        let row = Row(
            content: content, claim: claim, offset: place.saidAt,
            coalescingKey: key.coalescingKey, token: reference,
            tokenBytes: UInt16(key.token.count), route: key.route, partition: place.partition,
            isFresh: place.isActive && place.saidAt == place.offset,
            expiresInKafka: content.push.expiresAt)
        let number: UInt32
        if let reused = free.popLast() {
            number = reused
            rows[Int(reused)] = row
        } else {
            number = UInt32(rows.count)
            rows.append(row)
        }
        let id = Int(claim.id.rawValue)
        while rowsByClaim.count <= id { rowsByClaim.append(0) }
        rowsByClaim[id] = number
        index.insert(hash: hash(key.route, key.token, key.coalescingKey), row: number)
        countOwed(1, row)
        if place.isActive { rest(number, until: content.push.notBefore) }
        return number
    }

    /// Applies a later record of the row's key. The record says what is owed now, except that the
    /// later expiry and the newer payload are kept. A rewrite says only what the row knows already,
    /// so it makes nothing due.
    /// - Returns: whether the record says less than is owed. It must then be written again, or
    ///   whoever replays the topic would know only this record.
    package mutating func replace(
        _ row: UInt32, with content: DeferredContent, at place: Place, isRewrite: Bool,
        _ tracker: inout OffsetTracker
    ) -> Bool {
        let number = Int(row)
        assert(
            rows[number].partition == place.partition,
            "a record changes a row of its own partition, whose offsets can be compared")
        let (saidAt, isActive) = (place.saidAt, place.isActive)
        let isKnown = saidAt <= rows[number].offset && !rows[number].isRevoked
        let isOwn = isKnown && rows[number].unreadRewrites > 0
        if isOwn { rows[number].unreadRewrites -= 1 }
        if content.isSent {
            return applySent(row, content, saidAt: saidAt, isOwn: isOwn, isActive: isActive)
        }
        // What the owner before has written again is its last word. This worker's own announcement
        // gives the latest time at which the push may be sent.
        let isCorrected = isKnown && isRewrite && !isOwn
        if isCorrected {
            rows[number].content.sentAt = content.sentAt
        } else if !isOwn {
            rows[number].content.sentAt = max(rows[number].content.sentAt, content.sentAt)
        }
        var content = content
        content.sentAt = rows[number].content.sentAt
        if rows[number].content.isSent {
            if isKnown { return false }
            owesAgain(row)
        }
        let known = rows[number].content.push
        let said = content.push.expiresAt
        var isNarrower = rows[number].expiresInKafka > said + Self.clockSlack
        if !isNarrower, !isOwn { rows[number].expiresInKafka = said }
        content.push.expiresAt = max(said, known.expiresAt)
        if content.push.body != .none, bodies.readAt(known.body) > bodies.readAt(content.push.body)
        {
            bodies.release(content.push.body)
            content.push.body = known.body
            content.push.type = known.type
            isNarrower = true
        } else {
            bodies.release(known.body)
        }
        rows[number].needsRewrite = isNarrower
        if isKnown {
            rows[number].content.push.expiresAt = content.push.expiresAt
            rows[number].content.push.body = content.push.body
            rows[number].content.push.type = content.push.type
            if isCorrected, rows[number].state == .waiting {
                leave(row)
                rest(row, until: rows[number].content.push.notBefore)
            }
            return isNarrower
        }
        // A push has the row's claim: the row needs one of its own again.
        if rows[number].state == .taken { tracker.retain(rows[number].claim) }
        let isAnnouncing = rows[number].state == .announcing
        if !isAnnouncing { leave(row) }
        rows[number].content = content
        rows[number].isFresh = isActive && !isRewrite
        rows[number].offset = max(saidAt, rows[number].offset)
        rows[number].isRevoked = false
        if isAnnouncing { return isNarrower }
        if isActive {
            rest(row, until: content.push.notBefore)
        } else {
            rows[number].state = .replaying
        }
        return isNarrower
    }

    /// The row's record is hidden by the tombstone of an older record. It must be written again
    /// once its partition has been read to the end, unless a later record comes first.
    package mutating func hide(_ row: UInt32) { rows[Int(row)].needsRewrite = true }

    /// The row's record has been written again, as it is now.
    package mutating func rewritten(_ row: UInt32, ticket: UInt64) {
        rows[Int(row)].needsRewrite = false
        rows[Int(row)].expiresInKafka = rows[Int(row)].content.push.expiresAt
        rows[Int(row)].latestTicket = ticket
        if rows[Int(row)].announcedUntil > Self.distantPast {
            overstatedRows.insert(row)
        } else {
            overstatedRows.remove(row)
        }
        if rows[Int(row)].unreadRewrites < .max { rows[Int(row)].unreadRewrites += 1 }
    }

    /// Whether this is the last record that this worker has written of the row.
    package func isLatest(_ ticket: UInt64, of row: UInt32) -> Bool {
        rows[Int(row)].latestTicket == ticket
    }

    /// Whether this worker has yet to read a rewrite of the row.
    package func hasUnreadRewrites(_ row: UInt32) -> Bool { rows[Int(row)].unreadRewrites > 0 }

    /// The partition has been read to its end: its rows begin to wait.
    /// - Parameter body: is called with the rows whose record must be written again.
    package mutating func activate(_ assignment: AssignmentID, _ body: (UInt32) -> Void) {
        for row in rows.indices
        where rows[row].state == .replaying && rows[row].claim.epoch == assignment.epoch {
            rest(UInt32(row), until: rows[row].content.push.notBefore)
            if rows[row].needsRewrite { body(UInt32(row)) }
        }
    }

    /// Somebody else ended the row. The push that has its claim goes on; when the claim is back, the
    /// row is removed without a tombstone.
    package mutating func revoke(_ row: UInt32) {
        precondition(
            isTaken(row), "a row is revoked only while a push has its claim; else it is removed")
        rows[Int(row)].isRevoked = true
    }

    package func isRevoked(_ row: UInt32) -> Bool { rows[Int(row)].isRevoked }

    // MARK: Time passes

    /// Moves rows whose time has come to their routes' queues, at most `limit` of them.
    package mutating func wake(now: MonotonicTime, limit: Int) {
        for _ in 0..<limit {
            guard let row = waiting.popDue(now: now) else { return }
            enqueue(row)
        }
    }

    package func firstReady(of route: RouteID) -> UInt32? {
        let head = ready[Int(route.rawValue)].head
        return head == Self.none ? nil : head
    }

    /// Takes a row out of its queue; its claim passes to a push.
    package mutating func take(_ row: UInt32) {
        let announcedUntil = rows[Int(row)].announcedUntil
        leave(row)
        takenCount += 1
        rows[Int(row)].state = .taken
        rows[Int(row)].announcedUntil = announcedUntil
    }

    /// Ends a row without a push. Its claim is given back, and with the last claim the row ends.
    package mutating func drop(_ row: UInt32, _ tracker: inout OffsetTracker) {
        let claim = rows[Int(row)].claim
        take(row)
        tracker.release(claim)
    }

    /// The row of a push that ended waits again, and has its claim back.
    package mutating func putBack(_ row: UInt32, notBefore: MonotonicTime, attempts: UInt16) {
        leave(row)
        rows[Int(row)].content.past.attempts = attempts
        rows[Int(row)].announcedUntil = Self.distantPast
        rest(row, until: notBefore)
    }

    /// Lets a row whose time has come wait for longer.
    package mutating func postpone(_ row: UInt32, until time: MonotonicTime) {
        leave(row)
        rest(row, until: time)
    }

    /// Lets a row that is due, though it may have expired, wait until it is looked at again.
    package mutating func holdBack(_ row: UInt32, until time: MonotonicTime) {
        leave(row)
        rows[Int(row)].state = .waiting
        rows[Int(row)].isHeldBack = true
        heldBackCount += 1
        waiting.insert(row, at: time)
    }

    /// No registration has the row's token. Returns true the first time, and the row waits again.
    package mutating func miss(_ row: UInt32, until time: MonotonicTime) -> Bool {
        if rows[Int(row)].wasMissed { return false }
        rows[Int(row)].wasMissed = true
        leave(row)
        rest(row, until: time)
        return true
    }

    /// The next row that stands in a queue and has expired, or nil after `steps` rows; calls go
    /// round all rows. Without it a route that is not sent to for long would keep such rows.
    package mutating func nextExpired(now: MonotonicTime, steps: inout Int) -> UInt32? {
        while steps > 0, rows.count > 1 {
            steps -= 1
            sweepPosition = sweepPosition + 1 < rows.count ? sweepPosition + 1 : 1
            let row = rows[sweepPosition]
            if row.state == .ready, row.content.push.expiresAt <= now {
                return UInt32(sweepPosition)
            }
        }
        return nil
    }

    // MARK: Ends

    package mutating func remove(_ row: UInt32) {
        let number = Int(row)
        leave(row)
        countOwed(-1, rows[number])
        index.remove(
            hash: hash(rows[number].route, tokenBytes(of: row), rows[number].coalescingKey),
            row: row
        )
        tokens.free(rows[number].token, bytes: max(1, Int(rows[number].tokenBytes)))
        bodies.release(rows[number].content.push.body)
        rowsByClaim[Int(rows[number].claim.id.rawValue)] = 0
        overstatedRows.remove(row)
        rows[number].state = .free
        free.append(row)
    }

    /// Removes a row that has its own claim. Its tombstone was read, so none needs to be written.
    package mutating func forget(_ row: UInt32, _ tracker: inout OffsetTracker) {
        let claim = rows[Int(row)].claim
        precondition(!isTaken(row), "a row is forgotten only while no push has its claim")
        remove(row)
        tracker.release(claim)
        _ = tracker.takeEndedRows()
    }

    /// The partitions are no longer ours. Their rows are removed. Those that have their claim give it
    /// back; pushes that have the claim of one go on. It looks at every row once, however many
    /// partitions there are.
    package mutating func close(_ assignments: [AssignmentID], _ tracker: inout OffsetTracker) {
        let epochs = Set(assignments.map(\.epoch))
        for row in rows.indices
        where rows[row].state != .free && epochs.contains(rows[row].claim.epoch) {
            if rows[row].state != .taken { tracker.release(rows[row].claim) }
            remove(UInt32(row))
        }
    }

    // MARK: Inside

    private mutating func countOwed(_ count: Int, _ row: Row) {
        if row.content.isSent {
            sentCount += count
        } else {
            owedCounts[Int(row.route.rawValue)] += count
        }
    }

    /// Whether the row owes nothing and only keeps the time.
    mutating func setSent(_ row: UInt32, _ isSent: Bool) {
        countOwed(-1, rows[Int(row)])
        rows[Int(row)].content.isSent = isSent
        countOwed(1, rows[Int(row)])
    }

    /// The seeded hash of a key.
    package func hash(
        _ route: RouteID, _ token: UnsafeRawBufferPointer, _ coalescingKey: UInt64
    ) -> UInt64 {
        KeyHash(seed: seed).hash(route, token, coalescingKey)
    }

    /// Puts the row in the heap, until it expires at the latest, so that its end is not delayed.
    mutating func rest(_ row: UInt32, until time: MonotonicTime) {
        rows[Int(row)].state = .waiting
        waiting.insert(row, at: min(time, rows[Int(row)].content.push.expiresAt))
    }

    /// Puts a row before all others of its route.
    mutating func enqueueFirst(_ row: UInt32) {
        let route = Int(rows[Int(row)].route.rawValue)
        rows[Int(row)].state = .ready
        rows[Int(row)].previous = Self.none
        rows[Int(row)].next = ready[route].head
        if ready[route].head == Self.none {
            ready[route].tail = row
        } else {
            rows[Int(ready[route].head)].previous = row
        }
        ready[route].head = row
        readyCount += 1
    }

    mutating func enqueue(_ row: UInt32) {
        let route = Int(rows[Int(row)].route.rawValue)
        rows[Int(row)].state = .ready
        rows[Int(row)].next = Self.none
        rows[Int(row)].previous = ready[route].tail
        if ready[route].tail == Self.none {
            ready[route].head = row
        } else {
            rows[Int(ready[route].tail)].next = row
        }
        ready[route].tail = row
        readyCount += 1
    }

    /// Takes the row out of the heap or the queue that it stands in. A push that was announced and is
    /// not made must be announced again.
    mutating func leave(_ row: UInt32) {
        if rows[Int(row)].isAnnounced || rows[Int(row)].state == .announcing {
            announcedCounts[Int(rows[Int(row)].route.rawValue)] -= 1
            rows[Int(row)].isAnnounced = false
            rows[Int(row)].announcedUntil = Self.distantPast
        }
        if rows[Int(row)].isHeldBack {
            rows[Int(row)].isHeldBack = false
            heldBackCount -= 1
        }
        switch rows[Int(row)].state {
        case .waiting: waiting.remove(row)
        case .ready: leaveQueue(row)
        case .announcing: announcingCount -= 1
        case .taken: takenCount -= 1
        case .free, .replaying: break
        }
    }

    private mutating func leaveQueue(_ row: UInt32) {
        let route = Int(rows[Int(row)].route.rawValue)
        let (previous, next) = (rows[Int(row)].previous, rows[Int(row)].next)
        if previous == Self.none {
            ready[route].head = next
        } else {
            rows[Int(previous)].next = next
        }
        if next == Self.none {
            ready[route].tail = previous
        } else {
            rows[Int(next)].previous = previous
        }
        readyCount -= 1
    }
}

extension DeferredTable {
    /// Every claim that a row has for itself; for tests and simulation.
    package func forEachClaim(_ body: (OffsetClaim) -> Void) {
        for row in rows where row.state != .free && row.state != .taken { body(row.claim) }
    }

    package func checkInvariants() {
        var counts: [State: Int] = [:]
        var announced = announcedCounts.map { _ in 0 }
        var owed = announced
        var (sent, heldBack) = (0, 0)
        for number in 0..<rows.count {
            let row = rows[number]
            let route = Int(row.route.rawValue)
            counts[row.state, default: 0] += 1
            if row.isAnnounced || row.state == .announcing { announced[route] += 1 }
            guard row.state != .free else { continue }
            if row.content.isSent { sent += 1 } else { owed[route] += 1 }
            if row.isHeldBack { heldBack += 1 }
            precondition(
                self.row(of: row.claim) == UInt32(number),
                "the row that a claim names is the row that has it")
        }
        precondition(
            counts[.free, default: 0] == free.count + 1,
            "every free row but row 0 is on the list of free rows")
        precondition(
            counts[.waiting, default: 0] == waiting.count, "the heap has exactly the waiting rows")
        precondition(
            counts[.ready, default: 0] == readyCount,
            "the count of ready rows is that of the rows in that state")
        precondition(
            counts[.taken, default: 0] == takenCount,
            "the count of taken rows is that of the rows in that state")
        precondition(
            counts[.announcing, default: 0] == announcingCount,
            "the count of announcing rows is that of the rows in that state")
        precondition(
            overstatedRows.allSatisfy { rows[Int($0)].state != .free },
            "a row that is overstated is in use")
        precondition(
            announced == announcedCounts, "a route's count of announced pushes is that of its rows")
        precondition(
            sent == sentCount, "the count of rows that are sent is that of the rows so marked")
        precondition(
            heldBack == heldBackCount, "the count of rows held back is that of the rows so marked")
        precondition(
            owed == owedCounts, "a route's count of owed pushes is that of its rows not sent")
        precondition(index.count == count, "the index has each row once")
        waiting.checkInvariants()
        index.checkInvariants()
        bodies.checkInvariants()
    }
}
