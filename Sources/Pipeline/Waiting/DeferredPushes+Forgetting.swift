// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Deferral
internal import Delivery
internal import Ledger
internal import Planning
internal import PushModel
internal import RecordFormats

/// What waits in `deferred` and does not fit into memory stays in Kafka, and is read again when there
/// is room and its route may be sent. Rows of a route that may not be sent make room for others, so
/// that no push stands behind one that is paused or refused.
///
/// To forget rows and to read them again is for their route what another owner of the partition would
/// mean: each row is made anew of its records, and of none after which its push has ended here.
extension DeferredPushes {
    // MARK: Room

    /// Whether one more row of this route that owes a push may be made. Others may have to go.
    mutating func makeRoom(
        for route: RouteID, _ state: inout PipelineState,
        now: Now
    ) -> Bool {
        let isBlocked = Self.isBlocked(route, state)
        // What a breaker is probed with is there, however full the table is.
        if isBlocked, table.owedCount(of: route) < HoldWatch.probesKept { return true }
        if hasRoomForRecords(state) { return true }
        guard !isBlocked, makesRoomAt <= now.monotonic else { return false }
        guard let victim = victim(for: route, state) else { return false }
        let hasForgotten = forgetRows(of: victim, &state)
        if !hasForgotten { makesRoomAt = now.monotonic + .seconds(1) }
        return hasRoomForRecords(state)
    }

    /// The route whose rows make room: of those that may not be sent the one that has most; else one
    /// that has more than twice as many as the other.
    private func victim(
        for route: RouteID, _ state: borrowing PipelineState
    ) -> RouteID? {
        var blocked: RouteID?
        var largest = route
        for index in state.routes.indices {
            let other = RouteID(rawValue: UInt16(index))
            let count = table.owedCount(of: other)
            if count > table.owedCount(of: largest) { largest = other }
            if count > HoldWatch.probesKept, Self.isBlocked(other, state),
                blocked.map({ count > table.owedCount(of: $0) }) ?? true
            {
                blocked = other
            }
        }
        if let blocked { return blocked }
        let isLarger = table.owedCount(of: largest) > 2 * (table.owedCount(of: route) + 1)
        return isLarger ? largest : nil
    }

    private mutating func forgetRows(
        of route: RouteID, _ state: inout PipelineState
    ) -> Bool {
        var forgotten: [(partition: Int32, offset: Int64)] = []
        let bounds = DeferredTable.Bounds(
            keeping: state.breakers.areClosed(route) ? 0 : HoldWatch.probesKept,
            owedMax: Self.relaxed(rowsOwedMax(state)),
            bytesMax: Self.relaxed(state.settings.sizes.deferredBytesMax))
        let hasForgotten = table.forget(route, until: bounds, &state.tracker) {
            forgotten.append(($0, $1))
        }
        state.counters.deferredForgotten += forgotten.count
        for (partition, offset) in forgotten {
            guard let id = assignments.assignment(ofPartition: partition) else { continue }
            self.forgotten.forget(id, route, offset: offset)
        }
        return hasForgotten
    }

    private static func isBlocked(
        _ route: RouteID, _ state: borrowing PipelineState
    ) -> Bool {
        !state.breakers.isClosed(route) && !state.breakers.isDropping(route)
    }

    /// No row is made of the record, which stays in Kafka.
    mutating func leave(
        _ record: DeferredRecord, of id: AssignmentID, _ state: inout PipelineState
    ) {
        state.counters.deferredForgotten += 1
        forgotten.forget(id, tokenKey.route, offset: record.offset)
    }

