// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Configuration
import Entrypoint
import Foundation
import Importing
import PushModel
import Worker

extension SuppressionsCommand {
    struct Import: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "import",
            abstract: "Suppresses tokens that another sender knows to be dead.",
            discussion: """
                Every row's token is suppressed up to when it was last seen, so that a phone which \
                registers it later is sent pushes. Without lastSeen that is 2001-01-01, and suppresses \
                only what was imported without it too. What is suppressed up to then already is left \
                as it is.
                """)

        @OptionGroup var options: ConfigurationOption
        @OptionGroup var source: ImportOptions
        @OptionGroup var rate: RateOption

        @Option(help: "The reason that is kept, at most 64 bytes (default: Unregistered)")
        var reason = "Unregistered"

        private func checkArguments() throws {
            try source.checkArguments()
            guard (1...64).contains(reason.utf8.count) else {
                throw ValidationError("--reason has 1 to 64 bytes")
            }
        }

        func run() async throws {
            try checkArguments()
            let configuration = try options.load()
            let plan = WorkerPlan(configuration)
            if let app = source.app { _ = try Arguments.app(app, in: plan.routing) }
            var mapper = try source.mapper()
            mapper.areDead = true
            let rows = try ImportRows(source, mapper)
            var known = try KnownSuppressions(configuration)
            var stream =
                source.dryRun
                ? nil
                : try RecordStream(
                    configuration, topics: [configuration.kafka.topics.suppressions],
                    rate: try rate.recordsPerSecond(), isFrugal: true)
            let badRows = try BadRows(source)
            var progress = ImportProgress(of: rows.input.bytes)
            var summary = SuppressionImportSummary(dryRun: source.dryRun)
            try rows.read(badRows, { progress.note($0, rows: summary.rows) }) { mapped in
                summary.rows += 1
                guard case .row(let row) = mapped else {
                    summary.leftOut += 1
                    return
                }
                guard let record = try known.record(of: row, reason, plan) else {
                    summary.known += 1
                    return
                }
                summary.suppressed += 1
                try stream?.write(OwnedRecord(topic: 0, key: record.key, value: record.value))
            }
            try stream?.finish()
            summary.bad = badRows.count
            print(source.json ? try JSONLine.of(summary) : summary.line)
        }
    }
}

private struct SuppressionImportSummary: Encodable {
    var dryRun: Bool
    var rows = 0
    var suppressed = 0
    var known = 0
    var leftOut = 0
    var bad = 0

    init(dryRun: Bool) { self.dryRun = dryRun }

    var line: String {
        "\(rows.counted("row")): \(dryRun ? "would suppress" : "suppressed") "
            + "\(suppressed.counted("token")); \(known) suppressed before, \(leftOut) left out, \(bad) bad"
    }
}
