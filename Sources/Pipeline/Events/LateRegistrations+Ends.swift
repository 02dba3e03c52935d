// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Planning
internal import PushModel

/// What is owed to a token ends when the token is gone.
extension LateRegistrations {
    /// No registration has the token any more: what is owed to it is counted and dropped.
    mutating func drop(
        _ token: TokenID, _ fanOut: inout FanOut, _ book: inout PushBook
    ) {
        for late in entries where late.entry.token == token {
            countUnregistered(late, fanOut, &book)
            book.release(late.holds)
            fanOut.walks.awaitVisits(of: late.subject, -1)
        }
        entries.removeAll { $0.entry.token == token }
    }

    /// Ends what an entry is owed of an event with a payload, if whoever has the phone shows its subject no
    /// more: an entry may have waited for a slot while another person signed in.
    /// - Returns: whether it has ended.
    func endIfUnsubscribed(
        _ request: FanOutRequest, _ late: LateEntry, _ book: inout PushBook, now: Now
    ) -> Bool {
        let token = late.entry.token
        guard !book.isOwed(request.body, to: token) else { return false }
        let route = book.audience.route(of: token)
        if let type = FanOut.pushType(for: late.entry, of: request, route: route, book) {
            book.endUnqueued(.unsubscribed, route, type)
            book.noteUnsubscribed(
                FanOut.content(of: request, type, book), to: book.audience.tokenBytes(of: token),
                route, now: now)
        }
        return true
    }

    private func countUnregistered(
        _ late: LateEntry, _ fanOut: borrowing FanOut, _ book: inout PushBook
    ) {
        let route = book.audience.route(of: late.entry.token)
        let (app, tokenClass) = (book.traits(of: route).app, book.traits(of: route).tokenClass)
        if late.changeExpiresAt != nil, late.entry.hearsChanges, let type = tokenClass.changeType {
            book.endUnqueued(.unregistered, route, type)
        }
        var walks = late.walks
        while let walk = fanOut.walks.walk(of: late.subject, in: walks) {
            let request = fanOut.walks.request(of: walk)
            if let type = FanOut.pushType(for: late.entry, of: request, route: route, book) {
                book.endUnqueued(.unregistered, route, type)
            }
            walks = fanOut.walks.number(of: walk) + 1..<walks.upperBound
        }
        var event = late.events.isEmpty ? nil : Optional(late.events.lowerBound)
        while let number = event, number < late.events.upperBound {
            var request = recentEvents[number].request
            book.audience.setKinds(recentEvents[number].kinds, of: app, in: &request.filter)
            if let type = FanOut.pushType(for: late.entry, of: request, route: route, book) {
                book.endUnqueued(.unregistered, route, type)
            }
            event = recentEvents.following(number)
        }
    }
}