    /// Whether a record that was just read is left to be read again, with all others of its key.
    /// - Parameter row: the row of its key.
    mutating func isLeft(
        _ record: DeferredRecord, _ row: UInt32?, of id: AssignmentID, _ state: inout PipelineState
    ) -> Bool {
        let route = tokenKey.route
        guard !forgotten.isEmpty, forgotten.contains(id, route) else { return false }
        let isReplayed = assignments.isReplayed(id)
        if let row, !isReplayed || !table.isReplaying(row) { return false }
        if record.value == nil {
            // Not when it is read again, which may be more than once.
            if record.isDropped, isReplayed, let type = typeOfKey(state) {
                state.endUnqueued(.dropped, route, type)
            }
        } else if !forgotten.isReread(id, route, at: record.offset) {
            leave(record, of: id, &state)
        }
        return true
    }

    /// The type of a push of `tokenKey`, as far as its key tells.
    private func typeOfKey(_ state: borrowing PipelineState) -> PushType? {
        let tokenClass = state.routing[tokenKey.route].tokenClass
        if tokenKey.coalescingKey == 0 { return tokenClass.changeType }
        return PushType.allTypes.first {
            $0.classes.contains(tokenClass) && $0.row.carriesPayload
        }
    }

    // MARK: Reading again

    /// For how long Kafka may send nothing of a partition that is read again.
    private static var readingPatience: Duration { .seconds(30) }

    /// Begins to read a partition again, or gives that up.
    mutating func planReading(
        _ state: inout PipelineState,
        now: Now
    ) {
        if let reading {
            // A partition without a leader must not keep what is left of the others.
            let isStalled = now.monotonic - reading.movedAt >= Self.readingPatience
            if isStalled { readsAgainAt = now.monotonic + .seconds(1) }
            for route in reading.routes
            where isStalled || state.drain != nil || !mayRead(route, state, now: now) {
                giveUpReading(route, &state)
            }
            return endReadingIfOver(&state, now: now)
        }
        guard !forgotten.isEmpty, state.drain == nil, readsAgainAt <= now.monotonic else { return }
        readsAgainAt = now.monotonic + .milliseconds(50)
        let open = assignments.open.filter { assignments.isReplayed($0) }
        let later = open.filter { $0.ordinal > lastReread }
        for id in later + open.filter({ $0.ordinal <= lastReread }) {
            let routes = forgotten.routes(of: id).filter {
                isWanted($0, state, now: now)
            }
            guard !routes.isEmpty else { continue }
            return beginReading(id, routes, &state, now: now)
        }
    }

    /// When `planReading` next has something to do without a further fact.
    func nextReading(now: MonotonicTime) -> MonotonicTime? {
        if let reading { return reading.movedAt + Self.readingPatience }
        return forgotten.isEmpty || readsAgainAt <= now ? nil : readsAgainAt
    }

    private func mayRead(
        _ route: RouteID, _ state: borrowing PipelineState, now: Now
    ) -> Bool {
        !Self.isBlocked(route, state) || !state.breakers.isBlocking(route, now: now.monotonic)
    }

    /// Whether the route's rows may be sent, and there is much room for them or nothing else of it:
    /// each reading reads all that stands behind the first.
    private func isWanted(
        _ route: RouteID, _ state: borrowing PipelineState,
        now: Now
    ) -> Bool {
        guard mayRead(route, state, now: now) else { return false }
        if Self.isBlocked(route, state) || table.owedCount(of: route) == 0 {
            return table.owedCount(of: route) == 0
        }
        return rowsOwed <= rowsOwedMax(state) / 2
            && table.bodies.bytes <= state.settings.sizes.deferredBytesMax / 2
    }

    private mutating func beginReading(
        _ id: AssignmentID, _ routes: [RouteID], _ state: inout PipelineState, now: Now
    ) {
        readings += 1
        lastReread = id.ordinal
        let first = routes.compactMap { forgotten.first(of: id, $0) }.min()!
        for route in routes { forgotten.beginReading(id, route) }
        reading = Reading(
            reread: DeferredReading(
                number: readings, partition: assignments.partition(of: id), offset: first),
            id: id, routes: routes, position: first, movedAt: now.monotonic)
        state.counters.deferredReadings += 1
    }

