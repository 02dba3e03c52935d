// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Deferral
internal import Delivery
internal import FlatMemory
internal import Intake
internal import Ledger
internal import Planning
package import PushModel
internal import RecordFormats

/// Pushes that wait in the compacted topic `deferred`. This worker defers what would hold an offset
/// for too long, and is the owner of the partitions that are assigned to it: it replays them as a
/// table, lets their pushes wait, sends them, and writes tombstones.
///
/// Writers know nothing of each other, so a record may be written after the owner has read the
/// partition and before its tombstone is written. The tombstone therefore names the offset up to
/// which it holds. A later record that it hides is written again, as is a record whose successor
/// says less. Kafka must keep hidden records until then: `min.compaction.lag.ms`.
struct DeferredPushes: ~Copyable {
    var table: DeferredTable
    /// Which payloads are no longer to be sent.
    /// Tombstones for payloads in other workers' partitions for which there is no room yet.
    var ends: PayloadEnds
    var unreadRewrites = UnreadRewrites()
    /// What there was no room for.
    var forgotten = ForgottenRows()
    /// The partition that is read again at the moment.
    var reading: Reading?
    /// How many times partitions were read again, and which was last.
    var readings = 0
    var lastReread: UInt32 = 0
    var readsAgainAt = MonotonicTime(nanoseconds: .min)
    /// When rows may be forgotten again, after none could be.
    var makesRoomAt = MonotonicTime(nanoseconds: .min)
    var holdWatch = HoldWatch()
    var roomWaits = RoomWaits()

    var decoder: TokenRecordDecoder
    /// The key of the record that was decoded last.
    var tokenKey = TokenKey()
    private(set) var assignments = DeferredAssignments()
    /// The route whose pushes are looked at first.
    var turn = 0
    var sweepAt = MonotonicTime(nanoseconds: .min)
    var announcements = AnnouncementWindow()
    var marks = ReadMarks()
    private let byAddress = PassedByAddress()

    init(routing: RoutingTable, settings: PipelineSettings) {
        table = DeferredTable(routes: routing.routes.count, seed: settings.seed)
        ends = PayloadEnds(bytesMax: settings.sizes.payloadOrderBytesMax)
        decoder = TokenRecordDecoder(routing: routing)
    }

    /// Whether one more row may be made that owes a push.
    func hasRoomForRecords(_ state: borrowing PipelineState) -> Bool {
        rowsOwed < rowsOwedMax(state) && table.bodies.bytes < state.settings.sizes.deferredBytesMax
    }

    /// The rows whose push is owed. The others are bounded where they are made.
    var rowsOwed: Int { table.count - table.sentCount }

    func rowsOwedMax(_ state: borrowing PipelineState) -> Int { state.settings.live.deferredMax }

    /// The most of a bound that is in use after rows have made room. Of a bound below 16 one row is
    /// free.
    static func relaxed(_ bound: Int) -> Int { bound - max(1, bound / 16) }

    /// How many payloads this worker has forgotten, so that a newer one will not end them.

    // MARK: Partitions

    /// This partition of `deferred` is ours. None of its pushes is sent before it is `replayed`.
    mutating func assigned(
        _ id: AssignmentID, partition: Int32, _ tracker: inout OffsetTracker
    ) {
        tracker.openTable(id, partition: partition)
        assignments.open(id, partition: partition)
    }

    /// The partition has been read to its end.
    mutating func replayed(
        _ id: AssignmentID, _ state: inout PipelineState, now: Now
    ) {
        guard !assignments.isReplayed(id) else { return }
        assignments.replayed(id)
        var hidden: [UInt32] = []
        table.activate(id) { hidden.append($0) }
        for row in hidden { rewrite(row, &state, now: now) }
    }

    /// The partitions are no longer ours. Pushes of their rows that are under way are still sent.
    mutating func unassigned(
        _ ids: [AssignmentID], _ state: inout PipelineState
    ) {
        endRows(&state)
        table.close(ids, &state.tracker)
        for id in ids {
            if reading?.id == id { reading = nil }
            forgotten.close(id)
            assignments.close(id)
            unreadRewrites.close(id)
            marks.close(id.epoch)
            state.tracker.close(id)
        }
    }

    // MARK: Records are read

