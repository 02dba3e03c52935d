// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import PushModel
import RecordFormats

extension DeadLettersCommand {
    struct Redrive: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Sends again what failed, to the failing tokens alone.",
            discussion: """
                Writes a deferred push for each failing token, which the workers send at once; a \
                record that could not be read is written to its topic again. Which letters is said \
                by an option, or by --all; --dry-run needs neither. Letters that are \
                written meanwhile are left for the next time. Nothing is sent for the eight reasons \
                for which Apple forbids it. Doing it twice sends twice. An event that was withheld \
                for its many tokens (planning.fanOutMax) is left out unless --event or --reason \
                fanOutTooLarge names it.
                """)

        @OptionGroup var options: ConfigurationOption
        @OptionGroup var filter: LetterFilter

        @Flag(help: "Redrive every letter that there is.")
        var all = false

        @Flag(help: "Say what would be done, and write nothing.")
        var dryRun = false

        @OptionGroup var rate: RateOption

        @Flag(help: "One JSON object a letter; the last one is the summary.")
        var json = false

        func validate() throws {
            guard all || dryRun || !filter.isEmpty else {
                throw ValidationError(
                    "say which letters, such as --reason AttemptsExhausted or --since 2h, or --all; "
                        + "--dry-run says what would be done")
            }
            guard !all || filter.isEmpty else {
                throw ValidationError("--all is every letter: leave out what selects")
            }
        }

        func run() async throws {
            let configuration = try options.load()
            // To release one reaches more phones than planning.fanOutMax: it must be meant.
            var reader = try LetterReader(
                configuration, filter: filter, withheldOnlyIfNamed: true)
            var plan = RedrivePlan(configuration)
            // A first pass finds the ends, so that letters caused by the redriven pushes are not
            // read.
            let ends = try reader.forEach { _ in }
            try reader.refuseMisspeltReasons()
            var stream =
                dryRun
                ? nil
                : try RecordStream(
                    configuration, topics: plan.topics, rate: try rate.recordsPerSecond())
            var summary = RedriveSummary(dryRun: dryRun)
            _ = try reader.forEach(upTo: ends) { filed in
                let orders = plan.orders(for: filed.letter, now: RecordWriter.now().wall)
                for record in orders.records { try stream?.write(record) }
                summary.add(orders, of: filed.letter)
                try report(filed, orders)
            }
            try stream?.finish()
            summary.unreadable = reader.unreadable
            summary.withheld = reader.leftOut
            print(json ? try JSONLine.of(["summary": summary]) : summary.text)
        }

        /// Reports a letter: with `json` every one, otherwise one that was refused for a reason
        /// that may be removed, with its coordinates.
        private func report(_ filed: FiledLetter, _ orders: RedrivePlan.Orders) throws {
            if json {
                return print(try JSONLine.of(RedrivenLetter(filed, orders)))
            }
            for (refusal, _) in orders.refused where refusal != .forbidden {
                print(
                    "left    \(filed.partition)/\(filed.offset) of event "
                        + "\(filed.letter.source.visible): \(refusal.words)")
            }
        }
    }
}

/// The result for one letter, as `--json` shows it.
private struct RedrivenLetter: Encodable {
    let partition: Int32
    let offset: Int64
    let reason: String
    let records: Int
    let refused: [String: Int]

    init(_ filed: FiledLetter, _ orders: RedrivePlan.Orders) {
        partition = filed.partition
        offset = filed.offset
        reason = filed.letter.reason
        records = orders.records.count
        refused = Dictionary(
            uniqueKeysWithValues: orders.refused.map { ($0.key.rawValue, $0.value) })
    }
}

private struct RedriveSummary: Encodable {
    let dryRun: Bool
    var letters = 0
    /// The number of deferred pushes: one for each failing token.
    var pushes = 0
    /// The number of unreadable event records that were written again.
    var events = 0
    var unreadable = 0
    /// The number of letters of withheld events that were left out.
    var withheld = 0
    /// The number of tokens that are not tried again, by the refusal and by the letters' reason.
    var refused: [String: [String: Int]] = [:]

    init(dryRun: Bool) { self.dryRun = dryRun }

    mutating func add(_ orders: RedrivePlan.Orders, of letter: DeadLetter) {
        letters += 1
        if letter.targets.isEmpty {
            events += orders.records.count
        } else {
            pushes += orders.records.count
        }
        for (refusal, count) in orders.refused {
            refused[refusal.rawValue, default: [:]][letter.reason, default: 0] += count
        }
    }

    var text: String {
        var lines = [
            "\(dryRun ? "would redrive" : "redriven") \(pushes.counted("push", plural: "pushes")) "
                + "and \(events.counted("unreadable event")) of \(letters.counted("letter"))"
        ]
        for refusal in RedrivePlan.Refusal.allCases {
            for (reason, count) in (refused[refusal.rawValue] ?? [:]).sorted(by: { $0 < $1 }) {
                lines.append(
                    "refused \(count) of \(TerminalText.visible(reason)): \(refusal.words)")
            }
        }
        if withheld > 0 {
            lines.append(
                "left out \(withheld.counted("letter")) of withheld events: to release them use "
                    + "--reason \(UnreadableCode.fanOutTooLarge.rawValue), for one of them "
                    + "--event TOPIC/PARTITION/OFFSET")
        }
        if unreadable > 0 { lines.append("skipped \(unreadable.counted("record")): no letters") }
        return lines.joined(separator: "\n")
    }
}
