// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Pipeline
internal import PushModel
internal import RecordFormats

extension Diagnosis {
    /// Events that wait for an operator.
    mutating func checkWithheldEvents() {
        for withheld in status.withheldEvents
        where status.at - withheld.at < .seconds(24 * 3600) {
            report(withheld)
        }
    }

    private mutating func report(_ withheld: WithheldEvent) {
        let count = status.counters.eventsWithheld
        let more = count > 1 ? " (\(count) were withheld since the start)" : ""
        report(
            .warning,
            "event \(withheld.source.text.printable) is withheld: it is for "
                + "\(withheld.tokens) tokens, more than planning.fanOutMax\(more)",
            "release it with lamplighter dead-letters redrive --event "
                + "\(withheld.source.text.printable), or leave it")
    }

    /// What operators have restricted. It is meant, and yet whoever looks at a worker that does not
    /// send must read it here.
    mutating func checkRestrictions() {
        if status.lacksRestrictions {
            report(
                .error,
                "the worker has started without the restrictions, since their topic cannot be read: "
                    + "what operators have paused, dropped or limited is sent",
                "restore the leaders of the topic's partitions, or the right to read it "
                    + "(kafka.topics.restrictions); to stop pushes meanwhile use planning.restrictions"
            )
        }
        let sorted = status.restrictions.sorted { "\($0.key)" < "\($1.key)" }
        if sorted.count > Self.restrictionsNamed {
            report(
                .warning, "\(sorted.count) restrictions are in force; the first of them follow",
                "list them with lamplighter restrictions")
        }
        for (scope, restriction) in sorted.prefix(Self.restrictionsNamed) {
            guard !restriction.isConfigured else {
                report(
                    .warning, "the configuration has restricted \(scope) (\(restriction.action))",
                    "take it out of \(ConfiguredRestriction.by) when it is no longer wanted")
                continue
            }
            let why = restriction.reason.map { ": \($0.printable)" } ?? ""
            if case .rollout(let app) = scope, let rollout = restriction.action.rollout {
                report(
                    .warning,
                    "\(rollout.text(at: status.at)) of the tokens of \(app) are sent to, and the others are "
                        + "left to another sender (by \(restriction.by.printable)\(why))",
                    "take the next step with lamplighter rollout; at 100 % end it with "
                        + scope.resumeCommand)
                continue
            }
            report(
                .warning,
                "an operator has restricted \(scope) (\(restriction.action), by "
                    + "\(restriction.by.printable) at \(restriction.at.rfc3339)\(why))",
                "lift it with \(scope.resumeCommand) when it is no longer wanted")
        }
    }

    /// More would hide what else is wrong.
    private static var restrictionsNamed: Int { 8 }
}
