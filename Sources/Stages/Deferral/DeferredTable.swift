// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
package import Ledger
package import Planning
package import PushModel

/// The partitions of `deferred` that are ours, as a table: one row for each key of each, whatever
/// the number of its records. One heap wakes the rows, and a queue per route holds those whose time has come.
///
/// Each row is a holder of the tracker with one claim while it waits. When it is taken the claim goes
/// to the push that is made of it; when the last claim is back the row has ended.
package struct DeferredTable: ~Copyable {
    package private(set) var bodies = BodyStore()
    private var rows: [Row] = []
    private var free: [UInt32] = []
    private var index = IndexTable()
    private var tokens = ByteArena()
    private var waiting = WakeHeap()
    private var ready: [Queue]
    /// By holder: which row it is.
    private var rowsByHolder: [UInt32] = []
    private var sweepPosition = 0
    private let seed: UInt64
    private let byAddress = PassedByAddress()

    private static let none = UInt32.max
    /// Instants in records are whole milliseconds, and are read by another's clock.
    private static let clockSlack = Duration.seconds(1)

    /// States:
    /// - `replaying`: its partition has not been read to its end, so its end may follow. Can
    ///   transition to: `waiting`, gone.
    /// - `waiting`: in the heap. Can transition to: `ready`, gone.
    /// - `ready`: in its route's queue. Can transition to: `taken`, `waiting`, gone.
    /// - `taken`: a push has its claim. Can transition to: `waiting` (put back, or written anew by
    ///   another worker meanwhile), gone.
    private enum State: UInt8 { case free, replaying, waiting, ready, taken }

    private struct Row {
        var content: DeferredContent
        let hold: Hold
        /// Of the latest record that was not written again.
        var offset: Int64
        let coalescingKey: UInt64
        let token: ByteArena.Reference
        let tokenBytes: UInt16
        let route: RouteID
        /// Where its record stands, and where what ends it must stand: since the topic was given more
        /// partitions the key may lead to another one, and the record would be sent by each replay.
        let partition: Int32
        var state = State.replaying
        /// The operator ended it while a push had its claim.
        var isRevoked = false
        /// Kafka's latest record of the key does not say what is owed.
        var needsRewrite = false
        /// Records that wrote it again and are still to be read.
        var unreadRewrites: UInt8 = 0
        /// It was due once when no registration had its token.
        var wasMissed = false
        var next = none
        var previous = none
    }

    private struct Queue {
        var head = none
        var tail = none
    }

    package init(routes: Int, seed: UInt64) {
        ready = Array(repeating: Queue(), count: routes)
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
                hold: Hold(epoch: 0, holder: HolderID(rawValue: .max), offset: 0),
                offset: 0, coalescingKey: 0, token: 0, tokenBytes: 0, route: RouteID(rawValue: 0),
                partition: 0, state: .free))
    }

    package var count: Int { rows.count - 1 - free.count }
    /// Rows whose claim a push has.
    package private(set) var takenCount = 0
    package private(set) var readyCount = 0
    package var nextDue: MonotonicTime { waiting.nextDue }

    // MARK: One row

    package func content(of row: UInt32) -> DeferredContent { rows[Int(row)].content }
    package func route(of row: UInt32) -> RouteID { rows[Int(row)].route }
    package func coalescingKey(of row: UInt32) -> UInt64 { rows[Int(row)].coalescingKey }
    package func hold(of row: UInt32) -> Hold { rows[Int(row)].hold }
    package func partition(of row: UInt32) -> Int32 { rows[Int(row)].partition }
    package func offset(of row: UInt32) -> Int64 { rows[Int(row)].offset }
    package func isTaken(_ row: UInt32) -> Bool { rows[Int(row)].state == .taken }

    /// When the event that brought its payload was read; it has one.
    package func payloadReadAt(of row: UInt32) -> WallTime {
        bodies.readAt(rows[Int(row)].content.push.body)
    }

    package func payloadAge(of row: UInt32) -> BodyAge {
        bodies.age(of: rows[Int(row)].content.push.body, sequence: 0)
    }

    package func tokenBytes(of row: UInt32) -> UnsafeRawBufferPointer {
        tokens.bytes(rows[Int(row)].token, offset: 0, count: Int(rows[Int(row)].tokenBytes))
    }

    /// The row of this key in the partition of this assignment: offsets of two partitions say nothing
    /// of each other, and a topic that was given more of them has some keys in two.
    package func row(
        route: RouteID, token: UnsafeRawBufferPointer, coalescingKey: UInt64,
        assignment: AssignmentID
    ) -> UInt32? {
        index.row(hash: hash(route, token, coalescingKey)) { row in
            rows[Int(row)].route == route && rows[Int(row)].coalescingKey == coalescingKey
                && rows[Int(row)].hold.epoch == assignment.epoch
                && tokenBytes(of: row).elementsEqual(token)
        }
    }

    /// The rows of this key in all partitions that are ours.
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

    /// The row whose holder this is; nil when it is gone.
    package func row(of hold: Hold) -> UInt32? {
        let holder = Int(hold.holder.rawValue)
        guard holder < rowsByHolder.count, rowsByHolder[holder] != 0 else { return nil }
        let row = rowsByHolder[holder]
        return rows[Int(row)].hold == hold ? row : nil
    }

    // MARK: Records are read

    /// A body's bytes stay until the row's content is replaced or the row is gone.
    package mutating func keep(
        _ body: [UInt8], collapseID: [UInt8], readAt: WallTime, knownSince: UInt64,
        origin: RecordPosition?
    ) -> BodyID {
        bodies.insert(
            body, collapseID: collapseID, readAt: readAt, knownSince: knownSince, origin: origin)
    }

    /// The first record of its key: the row holds the offset of the record.
    /// - Parameters:
    ///   - partition: that of the assignment.
    ///   - offset: where the record stands.
    ///   - saidAt: where what it says was first said.
    ///   - isActive: its partition has been read to the end; until then no row does anything.
    package mutating func insert(
        _ content: DeferredContent, route: RouteID, token: UnsafeRawBufferPointer,
        coalescingKey: UInt64, assignment: AssignmentID, partition: Int32, offset: Int64,
        saidAt: Int64, isActive: Bool, _ tracker: inout OffsetTracker
    ) -> UInt32 {
        let hold = tracker.holdRow(assignment, offset: offset)
        let reference = tokens.allocate(bytes: max(1, token.count))
        tokens.write(token, to: reference, offset: 0)
        let row = Row(
            content: content, hold: hold, offset: saidAt, coalescingKey: coalescingKey,
            token: reference, tokenBytes: UInt16(token.count), route: route,
            partition: partition)
        let number: UInt32
        if let reused = free.popLast() {
            number = reused
            rows[Int(reused)] = row
        } else {
            number = UInt32(rows.count)
            rows.append(row)
        }
        let holder = Int(hold.holder.rawValue)
        while rowsByHolder.count <= holder { rowsByHolder.append(0) }
        rowsByHolder[holder] = number
        index.insert(hash: hash(route, token, coalescingKey), row: number)
        if isActive { rest(number, until: content.push.notBefore) }
        return number
    }

    /// A later record of a key: it says what is owed now, but for the latest expiry and the newest
    /// payload, which stay. One that was written again says what the row knows: it asks for nothing.
    /// - Returns: whether the record says less than is owed, so that whoever replays the topic would
    ///   know only that: it must be written again.
    package mutating func replace(
        _ row: UInt32, with content: DeferredContent, saidAt: Int64, isActive: Bool,
        _ tracker: inout OffsetTracker
    ) -> Bool {
        let number = Int(row)
        var content = content
        let known = rows[number].content.push
        var isNarrower = known.expiresAt > content.push.expiresAt + Self.clockSlack
        content.push.expiresAt = max(content.push.expiresAt, known.expiresAt)
        if content.push.body != .none, bodies.readAt(known.body) > bodies.readAt(content.push.body)
        {
            bodies.release(content.push.body)
            content.push.body = known.body
            content.push.type = known.type
            isNarrower = true
        } else {
            bodies.release(known.body)
        }
        let isKnown = saidAt <= rows[number].offset && !rows[number].isRevoked
        if isKnown, rows[number].unreadRewrites > 0 { rows[number].unreadRewrites -= 1 }
        rows[number].needsRewrite = isNarrower
        if isKnown {
            rows[number].content.push.expiresAt = content.push.expiresAt
            rows[number].content.push.body = content.push.body
            rows[number].content.push.type = content.push.type
            return isNarrower
        }
        // A push has the row's claim: the row needs one of its own again.
        if rows[number].state == .taken { tracker.retain(rows[number].hold) }
        leave(row)
        rows[number].content = content
        rows[number].offset = max(saidAt, rows[number].offset)
        rows[number].isRevoked = false
        if isActive {
            rest(row, until: content.push.notBefore)
        } else {
            rows[number].state = .replaying
        }
        return isNarrower
    }

    /// The row's record is hidden by the tombstone of an older one. Once its partition has been
    /// read to the end, and no later record has come, it must be rewritten.
    package mutating func hide(_ row: UInt32) { rows[Int(row)].needsRewrite = true }

    /// The record has been written again.
    package mutating func rewritten(_ row: UInt32) {
        rows[Int(row)].needsRewrite = false
        if rows[Int(row)].unreadRewrites < .max { rows[Int(row)].unreadRewrites += 1 }
    }

    /// Whether a record that wrote it again is still to be read.
    package func hasUnreadRewrites(_ row: UInt32) -> Bool { rows[Int(row)].unreadRewrites > 0 }

    /// The partition has been read to its end: rows of it begin to wait.
    /// - Parameter body: is given the rows whose record must be written again.
    package mutating func activate(_ assignment: AssignmentID, _ body: (UInt32) -> Void) {
        for row in rows.indices
        where rows[row].state == .replaying && rows[row].hold.epoch == assignment.epoch {
            rest(UInt32(row), until: rows[row].content.push.notBefore)
            if rows[row].needsRewrite { body(UInt32(row)) }
        }
    }

    /// The row was ended by somebody else. A push that has its claim goes on; nothing follows it.
    package mutating func revoke(_ row: UInt32) {
        precondition(isTaken(row), "a row that has its claim is removed instead")
        rows[Int(row)].isRevoked = true
    }

    package func isRevoked(_ row: UInt32) -> Bool { rows[Int(row)].isRevoked }

    // MARK: Time passes

    /// Rows whose time has come join their routes' queues, at most `limit` of them.
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

    /// Its claim goes to a push.
    package mutating func take(_ row: UInt32) {
        leave(row)
        takenCount += 1
        rows[Int(row)].state = .taken
    }

    /// What the row asks for is over, unsent: its claim goes back, and with the last one the row ends.
    package mutating func drop(_ row: UInt32, _ tracker: inout OffsetTracker) {
        let hold = rows[Int(row)].hold
        take(row)
        tracker.release(hold)
    }

    /// The row waits again, and has its claim.
    package mutating func putBack(_ row: UInt32, notBefore: MonotonicTime, attempts: UInt16) {
        leave(row)
        rows[Int(row)].content.past.attempts = attempts
        rest(row, until: notBefore)
    }

    /// The row's time has come, and it waits for longer.
    package mutating func postpone(_ row: UInt32, until time: MonotonicTime) {
        leave(row)
        rest(row, until: time)
    }

    /// No registration has its token: true the first time, and it waits again.
    package mutating func miss(_ row: UInt32, until time: MonotonicTime) -> Bool {
        if rows[Int(row)].wasMissed { return false }
        rows[Int(row)].wasMissed = true
        leave(row)
        rest(row, until: time)
        return true
    }

    /// Of the next `steps` rows, going round, calls `body` with those that stand in a queue and have
    /// expired. A route that is not sent to for long would keep them.
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
        index.remove(
            hash: hash(rows[number].route, tokenBytes(of: row), rows[number].coalescingKey),
            row: row
        )
        tokens.free(rows[number].token, bytes: max(1, Int(rows[number].tokenBytes)))
        bodies.release(rows[number].content.push.body)
        rowsByHolder[Int(rows[number].hold.holder.rawValue)] = 0
        rows[number].state = .free
        free.append(row)
    }

    /// The row that has its claim is gone, and Kafka knows: its tombstone was read.
    package mutating func forget(_ row: UInt32, _ tracker: inout OffsetTracker) {
        let hold = rows[Int(row)].hold
        precondition(!isTaken(row), "a push has the claim")
        remove(row)
        tracker.release(hold)
        _ = tracker.takeEndedRows()
    }

    /// The partition is no longer ours. Rows that no push has are removed and give their claims back;
    /// of the others the pushes go on.
    package mutating func close(_ assignment: AssignmentID, _ tracker: inout OffsetTracker) {
        for row in rows.indices
        where rows[row].state != .free && rows[row].hold.epoch == assignment.epoch {
            if rows[row].state != .taken { tracker.release(rows[row].hold) }
            remove(UInt32(row))
        }
    }

    // MARK: Inside

    /// Of a key, seeded.
    package func hash(
        _ route: RouteID, _ token: UnsafeRawBufferPointer, _ coalescingKey: UInt64
    ) -> UInt64 {
        var hash = StableHash(seed: seed &+ UInt64(route.rawValue))
        hash.combine(coalescingKey)
        hash.combine(token)
        return hash.finish().low
    }

    /// Until it expires at the latest, so that its end is not put off.
    private mutating func rest(_ row: UInt32, until time: MonotonicTime) {
        rows[Int(row)].state = .waiting
        waiting.insert(row, at: min(time, rows[Int(row)].content.push.expiresAt))
    }

    private mutating func enqueue(_ row: UInt32) {
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

    /// Leaves the heap or the queue it stands in.
    private mutating func leave(_ row: UInt32) {
        switch rows[Int(row)].state {
        case .waiting: waiting.remove(row)
        case .ready: leaveQueue(row)
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
    package func forEachHold(_ body: (Hold) -> Void) {
        for row in rows where row.state != .free && row.state != .taken { body(row.hold) }
    }

    package func checkInvariants() {
        var counts: [State: Int] = [:]
        for row in rows { counts[row.state, default: 0] += 1 }
        precondition(counts[.free, default: 0] == free.count + 1, "a free row is not on the list")
        precondition(counts[.waiting, default: 0] == waiting.count, "the waiting rows miscount")
        precondition(counts[.ready, default: 0] == readyCount, "the ready rows miscount")
        precondition(counts[.taken, default: 0] == takenCount, "the taken rows miscount")
        precondition(index.count == count, "the index miscounts")
        waiting.checkInvariants()
        index.checkInvariants()
        bodies.checkInvariants()
        for (number, row) in rows.enumerated() where row.state != .free {
            precondition(self.row(of: row.hold) == UInt32(number), "a holder names another row")
        }
    }
}
