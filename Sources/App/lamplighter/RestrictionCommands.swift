// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Configuration
import Entrypoint
import Foundation
import PushModel
import RecordFormats

struct PauseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pause",
        abstract:
            "Pauses the pushes of an app or a class, or the events of a topic, in all workers.",
        discussion: """
            Pushes wait in the deferred topic, and events of a paused topic in Kafka, until `resume` \
            or until the time given. What expires meanwhile (planning.ttl) is not sent.
            """)

    @OptionGroup var options: ConfigurationOption
    @OptionGroup var scope: RestrictionScope
    @OptionGroup var details: RestrictionDetails

    func run() async throws { try details.restrict(.pause, scope, options, "paused") }
}

struct DropCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "drop",
        abstract: "Drops the pushes of an app or a class, or events, in all workers.",
        discussion: """
            What is dropped is never sent, and counted with the outcome `dropped`: pushes, those that \
            wait included, as their turn comes; events of a topic or a subject as they are read.
            """)

    @OptionGroup var options: ConfigurationOption
    @OptionGroup var scope: RestrictionScope
    @OptionGroup var details: RestrictionDetails

    func run() async throws { try details.restrict(.drop, scope, options, "dropped") }
}

struct LimitCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "limit",
        abstract:
            "Limits the pushes of an app or a class to so many a second, in all workers together.",
        discussion: """
            A worker's share of the limit is its share of the group's partitions. Where several limits \
            apply to a push, only the narrowest counts: that of a class of an app, then that of the \
            app, then that of the class. Pushes that wait longer than delivery.holdMax are written to \
            the deferred topic.
            """)

    @OptionGroup var options: ConfigurationOption
    @OptionGroup var scope: RestrictionScope
    @OptionGroup var details: RestrictionDetails

    @Option(help: "The most pushes a second, from 1 to 1000000, such as 500 or 500/s.")
    var rate: String

    func validate() throws { _ = try pushesPerSecond() }

    func run() async throws {
        try details.restrict(
            .limit(perSecond: pushesPerSecond()), scope, options, "limited")
    }

    private func pushesPerSecond() throws -> Int {
        let digits = rate.hasSuffix("/s") ? rate.dropLast(2) : Substring(rate)
        let range = RecordLimits.pushesPerSecond
        guard let number = Int64(digits), range.contains(number) else {
            let remedy = Int64(digits) == 0 ? "; to stop pushes use lamplighter pause" : ""
            throw ValidationError(
                "--rate is a number of pushes a second from \(range.lowerBound) to "
                    + "\(Int(range.upperBound).withCommas), such as 500/s\(remedy)")
        }
        return Int(number)
    }
}

