// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Deferral
internal import Delivery
internal import Intake
internal import Ledger
internal import Planning
internal import PushModel
internal import RecordFormats

/// Bounds how long a push may hold an offset: one that must wait longer is written to `deferred`,
/// and its events are released when Kafka has it.
extension DeferredPushes {
    /// Defers the waiting pushes that have nearly reached `holdMax` (where they fill the slots, those
    /// that will reach it, too), and what is above a pool's share of the slots.
    mutating func deferWhatWaits(
        _ state: inout PipelineState,
        now: Now
    ) {
        deferLongHeld(&state, now: now)
        if let drain = state.drain {
            deferWhatCannotEnd(in: drain, &state, now: now)
            retractAnnouncements(&state, now: now)
        }
        guard state.pushes.queuedCount > HoldWatch.probesKept else { return }
        makeRoomForUrgent(&state, now: now)
        guard holdWatch.isSpillDue(now: now.monotonic) else { return }
        giveBackRows(&state, now: now)
        let kept = max(HoldWatch.probesKept, state.settings.sizes.slots / 16)
        for index in state.routes.indices {
            let route = RouteID(rawValue: UInt16(index))
            if let rate = state.breakers.limit(of: route), state.breakers.isClosed(route) {
                // What the limit sends before it would be deferred anyway.
                let sent = min(
                    rate * (state.settings.sizes.holdMax / .seconds(1)), Double(kept * 4))
                spill(route, to: max(kept, Int(sent)), &state, now: now)
            } else if !state.breakers.isClosed(route) {
                spill(route, to: kept, &state, now: now)
            }
        }
        relieveSlowestPool(&state, now: now)
    }

    private mutating func deferLongHeld(
        _ state: inout PipelineState,
        now: Now
    ) {
        guard state.pushes.freeSlots < state.pushes.slots else { return state.pushes.endLaps() }
        var steps = holdWatch.slotsToCheck(of: state.settings.sizes.slots, now: now.monotonic)
        let patience = HoldWatch.patience(state.settings.sizes.holdMax)
        let since = now.monotonic - patience
        // Where those that rest fill the slots, a large audience with a delay would get on by one
        // filling in each `holdMax`.
        let isCrowded = state.pushes.restingCount * 2 > state.pushes.slots
        while let slot = state.pushes.nextHeld(
            since: isCrowded ? now.monotonic : since, steps: &steps)
        {
            let held = state.pushes.heldSince(of: slot)
            let end = state.pushes.restsUntil(slot) ?? held
            guard held <= since || end - held > patience, hasRoom(state) else { continue }
            _ = deferUntilSendable(slot, &state, now: now)
        }
    }

    /// Defers what waits behind an open breaker or a limit, or rests for longer than the drain
    /// lasts: its offsets would hold back those of everything that was read after it. What
    /// `deferred` has no room for is left to the next owner of its partition.
    private mutating func deferWhatCannotEnd(
        in drain: Drain, _ state: inout PipelineState, now: Now
    ) {
        guard state.pushes.queuedCount + state.pushes.restingCount > 0 else { return }
        var steps = max(HoldWatch.chunk, state.settings.sizes.slots / 16)
        var left = HoldWatch.spillMax
        while left > 0, hasRoom(state), let slot = state.pushes.nextWaiting(steps: &steps) {
            guard Self.cannotEnd(slot, in: drain, state),
                deferUntilSendable(slot, &state, now: now)
            else { continue }
            left -= 1
        }
    }

    private static func cannotEnd(
        _ slot: UInt32, in drain: Drain, _ state: borrowing PipelineState
    ) -> Bool {
        guard case .until(let end) = drain else { return true }
        if let wake = state.pushes.restsUntil(slot), wake > end { return true }
        let route = state.pushes.route(of: slot)
        return !state.breakers.isClosed(route) || state.breakers.limit(of: route) != nil
    }

    // MARK: One push

    /// Defers a push that must wait until `time`, if that would hold its offsets for too long. A
    /// push that holds none, because it came from a row, is deferred if `givingBackRows` is set.
    /// Where `deferred` has no room for it, it goes on waiting here.
    mutating func deferIfTooLong(
        _ slot: UInt32, until time: MonotonicTime, givingBackRows: Bool = false,
        _ state: inout PipelineState,
        now: Now
    ) {
        let since = state.pushes.heldSince(of: slot)
        let isTooLong =
            since < .distantFuture
            ? time - since > HoldWatch.patience(state.settings.sizes.holdMax) : givingBackRows
        guard isTooLong, hasRoom(state) else { return }
        _ = deferPush(slot, notBefore: time, &state, now: now)
    }

