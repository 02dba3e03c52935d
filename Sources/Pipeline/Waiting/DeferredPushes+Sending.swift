// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Deferral
internal import Delivery
internal import Ledger
internal import Planning
internal import PushModel
internal import RecordFormats

/// Makes pushes of the rows of `deferred` whose time has come.
extension DeferredPushes {
    /// Makes pushes of what is due, as far as their routes may send and their share has room.
    mutating func sendDue(
        _ state: inout PipelineState,
        now: Now
    ) {
        endRows(&state)
        announcements.advance(now: now.monotonic)
        writePayloadEnds(&state)
        planReading(&state, now: now)
        guard state.drain == nil else { return }
        table.wake(now: now.monotonic, limit: Self.perTurn)
        sweepExpired(&state, now: now)
        guard table.readyCount > 0 else { return }
        var left = Self.perTurn
        for step in state.routes.indices {
            // Another route is first each time.
            let route = RouteID(rawValue: UInt16((turn + step) % state.routes.count))
            while left > 0, hasRoomForPushes(state), let row = table.firstReady(of: route),
                maySend(route, state, now: now),
                table.isAnnounced(row) || mayAnnounce(route, state)
            {
                send(row, &state, now: now)
                left -= 1
            }
        }
        turn += 1
        endRows(&state)
    }

    /// Whether a row of this route may become a push, or be dropped. While a breaker is not closed, a few pushes
    /// must be there to probe with, and no more. Of a limited route as many as may go now: the
    /// others would wait in slots that other routes' rows need.
    private func maySend(
        _ route: RouteID, _ state: borrowing PipelineState,
        now: Now
    ) -> Bool {
        if state.breakers.isDropping(route) { return true }
        if state.breakers.isBlocking(route, now: now.monotonic) { return false }
        return state.pushes.queuedCount(of: route) < most(of: route, state)
            && shareLeft(state.breakers.pool(of: route), state) > 0
    }

    /// How many pushes of this route may wait to be handed over.
    private func most(of route: RouteID, _ state: borrowing PipelineState) -> Int {
        guard state.breakers.isClosed(route) else { return HoldWatch.probesKept }
        return state.breakers.left(of: route).map { max($0, HoldWatch.probesKept) } ?? .max
    }

    /// Whether one more push of this route may be announced. What is announced and cannot be sent
    /// soon must be announced again: no more is than may be made, and than Kafka takes in some seconds.
    private func mayAnnounce(
        _ route: RouteID, _ state: borrowing PipelineState
    ) -> Bool {
        guard table.announcingCount < announcements.most else { return false }
        let announced = table.announcedCount(of: route)
        if announced == 0 { return true }
        let room = min(
            shareLeft(state.breakers.pool(of: route), state), state.pushes.freeSlots)
        return announced < room
            && announced + state.pushes.queuedCount(of: route) < most(of: route, state)
    }

    private func hasRoomForPushes(
        _ state: borrowing PipelineState
    ) -> Bool {
        state.pushes.deferredShareCount < state.settings.sizes.deferredSlots
            && state.pushes.freeSlots > 0
            && hasRoom(state)
            && state.pushes.bodies.bytes < state.settings.sizes.payloadBytesMax * 3 / 4
    }

    private mutating func send(
        _ row: UInt32, _ state: inout PipelineState, now: Now
    ) {
        let content = table.content(of: row)
        let route = table.route(of: row)
        // However it ends, its tombstone needs room in its partition.
        if !table.isAnnounced(row),
            !hasRoom(forRow: row, announces: false, state, now: now)
        {
            return table.postpone(row, until: now.monotonic + Self.roomRetry)
        }
        if content.isSent { return endUnsent(row, &state, now: now) }
        if content.push.expiresAt <= now.monotonic {
            if holdsBack(row, state, now: now) { return }
            countEnd(.expired, of: row, &state)
            return endUnsent(row, &state, now: now)
        }
        if endIfSuperseded(row, &state) { return }
        if state.breakers.isDropping(route) {
            countEnd(.dropped, of: row, &state)
            return endUnsent(row, &state, now: now)
        }
        // Pushes to the row's token wait until then: the next row goes instead.
        if let until = state.breakers.held(table.tokenBytes(of: row), route, now: now.monotonic) {
            return table.postpone(row, until: until)
        }
        let known = state.audience.token(route, table.tokenBytes(of: row))
        guard let token = known, state.audience.isRegistered(token) else {
            // Its registration may be on its way: another worker knew the token.
            if table.miss(row, until: now.monotonic + Self.indexPatience) { return }
            countEnd(.unregistered, of: row, &state)
            return endUnsent(row, &state, now: now)
        }
        if state.audience.isSuppressed(token) {
            countEnd(.suppressed, of: row, &state)
            return endUnsent(row, &state, now: now)
        }
        if !table.bodies.isOwed(content.push.body, where: { state.audience.mayShow(token, $0, $1) })
        {
            // So may the registration that shows the subject.
            if table.miss(row, until: now.monotonic + Self.indexPatience) { return }
            countEnd(.unsubscribed, of: row, &state)
            state.noteUnsubscribed(content.push, to: table.tokenBytes(of: row), route, now: now)
            return endUnsent(row, &state, now: now)
        }
        let gap = state.tokenGaps.longGap(of: route, coalescingKey: table.coalescingKey(of: row))
        // What another partition has no room for must not keep the rows behind it.
        if !table.isAnnounced(row),
            !hasRoom(forRow: row, announces: gap != nil, state, now: now)
        {
            return table.postpone(row, until: now.monotonic + Self.roomRetry)
        }
        if let gap, case .wait = keepGap(row, gap: gap, &state, now: now) {
            return
        }
        makePush(of: row, content, token: token, &state, now: now)
    }