struct ResumeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resume",
        abstract: "Lifts what pause, drop, limit and rollout have restricted.",
        discussion: "Name what was restricted as it was named then; `restrictions` prints it.")

    @OptionGroup var options: ConfigurationOption
    @OptionGroup var scope: RestrictionScope

    @Flag(help: "Lift every restriction, but no rollout.")
    var all = false

    @OptionGroup var author: RestrictionAuthor

    func validate() throws {
        guard all || !scope.isEmpty else {
            throw ValidationError(
                "name what to resume: --app, --class, --app with --class, --app with --subject, "
                    + "--topic, --rollout, or --all")
        }
        guard !all || scope.isEmpty else {
            throw ValidationError("--all lifts everything: leave out what selects")
        }
    }

    func run() async throws {
        let configuration = try options.load()
        // What is named wrongly is told before Kafka is asked.
        let named = try all ? nil : scope.scope()
        // Those that have ended, too: a tombstone is what removes them from Kafka.
        let recorded = try RestrictionTable(configuration).recorded
        if let scope = named {
            guard recorded[scope] != nil else {
                let isConfigured = configuration.planning.restrictions.contains {
                    $0.scope == scope
                }
                StandardError.write(
                    isConfigured
                        ? "\(scope) is restricted by the configuration: take it out of "
                            + ConfiguredRestriction.by
                        : "\(scope) is not restricted: see lamplighter restrictions")
                throw ExitCode.failure
            }
            try Self.check(recorded[scope]?.action.rollout, scope)
            return try lift([scope], configuration)
        }
        // To end an incident must not hand a part of the tokens to two senders.
        let rollouts = recorded.filter { $0.value.action.rollout != nil }.map { "\($0.key)" }
        for scope in rollouts.sorted() { print("\(scope) stays: it is lifted by name") }
        let others = recorded.filter { $0.value.action.rollout == nil }.keys
        if others.isEmpty, rollouts.isEmpty, configuration.planning.restrictions.isEmpty {
            print("nothing is restricted")
        }
        try lift(others.sorted { "\($0)" < "\($1)" }, configuration)
    }

    /// Without a rollout all tokens are sent to, also for events of before that are still to be read.
    private static func check(_ rollout: Rollout?, _ scope: Restriction.Scope) throws {
        let now = RecordWriter.now().wall
        guard let rollout, rollout.steps.last!.percent != 100 || rollout.steps.last!.from > now
        else { return }
        StandardError.write(
            "\(scope) is at \(rollout.text(at: now)): without it all tokens would be sent to. First "
                + "lamplighter rollout --percent 100")
        throw ExitCode.failure
    }

    private func lift(_ scopes: [Restriction.Scope], _ configuration: Configuration) throws {
        let by = try author.name()
        var headers = [(name: RestrictionHistory.byHeader, value: by)]
        if let reason = try author.checkedReason() {
            headers.append((RestrictionHistory.reasonHeader, reason))
        }
        let writer = try RecordWriter(
            configuration, topics: [configuration.kafka.topics.restrictions])
        for scope in scopes {
            try writer.write(key: RecordKey.restriction(scope), value: nil, headers: headers)
            print("resumed \(scope), by \(TerminalText.visible(by))")
        }
        let left = configuration.planning.restrictions.map(\.scope)
            .filter { all || scopes.contains($0) }
        for scope in left { print("\(scope) stays restricted by \(ConfiguredRestriction.by)") }
    }
}

struct RestrictionsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restrictions",
        abstract: "Prints what is paused, dropped, limited and rolled out, a line each.",
        discussion: """
            Those of the configuration given are by \(ConfiguredRestriction.by); `resume` does not \
            lift them.
            """)

    @OptionGroup var options: ConfigurationOption

    @Flag(help: "Print each pause, drop, limit and resume that Kafka still has, oldest first.")
    var history = false

    @Flag(help: "One JSON object a line; the last one is the summary.")
    var json = false

    func run() async throws {
        if history { return try printHistory() }
        let configuration = try options.load()
        let table = try RestrictionTable(configuration)
        let configured = configuration.planning.restrictions.map { ListedRestriction($0) }
        let listed =
            configured
            + table.standing.sorted { $0.value.at < $1.value.at }.map { ListedRestriction($0, $1) }
        for each in listed {
            print(json ? try JSONLine.of(each) : each.line(unended: "until it is resumed"))
        }
        let summary = [
            "restrictions": listed.count, "configured": configured.count,
            "unreadable": table.unreadable,
        ]
        let text =
            listed.count.counted("restriction")
            + (configured.isEmpty ? "" : ", \(configured.count) of them of the configuration")
        print(
            json
                ? try JSONLine.of(["summary": summary])
                : table.unreadable == 0
                    ? text : text + "; \(table.unreadable.counted("record")) unreadable")
    }

    private func printHistory() throws {
        let history = try RestrictionHistory(try options.load())
        for change in history.changes { print(json ? try JSONLine.of(change) : change.line()) }
        let summary = ["changes": history.changes.count, "unreadable": history.unreadable]
        let text = history.changes.count.counted("change")
        print(
            json
                ? try JSONLine.of(["summary": summary])
                : history.unreadable == 0
                    ? text : text + "; \(history.unreadable.counted("record")) unreadable")
    }
}
