// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Checker
import Entrypoint

struct VerifyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "verify",
        abstract: "Proves from the logs of a run that no push was lost.",
        discussion: """
            For each event and each token that it was owed to, it looks for an accepted push sent \
            after the event, or for the record of another end: a 410, a dead letter, a registration \
            taken back, an expiry that had passed. What has neither is lost. It shares no code with \
            the worker but the binding to librdkafka, through which it reads topics; where every \
            input is a file it shares none.

            Prints one line of JSON; what was lost goes to standard error. Registrations, dead \
            letters and suppressions are files with one {"t":ms,"key":…,"value":…} a line or, with \
            --bootstrap, topics of that Kafka; a name with a / in it is always a file's.

            Exit codes: 0; 1 something was lost, or the broker dropped it; 64 usage; 65 an input \
            cannot be read, or nothing was owed.
            """)

    @Option(help: ArgumentHelp("The produced-events log.", valueName: "file"))
    var events: String

    @Option(help: ArgumentHelp("The APNs simulator's log.", valueName: "file"))
    var answers: String

    @Option(help: ArgumentHelp("A Kafka to read topics from.", valueName: "host:port,…"))
    var bootstrap: String?

    @Option(help: ArgumentHelp("The registrations.", valueName: "topic or file"))
    var registrations: String

    @Option(help: ArgumentHelp("The dead letters.", valueName: "topic or file"))
    var deadLetters: String?

    @Option(help: ArgumentHelp("The suppressions.", valueName: "topic or file"))
    var suppressions: String?

    @Option(
        help: ArgumentHelp(
            #"Oldest offsets, {"topic":…,"partition":…,"low":…} a line; Kafka is asked if absent."#,
            valueName: "file"))
    var lowWatermarks: String?

    @Option(help: "Seconds around an event in which a registration counts either way.")
    var registrationGrace = 2.0

    @Option(help: "Seconds after an event in which a registration taken back ends what it owed.")
    var patience = 30.0

    @Option(help: "Seconds that a push lives unless its event says otherwise.")
    var ttl = 86_400.0

    @Option(
        help: "Nanoseconds since 1970 until which expiry can have passed (default: the logs' end).")
    var endedAt: Int64?

    @Option(help: "How many workers were killed during the run; reported, not judged.")
    var kills = 0

    @Option(help: ArgumentHelp("The same as a log, one kill a line.", valueName: "file"))
    var killsLog: String?

    func validate() throws {
        for (name, value) in [
            ("registration-grace", registrationGrace), ("patience", patience), ("ttl", ttl),
        ] {
            guard (0...1e9).contains(value) else {
                throw ValidationError("--\(name) is from 0 to 1e9 seconds")
            }
        }
        guard kills >= 0 else { throw ValidationError("--kills cannot be negative") }
    }

    func run() throws {
        var check = DeliveryCheck(try settings())
        let report = try check.run()
        print(report.json)
        for line in report.lines { StandardError.write(line) }
        StandardError.write(report.summary)
        if !report.isProven { throw ExitCode(1) }
        guard report.obligations > 0 else {
            // A mistyped topic name must not look like a proof.
            throw UnreadableInput(
                registrations, "nothing was owed: no event is about what it shows")
        }
    }

    private func settings() throws(UnreadableInput) -> CheckSettings {
        var settings = CheckSettings(
            events: events, answers: answers, registrations: source(registrations))
        settings.deadLetters = deadLetters.map(source)
        settings.suppressions = suppressions.map(source)
        settings.lowWatermarks = lowWatermarks
        settings.bootstrap = bootstrap
        settings.registrationGrace = .seconds(registrationGrace)
        settings.patience = .seconds(patience)
        settings.ttl = .seconds(ttl)
        settings.endedAt = endedAt
        settings.kills = try kills + (killsLog.map(CheckSettings.lineCount(of:)) ?? 0)
        return settings
    }

    private func source(_ name: String) -> CheckSettings.Source {
        bootstrap == nil || name.contains("/") ? .file(name) : .topic(name)
    }
}