    /// Defers the push until it may be handed to delivery.
    /// - Returns: false if its partition of `deferred` has no room, so that it still waits here.
    mutating func deferUntilSendable(
        _ slot: UInt32, _ state: inout PipelineState, now: Now
    ) -> Bool {
        let rested = max(state.pushes.restsUntil(slot) ?? now.monotonic, now.monotonic)
        let time = state.breakers.sendable(state.pushes.route(of: slot), from: rested)
        return deferPush(slot, notBefore: time, &state, now: now)
    }

    /// Ends the waiting push here. One that an operator drops would come back from Kafka once the
    /// drop is lifted, so it is dropped. Of any other the claims on events wait for its record to be
    /// acknowledged; the claims on rows of `deferred` go back to them.
    /// - Returns: false if its partition of `deferred` has no room.
    private mutating func deferPush(
        _ slot: UInt32, notBefore: MonotonicTime, _ state: inout PipelineState, now: Now
    ) -> Bool {
        let push = state.pushes[slot]
        if state.breakers.isDropping(push.route) {
            state.count(.dropped, slot)
            if state.ended.isOn { state.noteUnsent(.dropped, slot) }
            if push.hasFollowUp {
                state.endUnqueued(.dropped, push.route, state.pushes.followUp(of: slot).type)
            }
            state.release(state.endTakingClaims(slot, withFollowUp: true, now: now))
            return true
        }
        let key = key(ofPush: slot, state)
        guard hasRoom(for: slot, key: key, state) else { return false }
        var record = Self.record(slot, notBefore: notBefore, state, now: now)
        var place = place(of: slot, state)
        let claims = state.endTakingClaims(slot, withFollowUp: true, now: now)
        state.counters.deferred += 1
        let ofEvents = claims.filter { !state.tracker.isOfTable($0) }
        for claim in claims where state.tracker.isOfTable(claim) {
            putBack(claim, notBefore: notBefore, attempts: push.attempts, &state.tracker)
        }
        if ofEvents.isEmpty, ofEvents.count < claims.count { return true }
        if let open = state.outbox.tickets.openDeferral(of: key) {
            record.include(decode(open.record))
            // The open record may have the newer payload.
            if let own = place, let said = open.order { place!.age = max(own.age, said.age) }
        }
        var draft = RecordDraft(
            .deferred, key: key, value: DeferredEncoder.value(record), claims: ofEvents)
        draft.order = place
        state.outbox.write(draft)
        if let place {
            state.payloadOrder.deferred(
                place.hash, age: place.age, expiresAt: now.monotonic(at: record.expiresAt),
                now: now.monotonic)
        }
        return true
    }

    /// Gives the claim of a push back to the row that it was made of: the row waits again.
    private mutating func putBack(
        _ claim: OffsetClaim, notBefore: MonotonicTime, attempts: UInt16,
        _ tracker: inout OffsetTracker
    ) {
        guard let row = table.row(of: claim), table.isTaken(row), !table.isRevoked(row) else {
            // A later record has given the row another claim; its push need not keep a distance to
            // this one.
            if let row = table.row(of: claim), !table.isTaken(row) { table.withdraw(row) }
            return tracker.release(claim)
        }
        table.putBack(row, notBefore: notBefore, attempts: attempts)
    }

    /// The hash and the age by which the payload of a deferred push is known from then on; nil
    /// where no other event can bring a newer one.
    private func place(
        of slot: UInt32, _ state: borrowing PipelineState
    ) -> TicketTable.PayloadKey? {
        let push = state.pushes[slot]
        let said = push.hasFollowUp ? state.pushes.followUp(of: slot) : push.content
        guard push.coalescingKey != 0, state.pushes.bodies.isReplaceable(said.body) else {
            return nil
        }
        let token = state.audience.tokenBytes(of: push.token)
        return TicketTable.PayloadKey(
            hash: state.payloadOrder.hash(push.route, token, push.coalescingKey),
            age: state.pushes.age(of: said))
    }

    private static func record(
        _ slot: UInt32, notBefore: MonotonicTime, _ state: borrowing PipelineState, now: Now
    ) -> DeferredPush {
        let push = state.pushes[slot]
        // The follow-up of a waiting push says the same later, or has the newer payload.
        var said = push.hasFollowUp ? state.pushes.followUp(of: slot) : push.content
        said.prolong(until: push.content.expiresAt, priority: push.content.priority)
        said.notBefore = max(notBefore, said.notBefore)
        said.origin = push.content.origin
        (said.subject, said.subjectTag) = (push.content.subject, push.content.subjectTag)
        said.writtenAt = push.content.writtenAt
        let firstTriedAt = push.firstTriedAt.nanoseconds == 0 ? nil : push.firstTriedAt
        return state.record(
            DeferredContent(
                said,
                past: PushRequest.Past(attempts: push.attempts, firstTriedAt: firstTriedAt)),
            route: push.route, payload: state.payload(said.body, to: push.token), now: now)
    }
}
