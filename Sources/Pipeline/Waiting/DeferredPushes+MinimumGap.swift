// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Deferral
internal import Delivery
internal import Planning
internal import PushModel
internal import RecordFormats

/// The minimum gap: two pushes without a payload to one token are at least `planning.minimumGap` apart, and
/// the last of those that come meanwhile is sent when the gap is over.
///
/// A gap that is longer than a push may be held is kept by one worker: the owner of the token's
/// partition of `deferred`. Every such push goes through that topic. The owner writes there that it
/// is about to send before it does (`announce`), and that it has sent afterwards, so that whoever
/// owns the partition next knows both, however this worker ends.
extension DeferredPushes {
    /// By when an announced push has been sent, so says its record, where Kafka takes that at once.
    private static var announcedFor: Duration { .seconds(60) }
    /// What must be left of it at the hand-over, for the request.
    private static var timeToSend: Duration { .seconds(20) }
    /// Up to which gap a record need not say when the last push was sent, since the one that does is
    /// still in the topic: half of the hour in which Kafka compacts nothing
    /// (`min.compaction.lag.ms`), as a restart may take its time.
    private static var unsaidMax: Duration { .seconds(1800) }

    // MARK: Pushes are handed over

    /// Whether the push must not be handed over now, because of the gap to the one before. It rests
    /// then, or is deferred.
    mutating func keepsDistance(
        _ slot: UInt32, _ state: inout PipelineState, now: Now
    ) -> Bool {
        let push = state.pushes[slot]
        // A further try is not a further push.
        switch state.tokenGaps.gap(of: push.route, coalescingKey: push.coalescingKey) {
        case .none: return false
        case .short(let gap):
            guard push.attempts == 0,
                let until = state.tokenGaps.nextSend(push.token, gap: gap, now: now.monotonic)
            else { return false }
            state.counters.pushesHeldByGap += 1
            state.pushes.putBack(slot, until: until, now: now.monotonic, &state.tracker)
            deferIfTooLong(slot, until: until, &state, now: now)
        case .long:
            if push.isAnnounced, isAnnounced(slot, state, now: now) { return false }
            if joinsRow(slot, &state, now: now) { return true }
            if isWorthDeferring(slot, state, now: now) {
                state.pushes.putBack(slot, until: now.monotonic, now: now.monotonic, &state.tracker)
                return deferUntilSendable(slot, &state, now: now)
            }
            if goesWithoutGap(slot, state, now: now) {
                if push.attempts == 0 { state.counters.pushesWithoutGap += 1 }
                state.pushes.withdrawAnnouncement(of: slot)
                return false
            }
            let until = now.monotonic + RoomWaits.retryAfter
            state.pushes.putBack(slot, until: until, now: now.monotonic, &state.tracker)
            roomWaits.add(now: now.monotonic)
        }
        return true
    }

    /// Whether this worker owns the row of the push, and has said in Kafka that it may be sent now.
    private func isAnnounced(
        _ slot: UInt32, _ state: borrowing PipelineState, now: Now
    ) -> Bool {
        var isAnnounced = false
        state.pushes.forEachClaim(of: slot) { claim in
            guard let row = table.row(of: claim) else { return }
            let left = table.announcedUntil(row) - now.monotonic
            if left >= Self.timeToSend { isAnnounced = true }
        }
        return isAnnounced
    }

    /// APNs has answered, and not accepted the push: what waits in its rows keeps no distance to it.
    @inline(never)
    mutating func pushWithGapFailed(_ slot: UInt32, _ state: borrowing PipelineState) {
        var rows: [UInt32] = []
        state.pushes.forEachClaim(of: slot) { claim in
            if let row = table.row(of: claim), !table.isTaken(row) { rows.append(row) }
        }
        for row in rows { table.withdraw(row) }
    }

    /// APNs has accepted a push without a payload: the gap to the next one begins.
    @inline(never)
    mutating func pushWithGapAccepted(
        _ push: PushTable.AcceptedPush, _ state: inout PipelineState, now: Now
    ) {
        let route = push.route
        switch state.tokenGaps.gap(of: route, coalescingKey: 0) {
        case .none: return
        case .short: state.tokenGaps.sent(push.token, now: now.monotonic)
        case .long(let gap):
            // The token as it was sent: the audience may have forgotten it.
            let token = UnsafeRawBufferPointer(state.slab.token(push.slot))
            var rows: [UInt32] = []
            table.forEachRow(route: route, token: token, coalescingKey: 0) { rows.append($0) }
            var answered: [UInt32] = []
            state.pushes.forEachClaim(of: push.slot) { claim in
                if let row = table.row(of: claim) { answered.append(row) }
            }
            let hasRoom = table.sentCount < state.settings.live.deferredMax
            if !hasRoom { state.counters.gapsForgotten += 1 }
            for row in rows {
                let isAnswered = answered.contains(row)
                if isAnswered, !hasRoom { continue }
                let owesNothing = table.sent(
                    row, at: now.monotonic, gapEnd: now.monotonic + gap,
                    isAnswered: isAnswered, &state.tracker)
                if owesNothing { write(row, &state, now: now) }
            }
        }
    }