    /// A record of the partition that is read again. It is passed over unless it is of what was
    /// forgotten.
    mutating func readAgain(
        _ record: DeferredRecord, _ state: inout PipelineState, now: Now
    ) throws(UnreadableRecord) {
        guard let id = reading?.id else { return }
        // What was not read for the first time is not read again.
        guard record.offset < assignments.nextOffset(of: id) else {
            return readAgain(upTo: record.offset, &state, now: now)
        }
        defer { readAgain(upTo: record.offset + 1, &state, now: now) }
        endRows(&state)
        let push = try decoder.deferred(key: record.key, value: record.value, into: &tokenKey)
        let route = tokenKey.route
        guard forgotten.isReread(id, route, at: record.offset) else { return }
        let row = rowOfKey(id)
        // A row that stayed in memory knows all records of its key.
        if let row, !table.isReplaying(row) { return }
        guard let push else {
            if let row {
                ended(row, by: record, isActive: false, &state, now: now)
            }
            return
        }
        // Its push has ended here, and the tombstone is on its way.
        if unreadRewrites.isEnded(hashOfKey, of: id, saidAt: record.saidAt) { return }
        if row == nil {
            // While a breaker is not closed only what it is probed with is read.
            let isEnough =
                Self.isBlocked(route, state)
                && table.owedCount(of: route) >= HoldWatch.probesKept
            guard forgotten.makesRows(id, route), !isEnough,
                makeRoom(for: route, &state, now: now)
            else { return forgotten.forget(id, route, offset: record.offset) }
        }
        state.countRead()
        let made = try keep(
            push, RowReading(row: row, id: id, record: record, isActive: false), &state, now: now)
        if row == nil, let made { reading?.rows.append(made) }
    }

    /// The partition was read again up to this offset.
    mutating func readAgain(
        upTo offset: Int64, _ state: inout PipelineState, now: Now
    ) {
        guard let reading else { return }
        if offset > reading.position {
            self.reading!.position = offset
            self.reading!.movedAt = now.monotonic
        }
        endReadingIfOver(&state, now: now)
    }

    /// What was read again begins to wait as soon as nothing more is known of it.
    private mutating func endReadingIfOver(
        _ state: inout PipelineState, now: Now
    ) {
        guard let reading, reading.position >= assignments.nextOffset(of: reading.id) else {
            return
        }
        self.reading = nil
        // A reading that has found no room is not repeated at once.
        if reading.rows.isEmpty { readsAgainAt = now.monotonic + .seconds(1) }
        endRows(&state)
        for route in reading.routes { forgotten.endReading(reading.id, route) }
        for row in reading.rows where table.activateReread(row, of: reading.id) {
            rewrite(row, &state, now: now)
        }
    }

    /// What was made of the route's records is forgotten again.
    private mutating func giveUpReading(
        _ route: RouteID, _ state: inout PipelineState
    ) {
        guard let reading else { return }
        endRows(&state)
        forgotten.giveUpReading(reading.id, route)
        for row in reading.rows where table.route(of: row) == route {
            table.forgetReread(row, of: reading.id, &state.tracker)
        }
        self.reading!.routes.removeAll { $0 == route }
        if self.reading!.routes.isEmpty { self.reading = nil }
    }
}

/// A partition of `deferred` that is to be read once more, beside the group, up to where it has been
/// read.
package struct DeferredReading: Sendable, Equatable {
    /// Counts them.
    package let number: Int
    package let partition: Int32
    /// Where to begin.
    package let offset: Int64
}

/// A reading that is under way.
struct Reading {
    let reread: DeferredReading
    let id: AssignmentID
    /// Whose rows it brings back.
    var routes: [RouteID]
    var position: Int64
    /// When a record was read last.
    var movedAt: MonotonicTime
    /// The rows that were made of it; some may be gone.
    var rows: [UInt32] = []
}
