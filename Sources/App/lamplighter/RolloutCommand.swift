// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Configuration
import Entrypoint
import PushModel
import RecordFormats
import Worker

struct RolloutCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "rollout",
        abstract:
            "Says to how many of an app's tokens all workers send, while another sender serves the others.",
        discussion: """
            Each token has a number from 0 to 99: the first 4 bytes of its SHA-256, as a big-endian \
            number, modulo 100. Those below the percentage are sent to; the other sender takes the \
            others. A percentage is in force for events that are written from a time on, so that both \
            senders change at the same event; the first one for all before, too. `resume --rollout` ends a \
            rollout that is at 100 %.
            """)

    @OptionGroup var options: ConfigurationOption

    @Option(help: "The app's bundle identifier.")
    var app: String

    @Option(help: "To so many of a hundred tokens, from 0 to 100.")
    var percent: Int

    @Option(
        help: ArgumentHelp(
            "From events of this time on, as in 2026-11-21T06:00:00Z; by default 10 s from now.",
            valueName: "time"))
    var from: String?

    @Option(
        name: .customLong("token-id"),
        help: ArgumentHelp(
            "A token that is sent to in any case, by the first 16 digits of its SHA-256; up to 100. Without "
                + "any, those of the last step stay.",
            valueName: "id"))
    var tokenIDs: [String] = []

    @Flag(
        name: .customLong("no-token-ids"), help: "Send to no token in any case any more.")
    var forgetTokenIDs = false

    @Option(
        name: .customLong("class"),
        help: ArgumentHelp(
            "A class of tokens that the other sender has as well; may be repeated. By default those of the last "
                + "step, at first device: what other senders have.", valueName: "class"))
    var classes: [String] = []

    @OptionGroup var author: RestrictionAuthor

    func validate() throws {
        guard RecordLimits.percent.contains(Int64(percent)) else {
            throw ValidationError("--percent is from 0 to 100")
        }
        guard from.map({ WallTime(rfc3339: $0) != nil }) ?? true else {
            throw ValidationError("--from is an instant such as 2026-11-21T06:00:00Z")
        }
        guard tokenIDs.count <= RecordLimits.rolloutTokensMax else {
            throw ValidationError("at most \(RecordLimits.rolloutTokensMax) tokens can be named")
        }
        for text in tokenIDs where TokenName(written: text) == nil {
            throw ValidationError(
                "--token-id '\(TerminalText.visible(text))' is not 16 hexadecimal digits")
        }
    }

    func run() async throws {
        let configuration = try options.load()
        _ = try Arguments.app(app, in: WorkerPlan(configuration).routing)
        let scope = Restriction.Scope.rollout(app: app)
        let (by, reason) = (try author.name(), try author.checkedReason())
        // What is in force until then must be known, or events of before would be judged by a guess.
        let read = try RestrictionTable(configuration, within: .seconds(30)).standing[scope]
        let writer = try RecordWriter(
            configuration, topics: [configuration.kafka.topics.restrictions])
        let now = RecordWriter.now().wall
        let rollout = try next(after: read?.action.rollout, now: now)
        var restriction = Restriction(.rollout(rollout), by: by, at: now)
        restriction.reason = reason
        try writer.write(
            key: RecordKey.restriction(scope), value: RestrictionEncoder.value(restriction))
        let named = rollout.tokens.isEmpty ? "" : " and to \(rollout.tokens.count) that are named"
        print(
            "\(scope): to \(rollout.text(at: now)) of its tokens\(named), by "
                + "\(TerminalText.visible(by)); \(othersPart)")
        try checkNobodyElse(has: scope, since: read, ours: restriction, configuration)
    }

    /// Two operators at once read the same record, and the later one's replaces the other's unseen.
    private func checkNobodyElse(
        has scope: Restriction.Scope, since read: Restriction?, ours: Restriction,
        _ configuration: Configuration
    ) throws {
        let steps = try RestrictionHistory(configuration).changes
            .filter { $0.what == "\(scope)" && $0.action == ours.action.word }
        let others = steps.filter { step in
            step.at.map { $0 > read?.at.rfc3339 ?? "" } ?? false
                && (step.at != ours.at.rfc3339 || step.by != ours.by)
        }
        guard let other = others.last else { return }
        StandardError.write(
            "meanwhile somebody else has taken a step, and one of the two has replaced the other: "
                + "\(other.line()); see lamplighter restrictions, and tell the other sender")
        throw ExitCode.failure
    }

    /// A step that has not begun is replaced: the way back must not wait for it.
    private func next(after standing: Rollout?, now: WallTime) throws -> Rollout {
        let at = from.flatMap { WallTime(rfc3339: $0) } ?? now + Self.lead
        guard at >= now + Self.leadMin, at <= now + Self.leadMax else {
            throw ValidationError(
                "--from is \(at.rfc3339); workers need until \((now + Self.leadMin).rfc3339) to read it, "
                    + "and a step is at most 7 days ahead")
        }
        var former = standing?.steps ?? []
        // The first one counts for all before it, so it is in force already.
        if let first = former.first { former[0].from = min(first.from, now) }
        let begun = former.filter { $0.from <= now }.suffix(Rollout.stepsMax - 1)
        var named = Set(tokenIDs.compactMap { TokenName(written: $0)?.number })
        if tokenIDs.isEmpty, !forgetTokenIDs { named = Set(standing?.tokens ?? []) }
        return Rollout(
            begun + [Rollout.Step(percent: percent, from: at)],
            of: try chosenClasses ?? standing?.classes ?? TokenClassSet(.device),
            tokens: named.sorted())
    }

    private var chosenClasses: TokenClassSet? {
        get throws {
            guard !classes.isEmpty else { return nil }
            return TokenClassSet(
                try classes.map { TokenClassSet(try Arguments.tokenClass($0)) })
        }
    }

    private var othersPart: String {
        switch percent {
        case 100: "the other sender takes none"
        case 0: "the other sender takes all"
        default: "the other sender takes those whose number is \(percent) to 99"
        }
    }

    /// Workers follow within a second; this is for one that is slow.
    private static let lead = Duration.seconds(10)
    private static let leadMin = Duration.seconds(3)
    private static let leadMax = Duration.seconds(7 * 24 * 3600)
}
