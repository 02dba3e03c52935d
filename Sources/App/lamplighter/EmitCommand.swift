// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Entrypoint
import PushModel
import RecordFormats
import Worker

struct EmitCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "emit",
        abstract: "Writes one event: what is shown under this subject has changed.",
        discussion: """
            Nothing is written that no worker of this configuration could read. Without any option \
            but --topic the record has the subject as its key and no value.
            """)

    @OptionGroup var options: ConfigurationOption

    @Argument(help: "The subject that has changed; also the record's key.")
    var subject: String?

    @Option(
        help: """
            The events topic, one of kafka.events; needed where several are configured and none of \
            them is lamplighter.events.
            """)
    var topic: String?

    @Option(help: "The app, where several are configured.")
    var app: String?

    @Option(help: "production or development; by default all of the app's.")
    var environment: String?

    @Option(
        name: .customLong("kind"),
        help: """
            Only targets of this kind; may be repeated. Without a subject: every control and widget of \
            the kind.
            """)
    var kinds: [String] = []

    @Flag(help: "Every control and widget of the app, without a subject.")
    var all = false

    @Option(
        help: """
            Only the tokens of this installation, without a subject; also the record's key. Needs \
            intake.allowInstallations.
            """)
    var installation: String?

    @Option(
        help: "For how long the push is worth sending, such as 30s or 2h.",
        transform: { try DurationArgument($0, atLeast: .zero) })
    var ttl: DurationArgument?

    @Option(help: "apns-priority: 10, 5 or 1.")
    var priority: UInt8?

    @Option(name: .customLong("collapse-id"), help: "At most 64 bytes; for events with a payload.")
    var collapseID: String?

    @Option(
        name: .customLong("push-type"),
        help: "apns-push-type, such as liveactivity or voip; by default the payload tells it.")
    var pushType: String?

    @Option(help: "The push's body: a JSON object, for most push types with an aps dictionary.")
    var payload: String?

    func validate() throws {
        if subject == nil, kinds.isEmpty, !all, installation == nil {
            throw ValidationError("a subject is missing, or --kind, --all or --installation")
        }
        if installation != nil, subject != nil || all {
            throw ValidationError("--installation goes without a subject and without --all")
        }
        if all, subject != nil || !kinds.isEmpty {
            throw ValidationError("--all goes without a subject and without --kind")
        }
        if collapseID != nil, payload == nil {
            throw ValidationError(
                "--collapse-id goes with --payload: without one a push says \"look again\", and has "
                    + "none")
        }
        if let ttl, ttl.duration.components.attoseconds != 0 {
            throw ValidationError("--ttl is in whole seconds")
        }
    }

    func run() async throws {
        let configuration = try options.load()
        let trial = RecordTrial(WorkerPlan(configuration), now: RecordWriter.now().wall)
        let draft = try event()
        let topic = try Arguments.trying { () throws(UselessRecord) in
            try trial.topicOfEvents(named: self.topic)
        }
        let event = try Arguments.trying { () throws(UselessRecord) in
            try trial.event(draft, key: key, topic: topic)
        }
        let writer = try RecordWriter(configuration, topics: [topic])
        try writer.write(key: Array(key.utf8), value: event.value)
        let what = key.isEmpty ? (all ? "all" : kinds.joined(separator: ", ")) : key
        let reading = event.subject == key ? "" : ", which reads it as \(event.subject)"
        print("emitted \(what) to \(topic) for \(event.app)\(reading)")
    }

    /// The events of one key are read in order.
    private var key: String { subject ?? installation ?? "" }

    /// The event; nil if no option is set, so that the record's key is enough.
    private func event() throws -> EventDraft? {
        let isPlain =
            app == nil && environment == nil && kinds.isEmpty && ttl == nil && priority == nil
            && payload == nil && pushType == nil && subject != nil
        if isPlain { return nil }
        var event = EventDraft()
        event.subject = subject
        event.app = app
        event.environment = try environment.map(Arguments.environment)
        event.kinds = kinds
        event.all = all
        event.installation = installation
        event.ttlSeconds = ttl?.duration.components.seconds
        event.priority = priority
        event.collapseID = collapseID
        event.pushType = try pushType.map(Arguments.pushType)
        event.payload = payload.map { Array($0.utf8) }
        return event
    }
}