    /// A record of `deferred` was read.
    mutating func read(
        _ record: DeferredRecord, of id: AssignmentID, _ state: inout PipelineState, now: Now
    ) throws(UnreadableRecord) {
        precondition(
            assignments.isOpen(id), "a record that is read is of a partition that is ours: \(id)")
        endRows(&state)
        state.countRead()
        assignments.received(id, offset: record.offset)
        let push = try decoder.deferred(key: record.key, value: record.value, into: &tokenKey)
        let row = rowOfKey(id)
        if !unreadRewrites.isEmpty, isOfEndedRow(record, of: id) { return }
        if push == nil, let readAt = record.endedPayloadAt {
            acceptedElsewhere(readAt: readAt, &state, now: now)
        }
        // A row is made of a record that a tombstone of this worker is about to hide: it must be
        // written again before Kafka compacts it away.
        let isHidden =
            push != nil && row == nil && !unreadRewrites.isEmpty
            && unreadRewrites.contains(hashOfKey, of: id)
        if !isHidden, isLeft(record, row, of: id, &state) { return }
        let isActive = assignments.isReplayed(id)
        guard let push else {
            if let row {
                ended(row, by: record, isActive: isActive, &state, now: now)
            }
            return
        }
        if row == nil, !isHidden, !push.isSent || push.payload != nil,
            !makeRoom(for: tokenKey.route, &state, now: now)
        {
            return leave(record, of: id, &state)
        }
        let reading = RowReading(row: row, id: id, record: record, isActive: isActive)
        _ = try keep(push, reading, &state, now: now)
    }

    /// Whether the record is a rewrite of a row that has ended here since. A tombstone says that no
    /// more such records follow.
    private mutating func isOfEndedRow(_ record: DeferredRecord, of id: AssignmentID) -> Bool {
        if record.value == nil {
            unreadRewrites.tombstoneRead(
                hashOfKey, of: id, upTo: record.endedOffset ?? record.offset)
            return false
        }
        return record.endedOffset.map { unreadRewrites.isEnded(hashOfKey, of: id, saidAt: $0) }
            ?? false
    }

    /// The hash of `tokenKey`.
    var hashOfKey: UInt64 {
        tokenKey.token.withUnsafeBytes { token in
            table.hash(tokenKey.route, token, tokenKey.coalescingKey)
        }
    }

    /// The row of `tokenKey` in this partition.
    func rowOfKey(_ id: AssignmentID) -> UInt32? {
        tokenKey.token.withUnsafeBytes { token in
            table.row(
                route: tokenKey.route, token: token, coalescingKey: tokenKey.coalescingKey,
                assignment: id)
        }
    }

    /// A record that is read, and the row of its key.
    struct RowReading {
        /// Nil where there is none yet.
        let row: UInt32?
        let id: AssignmentID
        let record: DeferredRecord
        /// Whether its partition has been read to the end, and is not read again.
        let isActive: Bool
    }

    /// Takes over what the record says.
    /// - Returns: the row that was made, if there was none.
    mutating func keep(
        _ push: DeferredPush, _ reading: RowReading, _ state: inout PipelineState, now: Now
    ) throws(UnreadableRecord) -> UInt32? {
        let (record, isActive) = (reading.record, reading.isActive)
        var content = try content(of: push, record, &state, now: now)
        state.witness.look(now: now)
        if let sourceAt = push.sourceAt { state.witness.read(sourceAt, now: now) }
        if let payload = push.payload {
            content.push.body = table.keep(
                payload, collapseID: Array((push.collapseID ?? "").utf8),
                readAt: push.payloadAt ?? WallTime(milliseconds: 0), knownSince: state.sequence,
                origin: (push.payloadSource ?? push.source).flatMap { state.position($0) })
            let subject = push.subjectOfPayload
            if let installation = push.installation {
                table.add(.installation, Array(installation.utf8), to: content.push.body)
            } else if !subject.isEmpty {
                table.add(.subject, subject, to: content.push.body)
            }
        }
        let saidAt = record.saidAt
        if content.isSent, hasNoRoomForGap(of: reading.row, saidAt: saidAt, state) {
            state.counters.gapsForgotten += 1
            if let row = reading.row { table.forget(row, &state.tracker) }
            return nil
        }
        let place = DeferredTable.Place(
            reading.id, partition: assignments.partition(of: reading.id), offset: record.offset,
            saidAt: saidAt, isActive: isActive)
        if let row = reading.row {
            let needsRewrite = table.replace(
                row, with: content, at: place, isRewrite: record.endedOffset != nil, &state.tracker)
            if record.endedOffset != nil, !table.hasUnreadRewrites(row) {
                marks.read(table.claim(of: row), saidAt: saidAt)
            }
            let isSilent = push.lastSentAt == nil && mustSayWhenSent(row, state, now: now)
            // Once its partition has been read to the end.
            if isSilent, !isActive { table.hide(row) }
            if needsRewrite || isSilent && hasRoom(state), isActive {
                rewrite(row, &state, now: now)
            }
            endIfSuperseded(row, &state)
            return nil
        } else {
            let row = tokenKey.token.withUnsafeBytes { token in
                table.insert(
                    content,
                    of: DeferredTable.Key(
                        route: tokenKey.route, token: token, coalescingKey: tokenKey.coalescingKey),
                    at: place, &state.tracker)
            }
            endIfSuperseded(row, &state)
            return row
        }
    }

    /// Whether a record that owes nothing would be one too many: what another worker's tokens keep
    /// for their gaps must not keep what is owed from being read. The record stays in Kafka until the
    /// token is sent another push, or the partition has another owner.
    private func hasNoRoomForGap(
        of row: UInt32?, saidAt: Int64, _ state: borrowing PipelineState
    ) -> Bool {
        guard table.sentCount >= state.settings.live.deferredMax else { return false }
        return row.map { table.isAnswered($0, saidAt: saidAt) } ?? true
    }

