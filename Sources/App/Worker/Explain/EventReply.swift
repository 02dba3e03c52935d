// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Pipeline
internal import PushModel

/// The answer to `POST /explain`, as JSON; docs/commands.md describes it.
package struct EventReply: Codable, Sendable, Equatable {
    package var time: String
    package var phase: String
    /// The events topic as whose record it was read.
    package var topic: String
    package var unreadable: Unreadable?
    /// True if the topic's binding leaves the record out.
    package var filtered: Bool?
    /// Why, in a clause; nil from a worker of an earlier version.
    package var filteredBecause: String?
    package var event: Event?
    package var results: [Result]
    /// Some entries of each result.
    package var entries: [Entry]
    /// How many entries were not looked at.
    package var unseen: Int
    package var otherApps: [OtherApp]
    package var breakers: [TokenReply.Breaker]
    /// Those in force that it would meet; nil from a worker from before there were restrictions.
    package var restrictions: [RestrictionReply]?

    package struct Unreadable: Codable, Sendable, Equatable {
        package var code: String
        package var message: String
    }

    package struct Event: Codable, Sendable, Equatable {
        package var app: String
        /// Nil for an event that means every control of its kinds, and for one for an installation.
        package var subject: String?
        /// Nil for every other event, and from a worker of an earlier version.
        package var installation: String?
        package var environment: String?
        package var kinds: [String]
        /// Nil for all.
        package var classes: [String]?
        package var time: String
        package var expiresAt: String
        package var expired: Bool
        package var delaySeconds: Double
        /// The push type of the event's payload.
        package var payload: String?
        package var collapseID: String?
    }

    /// How many tokens have the same result.
    package struct Result: Codable, Sendable, Equatable {
        /// `push`, or why there is none.
        package var result: String
        package var pushType: String?
        package var entries: Int

        /// Pushes come before what is none.
        fileprivate var rank: Int { pushType == nil ? 0 : 1 }
    }

    package struct Entry: Codable, Sendable, Equatable {
        package var tokenID: String
        package var environment: String
        package var `class`: String
        package var kind: String?
        package var result: String
        package var pushType: String?
    }

    package struct OtherApp: Codable, Sendable, Equatable {
        package var app: String
        package var entries: Int
    }
}

extension EventReply {
    init(
        _ explanation: EventExplanation, topic: String, phase: WorkerControl.Phase, now: Now
    ) {
        time = now.wall.rfc3339
        self.phase = "\(phase)"
        self.topic = topic
        unreadable = explanation.unreadable.map { Unreadable(code: $0.code, message: $0.message) }
        filtered = explanation.isFiltered ? true : nil
        filteredBecause = explanation.filterReason
        event = explanation.event.map(Event.init)
        results = explanation.counts.map { result, count in
            Result(result: result.name, pushType: result.pushType, entries: count)
        }.sorted { ($0.rank, $0.entries, $1.result) > ($1.rank, $1.entries, $0.result) }
        entries = explanation.entries.map { entry in
            Entry(
                tokenID: ExplainJSON.tokenID(entry.id), environment: entry.environment.name,
                class: entry.tokenClass.name, kind: entry.kind.isEmpty ? nil : entry.kind,
                result: entry.result.name, pushType: entry.result.pushType)
        }
        unseen = explanation.unseen
        otherApps = explanation.otherApps.map { OtherApp(app: $0.app, entries: $0.entries) }
        breakers = explanation.breakers.map(TokenReply.Breaker.init)
        restrictions = explanation.restrictions.map(RestrictionReply.init)
    }
}

extension EventReply.Event {
    init(_ event: EventExplanation.ReadEvent) {
        app = event.app
        subject =
            event.subject.isEmpty ? nil : String(decoding: event.subject, as: UTF8.self)
        installation = event.installation
        environment = event.environment?.name
        kinds = event.kinds
        classes =
            event.classes == .all
            ? nil : TokenClass.allCases.filter(event.classes.contains).map(\.name)
        time = event.time.rfc3339
        expiresAt = event.expiresAt.rfc3339
        expired = event.isExpired
        delaySeconds = Double(event.delay.nanoseconds) / 1e9
        payload = event.payload?.name
        collapseID = event.collapseID
    }
}

extension EventExplanation.Result {
    fileprivate var name: String {
        switch self {
        case .push: "push"
        case .passedOver(let cause): cause.rawValue
        }
    }

    fileprivate var pushType: String? {
        if case .push(let type) = self { type.name } else { nil }
    }
}