    // MARK: Rows

    /// What a row of a route with a minimum gap must do before its push is made.
    enum Step {
        case makePush
        /// It waits, for the gap or for its announcement.
        case wait
    }

    /// Lets a row whose time has come wait for the gap, or announces its push.
    mutating func keepGap(
        _ row: UInt32, gap: Duration, _ state: inout PipelineState, now: Now
    ) -> Step {
        if table.isAnnounced(row), table.announcedUntil(row) - now.monotonic >= Self.timeToSend {
            return .makePush
        }
        if let end = gapEnd(row, gap), !table.isAnnounced(row), end > now.monotonic {
            state.counters.pushesHeldByGap += 1
            table.postpone(row, until: end)
            return .wait
        }
        // The time that Kafka takes is not the push's.
        let until = now.monotonic + Self.announcedFor + announcements.delay
        table.announce(row, until: until, now: now.monotonic)
        write(row, &state, now: now)
        return .wait
    }

    /// Kafka has the announcement of this row's push. It does not count where the row has written
    /// another record since.
    mutating func announced(_ claim: OffsetClaim, ticket: UInt64) {
        guard let row = table.row(of: claim), table.isAnnouncing(row),
            table.isLatest(ticket, of: row)
        else { return }
        announcements.acknowledged(writtenAt: table.announcedAt(row))
        table.announced(row)
    }

    /// Kafka will not have it: the row has changed since.
    mutating func notAnnounced(_ claim: OffsetClaim, ticket: UInt64) {
        if let row = table.row(of: claim), table.isLatest(ticket, of: row) { table.withdraw(row) }
    }

    /// Takes over what a record says of the last push. The clock of who wrote it may be ahead of this
    /// one by any time: nothing waits for longer than it would by this clock.
    func noteSent(
        _ push: DeferredPush, of record: DeferredRecord, in content: inout DeferredContent,
        _ state: borrowing PipelineState, now: Now
    ) {
        if let sentAt = push.lastSentAt {
            content.sentAt = min(
                record.instant(sentAt, now: now), now.monotonic + Self.announcedFor)
        }
        guard push.isSent, push.payload == nil else { return }
        let gap = state.tokenGaps.longGap(of: tokenKey.route, coalescingKey: 0) ?? .zero
        content.isSent = true
        content.push.notBefore = max(content.sentAt, now.monotonic - gap) + gap
        content.push.expiresAt = content.push.notBefore
    }

    /// Partitions are given up in order: their records must not announce pushes that are not sent, or
    /// the next owner would wait for the gap after them. An announcement that is still on its way
    /// comes to the log before what takes it back.
    mutating func retractAnnouncements(
        _ state: inout PipelineState, now: Now
    ) {
        guard !table.overstatedRows.isEmpty else { return }
        for row in table.overstated
        where hasRoom(forRow: row, announces: false, state, now: now) {
            table.withdraw(row)
            write(row, &state, now: now)
        }
    }

    /// Whether Kafka knows of each announced push of this partition's whether it was sent, and has all
    /// that this worker has written there.
    func isDrained(_ id: AssignmentID, _ state: borrowing PipelineState) -> Bool {
        !table.isOverstated(id)
            && !state.outbox.tickets.isOpen(deferredPartition: assignments.partition(of: id))
    }

    /// When the row's token may be sent the next push; nil where it was sent none.
    func gapEnd(_ row: UInt32, _ gap: Duration) -> MonotonicTime? {
        let sentAt = table.lastSent(of: row)
        return sentAt.nanoseconds == .min ? nil : sentAt + gap
    }

    /// Ends a row whose push is not sent. While the gap after the one before is not over, it stays
    /// and owes nothing.
    mutating func endUnsent(
        _ row: UInt32, _ state: inout PipelineState, now: Now
    ) {
        // What was announced is not sent after all.
        if table.isAnnounced(row) { table.withdraw(row) }
        let gap = state.tokenGaps.longGap(
            of: table.route(of: row), coalescingKey: table.coalescingKey(of: row))
        guard let gap, let end = gapEnd(row, gap), end > now.monotonic else {
            return table.drop(row, &state.tracker)
        }
        guard table.sentCount < state.settings.live.deferredMax else {
            state.counters.gapsForgotten += 1
            return table.drop(row, &state.tracker)
        }
        table.owesNothing(row, until: end)
        write(row, &state, now: now)
    }

    /// Whether the record of a push that is owed must say when the one before was sent, since the
    /// record that says so may be gone before the gap is over.
    func mustSayWhenSent(
        _ row: UInt32, _ state: borrowing PipelineState, now: Now
    ) -> Bool {
        let gap = state.tokenGaps.longGap(
            of: table.route(of: row), coalescingKey: table.coalescingKey(of: row))
        guard let gap, gap > Self.unsaidMax, let end = gapEnd(row, gap) else { return false }
        return end > now.monotonic
    }
}
