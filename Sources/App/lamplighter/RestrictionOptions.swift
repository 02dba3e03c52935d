// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Configuration
import Entrypoint
import Foundation
import KafkaLog
import PushModel
import RecordFormats
import Worker

/// The options that say what a restriction is about.
struct RestrictionScope: ParsableArguments {
    @Option(help: "The app's bundle identifier.")
    var app: String?

    @Option(name: .customLong("class"), help: "A class of token, such as control or device.")
    var tokenClass: String?

    @Option(help: "A subject of --app; only to be dropped.")
    var subject: String?

    @Option(help: "An events topic, one of kafka.events.")
    var topic: String?

    @Option(help: "The app whose rollout is to be lifted; set by `rollout`.")
    var rollout: String?

    var isEmpty: Bool {
        app == nil && tokenClass == nil && subject == nil && topic == nil && rollout == nil
    }

    /// What is named, which the configuration must have.
    func scope(in configuration: Configuration) throws -> Restriction.Scope {
        if let app { _ = try Arguments.app(app, in: WorkerPlan(configuration).routing) }
        let scope = try scope()
        if case .topic(let topic) = scope, configuration.kafka.events[topic] == nil {
            throw Failure(
                .configuration,
                "\(TerminalText.visible(topic)) is none of kafka.events: "
                    + configuration.kafka.events.keys.sorted().joined(separator: ", "))
        }
        return scope
    }

    /// What is named.
    func scope() throws -> Restriction.Scope {
        if let rollout {
            guard app == nil, tokenClass == nil, subject == nil, topic == nil else {
                throw ValidationError("--rollout names an app alone")
            }
            return .rollout(app: rollout)
        }
        switch (app, tokenClass, subject, topic) {
        case (nil, nil, nil, let topic?):
            return .topic(topic)
        case (let app?, nil, let subject?, nil):
            guard RecordLimits.subjectBytes.contains(subject.utf8.count) else {
                throw ValidationError("a subject has 1 to \(RecordLimits.subjectBytesMax) bytes")
            }
            return .subject(Array(subject.utf8), app: app)
        case (let app, let name, nil, nil) where app != nil || name != nil:
            return .pushes(app: app, tokenClass: try name.map(Arguments.tokenClass))
        default:
            throw ValidationError(
                "name one of: --app, --class, --app with --class, --app with --subject, --topic")
        }
    }
}

/// What `pause`, `drop` and `limit` share.
struct RestrictionDetails: ParsableArguments {
    @Option(
        name: .customLong("for"),
        help: "How long, from 1s to 366d, such as 30m or 2h; by default until `resume`.",
        // A restriction that ends as it begins would only lift what stood before.
        transform: { try DurationArgument($0, atLeast: .seconds(1)) })
    var duration: DurationArgument?

    @OptionGroup var author: RestrictionAuthor

    func restrict(
        _ action: Restriction.Action, _ scope: RestrictionScope, _ options: ConfigurationOption,
        _ done: String
    ) throws {
        let configuration = try options.load()
        let scope = try scope.scope(in: configuration)
        guard Restriction.isPossible(action, for: scope) else {
            throw ValidationError(
                "\(action.word) is not possible for a \(scope.kind): "
                    + (scope.isOfSubject ? "drop it, or pause the app" : "pause or drop it"))
        }
        let (by, reason) = (try author.name(), try author.checkedReason())
        let writer = try RecordWriter(
            configuration, topics: [configuration.kafka.topics.restrictions])
        // It is read before the record is written, which would else be what stands.
        let look = look(configuration)
        let notes = notes(of: action, scope, configuration, look.standing)
        let now = RecordWriter.now().wall
        var restriction = Restriction(action, by: by, at: now)
        restriction.reason = reason
        restriction.until = duration.map { now + $0.duration }
        try writer.write(
            key: RecordKey.restriction(scope), value: RestrictionEncoder.value(restriction),
            within: look.writeMax)
        let end = restriction.until.map { "until \($0.rfc3339)" } ?? "until it is resumed"
        print(
            "\(done) \(scope), by \(TerminalText.visible(restriction.by)), \(end); workers follow "
                + "within a second")
        for line in notes { print(line) }
    }

    /// How long the command may look for what it replaces before it writes its record.
    private static let lookMax = Duration.seconds(5)

    /// The restrictions that stand, and how long the record may take to be acknowledged. Whoever may
    /// write to the topic need not have the right to read it, and a restriction must not wait for
    /// that; but where no broker has answered in that time, the writer has tried to connect for as long, too.
    private func look(
        _ configuration: Configuration
    ) -> (standing: [Restriction.Scope: Restriction], writeMax: Duration) {
        let ordinary = Duration.seconds(15)
        do {
            return (try RestrictionTable(configuration, within: Self.lookMax).standing, ordinary)
        } catch {
            StandardError.write("cannot tell what it replaces: \(Failure(error).message)")
            return switch error {
            case KafkaError.unreachable, KafkaError.noConnection: ([:], .seconds(1))
            default: ([:], ordinary)
            }
        }
    }

    /// Lines about the restriction of this scope that stands, and about those that count before it.
    private func notes(
        of action: Restriction.Action, _ scope: Restriction.Scope, _ configuration: Configuration,
        _ standing: [Restriction.Scope: Restriction]
    ) -> [String] {
        let notes = RestrictionNotes(action, of: scope)
        var lines = standing[scope].map { [RestrictionNotes.replaced($0)] } ?? []
        lines += notes.staying(besides: standing)
        lines += notes.staying(of: configuration.planning.restrictions)
        return lines.map { TerminalText.visible(sentence: $0) }
    }
}

/// Who restricts or resumes, and why: it is kept in the records, which are the history.
struct RestrictionAuthor: ParsableArguments {
    @Option(help: "Why; shown by status and in the history.")
    var reason: String?

    @Option(help: "Who asks for it; by default the name of the user who runs this.")
    var by: String?

    func name() throws -> String {
        let name = try text(by ?? ProcessInfo.processInfo.userName, "--by")
        guard name != ConfiguredRestriction.by else {
            throw ValidationError("--by: the configuration has the name \(name); take another name")
        }
        return name
    }

    func checkedReason() throws -> String? { try reason.map { try text($0, "--reason") } }

    private func text(_ text: String, _ option: String) throws -> String {
        guard RecordLimits.operatorBytes.contains(text.utf8.count) else {
            throw ValidationError("\(option) has 1 to 256 bytes")
        }
        return text
    }
}

extension Restriction.Scope {
    fileprivate var isOfSubject: Bool { if case .subject = self { true } else { false } }
    fileprivate var kind: String { isOfSubject ? "subject" : "topic" }
}
