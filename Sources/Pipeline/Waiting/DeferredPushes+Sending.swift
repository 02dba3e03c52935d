// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Deferral
internal import Delivery
internal import Ledger
internal import Planning
internal import PushModel

/// Makes pushes of the rows of `deferred` whose time has come.
extension DeferredPushes {
    /// Makes pushes of what is due, as far as their routes may send and their share has room.
    mutating func sendDue(
        _ book: inout PushBook, _ outbox: inout Outbox, _ breakers: borrowing CircuitBreakers,
        now: Now
    ) {
        endRows(&book, &outbox)
        announcements.advance(now: now.monotonic)
        writePayloadEnds(book, &outbox)
        planReading(&book, &outbox, breakers, now: now)
        guard drain == nil else { return }
        table.wake(now: now.monotonic, limit: Self.perTurn)
        sweepExpired(&book, &outbox, now: now)
        guard table.readyCount > 0 else { return }
        var left = Self.perTurn
        for step in book.routes.indices {
            // Another route is first each time.
            let route = RouteID(rawValue: UInt16((turn + step) % book.routes.count))
            while left > 0, hasRoomForPushes(book, outbox), let row = table.firstReady(of: route),
                maySend(route, book, breakers, now: now),
                table.isAnnounced(row) || mayAnnounce(route, book, breakers)
            {
                send(row, &book, &outbox, breakers, now: now)
                left -= 1
            }
        }
        turn += 1
        endRows(&book, &outbox)
    }

    /// Whether a row of this route may become a push, or be dropped. While a breaker is not closed, a few pushes
    /// must be there to probe with, and no more. Of a limited route as many as may go now: the
    /// others would wait in slots that other routes' rows need.
    private func maySend(
        _ route: RouteID, _ book: borrowing PushBook, _ breakers: borrowing CircuitBreakers,
        now: Now
    ) -> Bool {
        if breakers.isDropping(route) { return true }
        if breakers.isBlocking(route, now: now.monotonic) { return false }
        return book.pushes.queuedCount(of: route) < most(of: route, breakers)
            && shareLeft(breakers.pool(of: route), book, breakers) > 0
    }

    /// How many pushes of this route may wait to be handed over.
    private func most(of route: RouteID, _ breakers: borrowing CircuitBreakers) -> Int {
        guard breakers.isClosed(route) else { return HoldWatch.probesKept }
        return breakers.left(of: route).map { max($0, HoldWatch.probesKept) } ?? .max
    }

    /// Whether one more push of this route may be announced. What is announced and cannot be sent
    /// soon must be announced again: no more is than may be made, and than Kafka takes in some seconds.
    private func mayAnnounce(
        _ route: RouteID, _ book: borrowing PushBook, _ breakers: borrowing CircuitBreakers
    ) -> Bool {
        guard table.announcingCount < announcements.most else { return false }
        let announced = table.announcedCount(of: route)
        if announced == 0 { return true }
        let room = min(
            shareLeft(breakers.pool(of: route), book, breakers), book.pushes.freeSlots)
        return announced < room
            && announced + book.pushes.queuedCount(of: route) < most(of: route, breakers)
    }

    private func hasRoomForPushes(
        _ book: borrowing PushBook, _ outbox: borrowing Outbox
    ) -> Bool {
        book.pushes.deferredShareCount < book.settings.deferredSlots && book.pushes.freeSlots > 0
            && hasRoom(book, outbox)
            && book.pushes.bodies.bytes < book.settings.payloadBytesMax * 3 / 4
    }

