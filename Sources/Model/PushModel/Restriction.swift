// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// What an operator has restricted for the whole fleet, until it is lifted.
package struct Restriction: Sendable, Equatable {
    package enum Action: Sendable, Hashable, CustomStringConvertible {
        /// Pushes wait: those of an app or a class in `deferred`, the events of a topic in Kafka.
        case pause
        /// Pushes and events end unsent, and are counted.
        case drop
        /// So many pushes a second, of all workers together.
        case limit(perSecond: Int)
        /// Only some tokens are sent to; the others are left to another sender.
        case rollout(Rollout)

        package var description: String {
            switch self {
            case .limit(let rate): "limit to \(rate)/s"
            case .rollout(let rollout):
                "rollout to \(rollout.steps.last!.percent) % from \(rollout.steps.last!.from.rfc3339) on"
            default: word
            }
        }

        package var word: String {
            switch self {
            case .pause: "pause"
            case .drop: "drop"
            case .limit: "limit"
            case .rollout: "rollout"
            }
        }

        /// The most pushes a second; nil for what is no limit.
        package var perSecond: Int? {
            if case .limit(let rate) = self { rate } else { nil }
        }

        package var rollout: Rollout? {
            if case .rollout(let rollout) = self { rollout } else { nil }
        }

        /// Whether this lets less go than the other.
        package func isStricter(than other: Action) -> Bool {
            switch (self, other) {
            case (.limit(let rate), .limit(let otherRate)): rate < otherRate
            case (.drop, .pause), (.drop, .limit), (.pause, .limit): true
            default: false
            }
        }
    }

    /// What a restriction is about.
    package enum Scope: Sendable, Hashable, CustomStringConvertible {
        /// The pushes of an app, of a class, or of an app's class; never neither.
        case pushes(app: String?, tokenClass: TokenClass?)
        /// The events of a subject of an app.
        case subject([UInt8], app: String)
        /// The events of a topic.
        case topic(String)
        /// To which tokens of an app pushes go.
        case rollout(app: String)

        package var description: String {
            switch self {
            case .pushes(let app, let tokenClass):
                [app.map { "app \($0)" }, tokenClass.map { "class \($0.name)" }]
                    .compactMap { $0 }.joined(separator: ", ")
            case .subject(let subject, let app):
                "app \(app), subject \"\(String(decoding: subject, as: UTF8.self).printable)\""
            case .topic(let topic): "topic \(topic)"
            case .rollout(let app): "rollout of app \(app)"
            }
        }
    }

    package var action: Action
    /// When it ends by itself; nil if only an operator lifts it.
    package var until: WallTime?
    /// Who asked for it, as they say.
    package var by: String
    package var reason: String?
    /// When it was asked for.
    package var at: WallTime

    package init(_ action: Action, by: String, at: WallTime) {
        self.action = action
        self.by = by
        self.at = at
    }

    /// Whether the configuration has it, so that no operator can lift it.
    package var isConfigured: Bool { by == ConfiguredRestriction.by }

    /// Subjects are looked up event by event, so an event either ends or goes on; and the events of a
    /// topic wait in Kafka, from where they are read as fast as they can be.
    package static func isPossible(_ action: Action, for scope: Scope) -> Bool {
        switch (action, scope) {
        case (.rollout, .rollout): true
        case (.rollout, _), (_, .rollout): false
        case (_, .pushes), (.drop, _), (.pause, .topic): true
        default: false
        }
    }
}

/// A restriction that the configuration has: it is in force while it is written there.
package struct ConfiguredRestriction: Sendable, Hashable {
    package var scope: Restriction.Scope
    package var action: Restriction.Action

    package init(_ action: Restriction.Action, _ scope: Restriction.Scope) {
        self.scope = scope
        self.action = action
    }

    /// Who has asked for it, where records name an operator.
    package static let by = "planning.restrictions"
}
