// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Pipeline
internal import PushModel

/// A restriction in an answer of `/explain`, as JSON; docs/commands.md describes it.
package struct RestrictionReply: Codable, Sendable, Equatable {
    package var what: String
    /// What it is about: `pushes` or `events`.
    package var about: String
    /// `pause`, `drop`, `limit` or `rollout`.
    package var action: String
    package var perSecond: Int?
    /// Of a rollout: how many of a hundred tokens are sent to by its last step, and its last two steps.
    package var percent: Int?
    package var steps: String?
    package var by: String
    package var reason: String?
    package var at: String
    package var until: String?
    /// When the worker ceased to follow it; nil while it is in force.
    package var endedAt: String?
    /// The command that lifts it; nil once it is over, and for one of the configuration.
    package var lift: String?
}

extension RestrictionReply {
    init(_ explained: ExplainedRestriction) {
        let restriction = explained.restriction
        what = "\(explained.scope)"
        about =
            switch explained.scope {
            case .pushes, .rollout: "pushes"
            case .subject, .topic: "events"
            }
        action = restriction.action.word
        perSecond = restriction.action.perSecond
        let rollout = restriction.action.rollout
        percent = rollout?.steps.last?.percent
        steps = rollout?.steps.suffix(2)
            .map { "\($0.percent) % from \($0.from.rfc3339) on" }.joined(separator: ", ")
        by = restriction.by.printable
        reason = restriction.reason?.printable
        at = restriction.at.rfc3339
        until = restriction.until?.rfc3339
        endedAt = explained.endedAt?.rfc3339
        let canBeLifted =
            endedAt == nil && !restriction.isConfigured
            && rollout?.steps.last?.percent ?? 100 == 100
        lift = canBeLifted ? explained.scope.resumeCommand : nil
    }

    private var isConfigured: Bool { by == ConfiguredRestriction.by }

    /// What it means, and how to end it.
    package var sentence: String {
        let author = isConfigured ? "The configuration" : "An operator"
        guard endedAt == nil else { return "\(author) \(past) \(about) of \(what) (\(details))." }
        if let steps {
            return
                "\(what): \(steps) of its tokens are sent to, and the others are left to another "
                + "sender (\(details)). To change that: lamplighter rollout"
        }
        let remedy =
            isConfigured ? "To end that, take it out of \(by)." : "To end that: \(lift ?? "")"
        return "\(author) \(present) \(about) of \(what): \(effect) (\(details)). \(remedy)"
    }

    /// Part of a sentence about a push that was dropped.
    package var clause: String {
        let author = isConfigured ? "the configuration" : "an operator"
        let verb = endedAt == nil ? "drops" : past
        return "\(author) \(verb) \(about) of \(what) (\(details))"
    }

    private var details: String {
        let start = at.secondInUTC
        let end = (endedAt ?? until).map { "until \($0.secondInUTC)" }
        guard !isConfigured else { return end.map { "from \(start) \($0)" } ?? "since \(start)" }
        let why = reason.map { "; \"\($0)\"" } ?? ""
        return endedAt == nil
            ? "by \(by) since \(start), \(end ?? "until it is resumed")\(why)"
            : "by \(by) from \(start) \(end ?? "")\(why)"
    }

    private var past: String {
        switch action {
        case "pause": "paused"
        case "drop": "dropped"
        default: "limited"
        }
    }

    private var present: String {
        guard isConfigured else { return "has \(past)" }
        return switch action {
        case "pause": "pauses"
        case "drop": "drops"
        default: "limits"
        }
    }

    private var effect: String {
        switch (action, about) {
        case ("pause", "events"): "they stay in Kafka"
        case ("pause", _): "they wait"
        case ("drop", "events"): "they reach nobody"
        case ("drop", _): "none is sent"
        default:
            "all workers together send at most \(perSecond ?? 0) a second, and further pushes wait"
        }
    }
}

extension Restriction.Scope {
    /// The command that lifts a restriction of this.
    var resumeCommand: String {
        let options: [(String, String)] =
            switch self {
            case .pushes(let app, let tokenClass):
                [("app", app), ("class", tokenClass?.name)].compactMap { name, value in
                    value.map { (name, $0) }
                }
            case .subject(let subject, let app):
                [("app", app), ("subject", String(decoding: subject, as: UTF8.self))]
            case .topic(let topic): [("topic", topic)]
            case .rollout(let app): [("rollout", app)]
            }
        return options.reduce("lamplighter resume") { command, option in
            // Where it begins like an option, the parser would take it for one.
            let separator = option.1.hasPrefix("-") ? "=" : " "
            return command + " --\(option.0)\(separator)\(option.1.shellWord)"
        }
    }
}

extension String {
    /// Itself as one word of a shell's command line.
    var shellWord: String {
        let isPlain = unicodeScalars.allSatisfy {
            $0.properties.isAlphabetic || ("0"..."9").contains($0)
                || "-_./:@+,".unicodeScalars.contains($0)
        }
        guard !isPlain || isEmpty else { return self }
        return "'"
            + split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''")
            + "'"
    }
}
