// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Intake
import PushModel
import Worker

struct RegisterCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "register",
        abstract: "Writes one registration: what one handler of one installation shows.",
        discussion: """
            It is a snapshot with one target, and replaces what this handler showed before. \
            --remove takes the registration away.
            """)

    @OptionGroup var options: ConfigurationOption

    @Option(help: "production or development.")
    var environment: String

    @Option(help: "The app's bundle identifier.")
    var app: String

    @Option(help: "The installation's identifier.")
    var installation: String

    @Option(help: "The push handler's name.")
    var handler: String

    @Option(name: .customLong("class"), help: "control, widget, device, …")
    var tokenClass = "control"

    @Option(help: "The push token in hexadecimal.")
    var token: String?

    @Option(help: "The kind of the control or widget.")
    var kind: String?

    @Option(name: .customLong("subject"), help: "A subject that it shows; may be repeated.")
    var subjects: [String] = []

    @Flag(help: "A device token that hears changes by background push.")
    var onChange = false

    @Flag(help: "Remove the registration.")
    var remove = false

    func run() async throws {
        try await Failure.reporting {
            for part in [app, installation, handler] where !RecordKey.isPart(part) {
                throw ValidationError("'\(part)' must be 1 to 128 of A-Z a-z 0-9 . _ ~ -")
            }
            let draft = try registration()
            let configuration = try options.load()
            let writer = try RecordWriter(
                configuration, topics: [configuration.kafka.topics.registrations])
            try writer.write(
                key: RegistrationEncoder.key(draft),
                value: remove ? nil : RegistrationEncoder.value(draft))
            print("\(remove ? "removed" : "registered") \(app)/\(installation)/\(handler)")
        }
    }

    private func registration() throws -> RegistrationDraft {
        var draft = RegistrationDraft(
            environment: try Arguments.environment(environment), app: app,
            installation: installation, handler: handler)
        draft.registeredAt = RecordWriter.now().wall
        guard !remove else { return draft }
        guard let token else { throw ValidationError("--token is missing") }
        guard let tokenClass = TokenClass(name: tokenClass) else {
            throw ValidationError(
                "'\(tokenClass)' is not a class: "
                    + TokenClass.allCases.map(\.name).joined(separator: ", "))
        }
        var target = RegistrationDraft.Target(
            tokenClass: tokenClass, token: try Arguments.token(token),
            shows: [RegistrationDraft.Show(kind: kind, subjects: subjects)])
        target.hearsChanges = onChange
        draft.targets = [target]
        return draft
    }
}