    private mutating func send(
        _ row: UInt32, _ book: inout PushBook, _ outbox: inout Outbox,
        _ breakers: borrowing CircuitBreakers, now: Now
    ) {
        let content = table.content(of: row)
        let route = table.route(of: row)
        // However it ends, its tombstone needs room in its partition.
        if !table.isAnnounced(row),
            !hasRoom(forRow: row, announces: false, book, outbox, now: now)
        {
            return table.postpone(row, until: now.monotonic + Self.roomRetry)
        }
        if content.isSent { return endUnsent(row, &book, &outbox, now: now) }
        if content.push.expiresAt <= now.monotonic {
            if holdsBack(row, book, now: now) { return }
            book.endUnqueued(.expired, route, content.push.type)
            return endUnsent(row, &book, &outbox, now: now)
        }
        if endIfSuperseded(row, &book, &outbox) { return }
        if breakers.isDropping(route) {
            book.endUnqueued(.dropped, route, content.push.type)
            return endUnsent(row, &book, &outbox, now: now)
        }
        // Pushes to the row's token wait until then: the next row goes instead.
        if let until = breakers.held(table.tokenBytes(of: row), route, now: now.monotonic) {
            return table.postpone(row, until: until)
        }
        let known = book.audience.token(route, table.tokenBytes(of: row))
        guard let token = known, book.audience.isRegistered(token) else {
            // Its registration may be on its way: another worker knew the token.
            if table.miss(row, until: now.monotonic + Self.indexPatience) { return }
            book.endUnqueued(.unregistered, route, content.push.type)
            return endUnsent(row, &book, &outbox, now: now)
        }
        if book.audience.isSuppressed(token) {
            book.endUnqueued(.suppressed, route, content.push.type)
            return endUnsent(row, &book, &outbox, now: now)
        }
        if !table.bodies.isOwed(content.push.body, where: { book.audience.mayShow(token, $0) }) {
            // So may the registration that shows the subject.
            if table.miss(row, until: now.monotonic + Self.indexPatience) { return }
            book.endUnqueued(.unsubscribed, route, content.push.type)
            book.noteUnsubscribed(content.push, to: table.tokenBytes(of: row), route, now: now)
            return endUnsent(row, &book, &outbox, now: now)
        }
        let gap = book.pacing.longGap(of: route, coalescingKey: table.coalescingKey(of: row))
        // What another partition has no room for must not keep the rows behind it.
        if !table.isAnnounced(row),
            !hasRoom(forRow: row, announces: gap != nil, book, outbox, now: now)
        {
            return table.postpone(row, until: now.monotonic + Self.roomRetry)
        }
        if let gap, case .wait = pace(row, gap: gap, &book, &outbox, now: now) {
            return
        }
        makePush(of: row, content, token: token, route: route, &book, now: now)
    }

    /// Makes a push of the row; the row's claim passes to it.
    private mutating func makePush(
        of row: UInt32, _ content: DeferredContent, token: TokenID, route: RouteID,
        _ book: inout PushBook, now: Now
    ) {
        let hold = table.hold(of: row)
        table.take(row)
        var push = PushRequest(
            token: token, route: route, content: content.push, heldSince: .distantFuture)
        push.content.notBefore = MonotonicTime(nanoseconds: .min)
        push.coalescingKey = table.coalescingKey(of: row)
        push.past = content.past
        push.content.isBulk = true
        let body = content.push.body
        if body != .none {
            push.content.body = book.pushes.bodies.insert(
                Array(table.bodies.body(body)),
                collapseID: Array(table.bodies.collapseID(body)),
                readAt: table.bodies.readAt(body), knownSince: table.bodies.knownSince(body),
                activity: table.bodies.activity(body), origin: table.bodies.origin(body))
            // 0 marks a payload that was not read here: it is older than what was read here at the
            // same time.
            push.content.readSequence = 0
            table.bodies.forEachSubject(of: body) {
                book.pushes.bodies.add(subject: $0, to: push.content.body)
            }
        }
        let slot: UInt32
        if let existing = book.existingPush(for: token, key: push.coalescingKey) {
            book.counters.pushesCoalesced += 1
            slot = existing
        } else {
            precondition(book.pushes.freeSlots > 0, "there was a free slot")
            book.counters.deferredSent += 1
            slot = book.add(push, now: now)
        }
        _ = book.pushes.join(slot, push, hold: hold, &book.tracker)
        book.pushes.bodies.release(push.content.body)
    }

    private mutating func sweepExpired(
        _ book: inout PushBook, _ outbox: inout Outbox, now: Now
    ) {
        guard sweepAt <= now.monotonic, table.readyCount > 0 else { return }
        sweepAt = now.monotonic + .milliseconds(10)
        var steps = 1024
        while hasRoom(book, outbox),
            let row = table.nextExpired(now: now.monotonic, steps: &steps)
        {
            guard hasRoom(forRow: row, announces: false, book, outbox, now: now) else { continue }
            if !table.content(of: row).isSent {
                if holdsBack(row, book, now: now) { continue }
                book.endUnqueued(.expired, table.route(of: row), table.content(of: row).push.type)
            }
            endUnsent(row, &book, &outbox, now: now)
        }
        endRows(&book, &outbox)
    }

    /// Lets a row wait that has expired by this worker's clock alone: it is neither sent nor ended.
    /// - Returns: whether it waits; false if the times of Kafka's records say that it has expired.
    private mutating func holdsBack(
        _ row: UInt32, _ book: borrowing PushBook, now: Now
    ) -> Bool {
        let confirmed = book.witness.confirms(table.content(of: row).push.expiresAt)
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
