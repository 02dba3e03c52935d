// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Ledger
internal import Planning
internal import PushModel

/// Walks through the audiences of events that have many tokens, or came when slots were scarce.
extension FanOut {
    /// Starts a walk, to which the claim and the request's body pass.
    mutating func startWalk(
        _ request: FanOutRequest, count: Int, hold: OffsetClaim, _ book: inout PushBook
    ) -> ListOutcome {
        book.audience.setCursor(request.subject, true)
        let walk = walks.start(request, count: count, hold: hold, &book.tracker)
        if book.traces.isFollowing {
            book.traces.walking(
                walks.number(of: walk), of: request.subject, for: request.origin)
        }
        return walks.hasFoundToken(walk) ? .known(.matched) : .walking(walk)
    }

    /// Moves the events that are under way by up to `steps` tokens, or until there is no room.
    /// - Returns: the steps made; fewer than `steps` means that nothing can move now.
    mutating func advance(
        steps: Int, now: Now, _ book: inout PushBook, _ deferral: borrowing DeferredPushes
    ) -> Int {
        var made = 0
        let left = book.freeEventSlots - slotsForWalks(book)
        slotsTakenAtOnce = 0
        while made < steps, book.freeEventSlots > left {
            let most = min(Self.prefetchedEntries, steps - made, book.freeEventSlots - left)
            let step = nextStep(most: most, &book.tracker, &book.pushes.bodies, book.audience)
            if walks.hasPassedOver { countPassedOver(book, now: now) }
            switch step {
            case .idle:
                return made
            case .left(let subject):
                book.audience.setCursor(subject, false)
            case .visit(let positions, let walk):
                made += positions.count
                visit(positions, walk: walk, now: now, &book, deferral)
            }
        }
        return made
    }

    private mutating func nextStep(
        most: Int, _ tracker: inout OffsetTracker, _ bodies: inout BodyStore,
        _ audience: borrowing Audience
    ) -> Walks.Step {
        walks.step(most: most, &tracker, &bodies) { audience.count($0) }
    }

    /// Counts the events of walks that met every token of their list, and none that they are for.
    @inline(never)
    private mutating func countPassedOver(_ book: borrowing PushBook, now: Now) {
        for passed in walks.takePassedOver() {
            let subject =
                book.audience.isKindWide(passed.subject)
                ? UnsafeRawBufferPointer(start: nil, count: 0)
                : book.audience.subjectBytes(of: passed.subject)
            tally.decided(passed.count)
            tally.reachedNobody(
                .passedOver, subject, topic: passed.topic, count: passed.count, now: now)
        }
    }

    private mutating func visit(
        _ positions: Range<Int>, walk: Int, now: Now, _ book: inout PushBook,
        _ deferral: borrowing DeferredPushes
    ) {
        let request = walks.request(of: walk)
        let start = book.traces.isFollowing ? book.askedTally : nil
        let asked = book.pushesAsked
        book.audience.prefetch(request.subject, entries: positions)
        for index in positions.reversed() {
            let entry = book.audience.entry(request.subject, at: index)
            let visited = visit(entry, request, claims: .walk(walk), now: now, &book, deferral)
            precondition(visited, "there was a free slot for each")
        }
        if !walks.hasFoundToken(walk),
            book.pushesAsked != asked || Self.isForAny(positions, request, book)
        {
            for (topic, count) in walks.foundToken(walk) {
                tally.decided(count)
                tally.matched(count, topic: topic)
            }
        }
        if let start { book.traces.planned(book.askedTally, since: start, for: request.origin) }
    }

    /// How many slots walks may take now. Where events have taken slots that are kept for them,
    /// walks take as many, so that neither waits for the other to end.
    private func slotsForWalks(_ book: borrowing PushBook) -> Int {
        let free = book.freeEventSlots
        return min(free, max(free - book.settings.slotsKeptForEvents, slotsTakenAtOnce))
    }
}
