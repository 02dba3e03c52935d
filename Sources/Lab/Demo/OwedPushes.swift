// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FleetKit
internal import PushModel

/// Joins the logs of events and answers while they grow: which tokens wait for a push, and how long
/// the others waited. This is only for the display; the checker decides the result.
///
/// A push ends every event of its token that is older than its answer, as in the checker. The logs
/// are read at slightly different times, so an event may be read after the answer that ended it;
/// its latency is then taken from the latest answer of its token, and is never too short.
struct OwedPushes {
    private let neighbourhood: Neighbourhood
    private var tokens: [String: Int] = [:]
    private var states: [State]
    private(set) var latencies = LatencyWindow()
    private(set) var door = DoorState()
    /// The number of pairs of an event and a token with neither an accepted push nor a 410.
    private(set) var waiting = 0
    private(set) var accepted = 0
    private(set) var acceptedFirstAt: Int64?
    private(set) var acceptedLastAt: Int64?
    /// The answers other than 200, by status and reason.
    private(set) var refusals: [String: Int] = [:]

    private struct State {
        /// When each waiting event was produced.
        var waiting: [Int64] = []
        var acceptedAt = Int64.min
        var isGone = false
    }

    /// The state of the drawn door.
    struct DoorState: Equatable {
        var isOpen = false
        /// When the event of a flip under way was produced; nil if there is none.
        var flippedAt: Int64?
        /// When the last flip arrived; nil before the first.
        var litAt: Int64?
        var latency: Duration?
    }

    init(_ neighbourhood: Neighbourhood) {
        self.neighbourhood = neighbourhood
        states = Array(repeating: State(), count: neighbourhood.tokenCount)
        for number in 0..<neighbourhood.tokenCount {
            tokens[Hexadecimal.encode(neighbourhood.token(number))] = number
        }
    }

    /// When the last push to any token of each of the first installations was accepted, in
    /// nanoseconds since 1970; nil where none was.
    func acceptedLast(ofInstallations count: Int) -> [Int64?] {
        (0..<min(count, neighbourhood.installations)).map { installation in
            let last =
                Neighbourhood.Sort.allCases.map { sort in
                    states[neighbourhood.tokenNumber(sort, of: installation)].acceptedAt
                }.max() ?? .min
            return last == .min ? nil : last
        }
    }

    mutating func eventProduced(_ event: LoggedEvent) {
        guard let subject = neighbourhood.subjectNumber(event.subject) else { return }
        if subject == Neighbourhood.drawnDoor { door.flippedAt = event.t }
        for token in neighbourhood.audience(ofSubject: subject) {
            if states[token].isGone { continue }
            if states[token].acceptedAt > event.t {
                end(event.t, of: token, at: states[token].acceptedAt)
            } else {
                states[token].waiting.append(event.t)
                waiting += 1
            }
        }
    }

    mutating func answered(_ outcome: LoggedOutcome) {
        let token = tokens[outcome.token]
        guard outcome.status == 200 else {
            refusals["\(outcome.status) \(outcome.reason)", default: 0] += 1
            if outcome.status == 410, let token {
                waiting -= states[token].waiting.count
                states[token] = State(isGone: true)
            }
            return
        }
        accepted += 1
        acceptedFirstAt = min(acceptedFirstAt ?? .max, outcome.t)
        acceptedLastAt = max(acceptedLastAt ?? .min, outcome.t)
        guard let token else { return }
        states[token].acceptedAt = max(states[token].acceptedAt, outcome.t)
        let ended = states[token].waiting.filter { $0 < outcome.t }
        states[token].waiting.removeAll { $0 < outcome.t }
        waiting -= ended.count
        for t in ended { end(t, of: token, at: outcome.t) }
    }

    private mutating func end(_ t: Int64, of token: Int, at answeredAt: Int64) {
        latencies.add(.nanoseconds(answeredAt - t), at: answeredAt)
        let isDrawn = token == neighbourhood.tokenNumber(.control, of: 0)
        guard isDrawn, let flippedAt = door.flippedAt, flippedAt < answeredAt else { return }
        door = DoorState(
            isOpen: !door.isOpen, flippedAt: nil, litAt: answeredAt,
            latency: .nanoseconds(answeredAt - flippedAt))
    }
}