    /// Counts the end of the row's push, before it ends.
    func countEnd(_ word: OutcomeRecord.Word, of row: UInt32, _ state: inout PipelineState) {
        let (route, content) = (table.route(of: row), table.content(of: row))
        state.endUnqueued(word.outcome, route, content.push.type)
        if state.ended.isOn {
            state.noteUnsent(word, content, to: table.tokenBytes(of: row), route)
        }
    }

    /// Makes a push of the row; the row's claim passes to it.
    private mutating func makePush(
        of row: UInt32, _ content: DeferredContent, token: TokenID, _ state: inout PipelineState,
        now: Now
    ) {
        let route = table.route(of: row)
        let claim = table.claim(of: row)
        table.take(row)
        var push = PushRequest(
            token: token, route: route, content: content.push, heldSince: .distantFuture)
        push.content.notBefore = MonotonicTime(nanoseconds: .min)
        push.coalescingKey = table.coalescingKey(of: row)
        push.past = content.past
        push.content.isBulk = true
        let body = content.push.body
        if body != .none {
            push.content.body = state.pushes.bodies.insert(
                Array(table.bodies.body(body)),
                collapseID: Array(table.bodies.collapseID(body)),
                readAt: table.bodies.readAt(body), knownSince: table.bodies.knownSince(body),
                activity: table.bodies.activity(body), origin: table.bodies.origin(body))
            // 0 marks a payload that was not read here: it is older than what was read here at the
            // same time.
            push.content.readSequence = 0
            table.bodies.forEachSubject(of: body) {
                state.pushes.bodies.add($0, $1, to: push.content.body)
            }
        }
        let slot: UInt32
        if let existing = state.existingPush(for: token, key: push.coalescingKey) {
            state.counters.pushesCoalesced += 1
            slot = existing
        } else {
            precondition(
                state.pushes.freeSlots > 0, "a deferred push is sent only while a slot is free")
            state.counters.deferredSent += 1
            slot = state.add(push, now: now)
        }
        _ = state.pushes.join(slot, push, claim: claim, &state.tracker)
        state.pushes.bodies.release(push.content.body)
    }

    private mutating func sweepExpired(
        _ state: inout PipelineState, now: Now
    ) {
        guard sweepAt <= now.monotonic, table.readyCount > 0 else { return }
        sweepAt = now.monotonic + .milliseconds(10)
        var steps = 1024
        while hasRoom(state),
            let row = table.nextExpired(now: now.monotonic, steps: &steps)
        {
            guard hasRoom(forRow: row, announces: false, state, now: now) else { continue }
            if !table.content(of: row).isSent {
                if holdsBack(row, state, now: now) { continue }
                countEnd(.expired, of: row, &state)
            }
            endUnsent(row, &state, now: now)
        }
        endRows(&state)
    }

    /// Lets a row wait that has expired by this worker's clock alone: it is neither sent nor ended.
    /// - Returns: whether it waits; false if the times of Kafka's records say that it has expired.
    private mutating func holdsBack(
        _ row: UInt32, _ state: borrowing PipelineState, now: Now
    ) -> Bool {
        let confirmed = state.witness.confirms(table.content(of: row).push.expiresAt)
        guard confirmed > now.monotonic else { return false }
        // A newer record may confirm it earlier.
        table.holdBack(row, until: min(confirmed, now.monotonic + Self.heldBackFor))
        return true
    }

    private static var perTurn: Int { 512 }
    /// After this time a row that is held back is looked at again.
    private static var heldBackFor: Duration { .seconds(30) }
    /// How long a row waits for the registration of its token. A worker whose index is further
    /// behind than this is not ready.
    private static var indexPatience: Duration { .seconds(30) }
}
