// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
internal import Configuration
import Entrypoint
import Foundation
import Importing
import LinuxIO
import PushModel
import Worker

extension RegistrationsCommand {
    struct Import: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "import",
            abstract: "Writes registrations from the data of another sender.",
            discussion: """
                A row becomes a registration whose handler is called imported.CLASS, so nothing that a \
                phone has registered is written over. It is left out if its installation has registered \
                itself, and ends when it does. Rows that were imported before, or seen later, are left \
                out too: to go on after an interruption run the command again. Bad rows are listed with \
                their lines and reasons, and never written in part.
                """)

        @OptionGroup var options: ConfigurationOption
        @OptionGroup var source: ImportOptions
        @OptionGroup var rate: RateOption
        @OptionGroup var trial: ImportTrialOptions

        @Option(
            name: .customLong("subject"),
            help: """
                A template of the subjects of a row, such as user-{id}, with columns in braces; may be \
                repeated.
                """)
        var subjects: [String] = []

        @Option(
            help: ArgumentHelp(
                "A CSV of two columns, key and subject, with further subjects.", valueName: "file"))
        var join: String?

        @Option(help: "The column that has the key of --join.")
        var joinColumn: String?

        @Option(help: "The kind of controls or widgets.")
        var kind: String?

        @Flag(help: "A plain event sends a device a background push.")
        var onChange = false

        @Flag(help: "Of Live Activities: the tokens are those that start activities.")
        var pushToStart = false

        @Option(help: "Leave out what was last seen before: an instant, or for so long: 365d.")
        var seenSince: String?

        @Option(
            name: .customLong("suppress"),
            help: "dead, opted-out: suppress these tokens, where they are left out otherwise.")
        var suppressed: [String] = []

        @Flag(help: "Write rows also if they have been imported before, as with another template.")
        var replace = false

        @Option(
            help: """
                How long to look, at the end, for installations that register themselves (default: \
                20s)
                """,
            transform: { try DurationArgument($0, atLeast: .zero) })
        var follow: DurationArgument?

        /// To be called by `run` and not named `validate`: that is called before an unknown option is
        /// reported, so that a misspelt one would be told as one that is missing.
        private func checkArguments() throws {
            try source.checkArguments()
            guard (join == nil) == (joinColumn == nil) else {
                throw ValidationError("--join and --join-column go together")
            }
            guard !subjects.isEmpty || join != nil else {
                throw ValidationError(
                    "nothing says which subjects a row shows: --subject 'user-{id}', or --join")
            }
            for word in suppressed where word != "dead" && word != "opted-out" {
                throw ValidationError(
                    "--suppress: '\(TerminalText.visible(word))' is neither dead nor opted-out")
            }
            if let seenSince {
                _ = try Arguments.instant(seenSince, now: RecordWriter.now().wall)
            }
            try trial.checkArguments(source)
        }

        func run() async throws {
            try checkArguments()
            let configuration = try options.load()
            let start = ContinuousClock.now
            Allocator.returnFreedMemory()
            var mapper = try source.mapper(templates: subjects, joinColumn: joinColumn)
            mapper.seenSince = try seenSince.map {
                try Arguments.instant($0, now: RecordWriter.now().wall)
            }
            try checkServed(WorkerPlan(configuration).routing)
            let rows = try ImportRows(source, mapper, join: join.map { try JoinFile($0) })
            if let count = trial.trial { try run(trialOf: count, rows, configuration) }
            let tally = try run(rows, configuration)
            let seconds = start.duration(to: .now) / .seconds(1)
            if source.json {
                print(
                    try JSONLine.of(tally.summary(isDryRun: source.dryRun, seconds: seconds)))
            } else {
                for line in tally.lines(isDryRun: source.dryRun) { print(line) }
            }
        }

        /// An app that nothing serves would make every row bad.
        private func checkServed(_ routing: RoutingTable) throws {
            guard let app = source.app else { return }
            _ = try Arguments.app(app, in: routing)
        }

        private func run(_ rows: ImportRows, _ configuration: Configuration) throws -> ImportTally {
            var settings = ImportSettings()
            settings.kind = kind
            settings.hearsChanges = onChange || pushToStart
            settings.suppressesDead = suppressed.contains("dead")
            settings.suppressesOptedOut = suppressed.contains("opted-out")
            settings.replaces = replace
            settings.rate = try rate.recordsPerSecond()
            settings.followFor = follow?.duration ?? settings.followFor
            settings.isDryRun = source.dryRun
            let importing = try RegistrationImport(configuration, settings)
            defer { importing.close() }
            // What the configuration took to be read is the most that was in use so far.
            Allocator.trim()
            try importing.load()
            let badRows = try BadRows(source)
            var progress = ImportProgress(of: rows.input.bytes)
            try rows.read(badRows, { progress.note($0, rows: importing.tally.rows) }) {
                try importing.take($0)
            }
            try importing.finish()
            var tally = importing.tally
            tally.bad = badRows.count
            return tally
        }

        private func run(
            trialOf count: Int, _ rows: ImportRows, _ configuration: Configuration
        ) throws {
            var sample = ImportTrial(count, usesDead: trial.trialWith == "dead")
            try rows.read(BadRows.ofTrial, { _ in }) { sample.take($0) }
            let result = try sample.run(configuration)
            FileHandle.standardError.write(Data((result.line + "\n").utf8))
            try result.check(refusedMax: trial.trialRefusedMax)
        }
    }
}