    private func content(
        of push: DeferredPush, _ record: DeferredRecord, _ state: inout PipelineState, now: Now
    ) throws(UnreadableRecord) -> DeferredContent {
        let route = state.routing[tokenKey.route]
        guard let type = push.payload?.type ?? route.tokenClass.changeType,
            type.classes.contains(route.tokenClass), push.payload == nil || type.row.carriesPayload
        else {
            throw UnreadableRecord(
                code: "invalidPayload", message: "this class of token is not sent such a push")
        }
        let list = push.subject.withUnsafeBytes { bytes in
            state.audience.subject(route.app, bytes).map { id in
                (id, state.audience.hash(route.app, bytes, .subject))
            }
        }
        var content = PushContent(
            type: type, priority: push.priority ?? state.settings.live.wire.priority(type),
            expiration: push.expiration ?? state.settings.live.wire.expiration(type),
            expiresAt: now.monotonic(at: push.expiresAt),
            origin: push.source.flatMap { state.position($0) }, readSequence: state.sequence,
            subject: list?.0 ?? .none, subjectTag: UInt32(truncatingIfNeeded: list?.1 ?? 0))
        content.writtenAt = push.sourceAt ?? WallTime(milliseconds: 0)
        content.notBefore = record.instant(push.notBefore, now: now)
        var deferred = DeferredContent(
            content,
            past: PushRequest.Past(
                attempts: UInt16(min(push.attempts, state.settings.live.attemptsMax)),
                firstTriedAt: push.firstAt.map { now.monotonic(at: $0) }))
        noteSent(push, of: record, in: &deferred, state, now: now)
        return deferred
    }

    /// A tombstone was read for this row's key.
    mutating func ended(
        _ row: UInt32, by record: DeferredRecord, isActive: Bool, _ state: inout PipelineState,
        now: Now
    ) {
        // A payload that is newer than the accepted one is still owed, like a record that a
        // tombstone hides.
        let isNewer =
            table.coalescingKey(of: row) != 0
            && record.endedPayloadAt.map { table.payloadReadAt(of: row) > $0 } ?? false
        if isNewer || table.offset(of: row) > record.endedOffset ?? record.offset {
            // The record was written after the owner's reading and before its tombstone, which
            // hides the record from the next owner.
            table.hide(row)
            if isActive { rewrite(row, &state, now: now) }
        } else if table.isTaken(row) {
            table.revoke(row)
        } else {
            // A replay reads the tombstones of earlier days.
            if record.isDropped, isActive, !table.content(of: row).isSent {
                countEnd(.dropped, of: row, &state)
            }
            if isActive, table.hasUnreadRewrites(row) {
                // A rewrite comes behind this tombstone, and another one must end it.
                table.drop(row, &state.tracker)
                endRows(&state)
            } else {
                table.forget(row, &state.tracker)
            }
        }
    }
}

/// A record of `deferred`, as Kafka has it.
package struct DeferredRecord {
    var offset: Int64
    var key: UnsafeRawBufferPointer?
    var value: UnsafeRawBufferPointer?
    /// The header `DeferredPush.endedHeader`.
    var endedOffset: Int64?
    /// The header `DeferredPush.endedPayloadHeader`.
    var endedPayloadAt: WallTime?
    /// Whether there is a header `DeferredPush.droppedHeader`.
    var isDropped: Bool
    /// The record's time, by the clock of its writer or of the broker; nil where it has none.
    var writtenAt: WallTime?

    /// The offset at which the content was first written: another one if this is a rewrite.
    var saidAt: Int64 { endedOffset.map { min($0, offset) } ?? offset }

    package init(
        offset: Int64, key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?,
        endedOffset: Int64?, endedPayloadAt: WallTime? = nil, isDropped: Bool = false,
        writtenAt: WallTime?
    ) {
        self.offset = offset
        self.key = key
        self.value = value
        self.endedOffset = endedOffset
        self.endedPayloadAt = endedPayloadAt
        self.isDropped = isDropped
        self.writtenAt = writtenAt
    }

    /// What a time that the record names is by this worker's clock. The clock of whoever wrote it may
    /// be ahead: the time is no farther from now than it was from the writing.
    func instant(_ time: WallTime, now: Now) -> MonotonicTime {
        let instant = now.monotonic(at: time)
        guard let writtenAt else { return instant }
        return min(instant, now.monotonic + max(.zero, time - writtenAt))
    }
}

/// How waiting pushes are treated while partitions are given up or the worker stops.
package enum Drain: Sendable, Equatable {
    /// What cannot be handed over by then is deferred at once.
    case until(MonotonicTime)
    /// Nothing is handed over any more: all that waits is deferred.
    case ending
}

extension DeferredPushes {
    func checkInvariants() {
        table.checkInvariants()
        ends.checkInvariants()
        forgotten.checkInvariants()
        assignments.checkInvariants()
    }
}
