// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Configuration
import Foundation
import PushModel
import RecordFormats
import Worker

struct RegisterCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "register",
        abstract: "Writes one registration: what one handler of one installation shows.",
        discussion: """
            It is a snapshot, and replaces what this handler showed before. The options describe one \
            with one target; --file takes any, as docs/schemas/registration.schema.json describes \
            it. Nothing is written that a worker of this configuration would pass over. --remove \
            takes the registration away.
            """)

    @OptionGroup var options: ConfigurationOption

    @Option(
        help: ArgumentHelp(
            "The whole registration in JSON; - is standard input.", valueName: "file"))
    var file: String?

    @Option(help: "production or development.")
    var environment: String?

    @Option(help: "The app's bundle identifier.")
    var app: String?

    @Option(help: "The installation's identifier.")
    var installation: String?

    @Option(help: "The push handler's name.")
    var handler: String?

    @Option(name: .customLong("class"), help: "control, widget, device, … (default: control)")
    var tokenClass: String?

    @Option(
        help: """
            The push token in hexadecimal, or of class channel the channel's ID in base64; a \
            control may have none yet.
            """)
    var token: String?

    @Option(help: "The kind of the control or widget.")
    var kind: String?

    @Option(name: .customLong("subject"), help: "A subject that it shows; may be repeated.")
    var subjects: [String] = []

    @Option(
        help: ArgumentHelp(
            """
            background: a device that a plain event sends a background push; location: a location \
            token that a plain event asks where the device is.
            """,
            valueName: "push-type"))
    var onChange: String?

    @Flag(help: "Of a Live Activity: the token is the one that starts activities.")
    var pushToStart = false

    @Flag(help: "Remove the registration.")
    var remove = false

    /// To be called by `run` and not named `validate`: that is called before an unknown option is
    /// reported, so that a misspelt one would be told as one that is missing.
    private func checkArguments() throws {
        let describesTarget =
            tokenClass != nil || token != nil || kind != nil || !subjects.isEmpty || onChange != nil
            || pushToStart
        if file != nil, describesTarget || remove {
            throw ValidationError("--file is the whole registration: leave out what it has")
        }
        if remove, describesTarget {
            throw ValidationError(
                "--remove takes the whole registration away: leave out the target")
        }
        guard file == nil else { return }
        for (name, value) in [
            ("environment", environment), ("app", app), ("installation", installation),
            ("handler", handler),
        ] where value == nil {
            throw ValidationError("--\(name) is missing, or --file")
        }
    }

    func run() async throws {
        try checkArguments()
        let (draft, value) = try file.map(read) ?? describe()
        for part in [draft.app, draft.installation, draft.handler]
        where !RecordKey.isPart(part) {
            throw ValidationError("'\(part)' must be 1 to 128 of A-Z a-z 0-9 . _ ~ -")
        }
        let configuration = try options.load()
        let key = RegistrationEncoder.key(draft)
        var notes: [String] = []
        if let value {
            let trial = RecordTrial(WorkerPlan(configuration), now: RecordWriter.now().wall)
            notes = try Arguments.trying { () throws(UselessRecord) in
                try trial.registration(key: key, value: value)
            }
        }
        let writer = try RecordWriter(
            configuration, topics: [configuration.kafka.topics.registrations])
        try writer.write(key: key, value: value)
        print(
            "\(value == nil ? "removed" : "registered") \(String(decoding: key, as: UTF8.self))"
        )
        for note in notes { print("note    \(TerminalText.visible(note))") }
    }

    // MARK: From a file

    /// The parts of the record's key, which its value repeats.
    private struct KeyParts: Decodable {
        var environment, app, installation, handler: String?
    }

    private func read(_ file: String) throws -> (RegistrationDraft, [UInt8]?) {
        let value = try Arguments.contents(of: file)
        guard let parts = try? JSONDecoder().decode(KeyParts.self, from: Data(value)) else {
            throw ValidationError("--file: \(file) is not a registration in JSON")
        }
        func part(_ name: String, _ option: String?, _ member: String?) throws -> String {
            guard let part = option ?? member else {
                throw ValidationError("--file: \(file) has no \(name)")
            }
            return part
        }
        let draft = RegistrationDraft(
            environment: try Arguments.environment(
                part("environment", environment, parts.environment)),
            app: try part("app", app, parts.app),
            installation: try part("installation", installation, parts.installation),
            handler: try part("handler", handler, parts.handler))
        // The value is written unchanged, with any members beyond the contract.
        return (draft, value)
    }

    // MARK: From options

    private func describe() throws -> (RegistrationDraft, [UInt8]?) {
        var draft = RegistrationDraft(
            environment: try Arguments.environment(environment!), app: app!,
            installation: installation!, handler: handler!)
        guard !remove else { return (draft, nil) }
        draft.registeredAt = RecordWriter.now().wall
        let word = tokenClass ?? TokenClass.control.name
        guard let tokenClass = TokenClass(name: word) else {
            throw ValidationError(
                "'\(word)' is not a class: "
                    + TokenClass.allCases.map(\.name).joined(separator: ", "))
        }
        guard token != nil || tokenClass == .control else {
            throw ValidationError("--token is missing: only a control can be without one")
        }
        let change = tokenClass.hearsChangesOnDemand ? tokenClass.changeType?.name : nil
        guard onChange == nil || onChange == change else {
            throw ValidationError(
                change.map { "--on-change can only be \($0)" }
                    ?? "--on-change is for classes device and location alone")
        }
        guard !pushToStart || tokenClass == .liveActivity else {
            throw ValidationError("--push-to-start is for class liveActivity alone")
        }
        var target = RegistrationDraft.Target(
            tokenClass: tokenClass,
            token: try token.map {
                tokenClass == .channel ? try Arguments.channelID($0).bytes : try Arguments.token($0)
            },
            shows: kind == nil && subjects.isEmpty
                ? [] : [RegistrationDraft.Show(kind: kind, subjects: subjects)])
        target.hearsChanges = onChange != nil || pushToStart
        draft.targets = [target]
        return (draft, RegistrationEncoder.value(draft))
    }
}
