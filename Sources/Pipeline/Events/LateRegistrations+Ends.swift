// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Planning
internal import PushModel

/// What is owed to a token ends when the token is gone.
extension LateRegistrations {
    /// No registration has the token any more: what is owed to it is counted and dropped.
    mutating func drop(
        _ token: TokenID, _ fanOut: inout FanOut, _ state: inout PipelineState
    ) {
        for late in entries where late.entry.token == token {
            countUnregistered(late, fanOut, &state)
            state.release(late.claims)
            fanOut.underWay.awaitVisits(of: late.subject, -1)
        }
        entries.removeAll { $0.entry.token == token }
    }

    /// Ends what an entry is owed of an event with a payload, if whoever has the phone shows its subject no
    /// more: an entry may have waited for a slot while another person signed in.
    /// - Returns: whether it has ended.
    func endIfUnsubscribed(
        _ request: FanOutRequest, _ late: LateEntry, _ state: inout PipelineState, now: Now
    ) -> Bool {
        let token = late.entry.token
        guard !state.isOwed(request.body, to: token) else { return false }
        let route = state.audience.route(of: token)
        if case .push(let type) = FanOut.fate(
            for: late.entry, of: request, route: route, state)
        {
            state.endUnqueued(.unsubscribed, route, type)
            state.noteUnsubscribed(
                FanOut.content(of: request, type, state), to: state.audience.tokenBytes(of: token),
                route, now: now)
        }
        return true
    }

    private func countUnregistered(
        _ late: LateEntry, _ fanOut: borrowing FanOut, _ state: inout PipelineState
    ) {
        let route = state.audience.route(of: late.entry.token)
        let (app, tokenClass) = (state.traits(of: route).app, state.traits(of: route).tokenClass)
        if late.changeExpiresAt != nil, late.entry.hearsChanges, let type = tokenClass.changeType {
            state.endUnqueued(.unregistered, route, type)
        }
        var fanOuts = late.fanOuts
        while let running = fanOut.underWay.fanOut(of: late.subject, in: fanOuts) {
            let request = fanOut.underWay.request(of: running)
            if case .push(let type) = FanOut.fate(
                for: late.entry, of: request, route: route, state)
            {
                state.endUnqueued(.unregistered, route, type)
            }
            fanOuts = fanOut.underWay.number(of: running) + 1..<fanOuts.upperBound
        }
        var event = late.events.isEmpty ? nil : Optional(late.events.lowerBound)
        while let number = event, number < late.events.upperBound {
            var request = recentEvents[number].request
            state.audience.setKinds(recentEvents[number].kinds, of: app, in: &request.filter)
            if case .push(let type) = FanOut.fate(
                for: late.entry, of: request, route: route, state)
            {
                state.endUnqueued(.unregistered, route, type)
            }
            event = recentEvents.following(number)
        }
    }
}
