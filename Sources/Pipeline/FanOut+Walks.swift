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
    ) {
        book.audience.setCursor(request.subject, true)
        let number = walks.start(request, count: count, hold: hold, &book.tracker)
        if book.traces.isFollowing {
            book.traces.walking(number, of: request.subject, for: request.origin)
        }
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
            switch nextStep(most: most, &book.tracker, &book.pushes.bodies, book.audience) {
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

    private mutating func visit(
        _ positions: Range<Int>, walk: Int, now: Now, _ book: inout PushBook,
        _ deferral: borrowing DeferredPushes
    ) {
        let request = walks.request(of: walk)
        let start = book.traces.isFollowing ? book.askedTally : nil
        book.audience.prefetch(request.subject, entries: positions)
        for index in positions.reversed() {
            let entry = book.audience.entry(request.subject, at: index)
            let visited = visit(entry, request, claims: .walk(walk), now: now, &book, deferral)
            precondition(visited, "there was a free slot for each")
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
