// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Foundation
import PushModel
import RecordFormats

struct DeadLettersCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dead-letters",
        abstract: "Shows what failed for good, and sends it again.",
        subcommands: [List.self, Redrive.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints the dead letters, a line each, and their number.",
            discussion: """
                Of a token, the first 16 digits of its SHA-256 are shown. Letters of one partition \
                come in their order; partitions are mixed.
                """)

        @OptionGroup var options: ConfigurationOption
        @OptionGroup var filter: LetterFilter

        @Flag(help: "One JSON object a line; the last one is the summary.")
        var json = false

        func run() async throws {
            let configuration = try options.load()
            var reader = try LetterReader(configuration, filter: filter)
            var summary = LetterSummary()
            _ = try reader.forEach { filed in
                summary.add(filed.letter)
                print(json ? try JSONLine.of(ListedLetter(filed)) : Self.line(filed))
            }
            try reader.refuseMisspeltReasons()
            summary.unreadable = reader.unreadable
            print(json ? try JSONLine.of(["summary": summary]) : summary.line)
        }

        private static func line(_ filed: FiledLetter) -> String {
            let letter = filed.letter
            let names = letter.targets.map { "\(TokenName($0.token))" }
            var words = [
                "\(filed.partition)/\(filed.offset)", letter.lastAt.rfc3339,
                TerminalText.visible(letter.reason),
            ]
            if let message = letter.message {
                words.append("\"\(TerminalText.visible(message))\"")
            }
            words += [
                "status \(letter.status.map { "\($0)" } ?? "-")", "attempts \(letter.attempts)",
                "event \(letter.source.visible)",
                "subject \"\(TerminalText.visible(letter.subject))\"",
                "tokens \(names.count)",
            ]
            if !names.isEmpty {
                let others = names.count > namesMax ? " …" : ""
                words.append("(" + names.prefix(namesMax).joined(separator: " ") + others + ")")
            }
            if let id = letter.correlation.id {
                words.append("id \"\(TerminalText.visible(id))\"")
            }
            if let traceparent = letter.correlation.traceparent {
                words.append("traceparent \(traceparent)")
            }
            if let repeats = letter.repeats { words.append("repeats \(repeats)") }
            if letter.isOriginalLeftOut { words.append("event left out") }
            return words.joined(separator: "  ")
        }

        /// The most tokens shown in a letter's line; --json shows all.
        private static let namesMax = 3
    }
}

extension DeadLetter.Source {
    /// The coordinates as `kafka.skip` takes them.
    var visible: String { "\(TerminalText.visible(topic))/\(partition)/\(offset)" }
}

/// A dead letter as `--json` shows it.
private struct ListedLetter: Encodable {
    struct Source: Encodable {
        let topic: String
        let partition: Int32
        let offset: Int64

        init(_ source: DeadLetter.Source) {
            topic = source.topic
            partition = source.partition
            offset = source.offset
        }
    }

    struct Target: Encodable {
        var tokenID: String
        var environment: String
        var apnsTopic: String
    }

    let partition: Int32
    let offset: Int64
    let reason: String
    let message: String?
    let status: UInt16?
    let attempts: Int
    let source: Source
    let payloadSource: Source?
    let firstAt: String
    let lastAt: String
    let app: String?
    let eventID: String?
    let traceparent: String?
    let subject: String?
    let subjectBase64: String?
    let repeats: Int?
    let tokens: [Target]
    let hasEvent: Bool
    let eventLeftOut: Bool

    init(_ filed: FiledLetter) {
        let letter = filed.letter
        partition = filed.partition
        offset = filed.offset
        reason = letter.reason
        message = letter.message
        status = letter.status
        attempts = letter.attempts
        source = Source(letter.source)
        payloadSource = letter.payloadSource.map(Source.init)
        firstAt = letter.firstAt.rfc3339
        lastAt = letter.lastAt.rfc3339
        app = letter.app
        eventID = letter.correlation.id
        traceparent = letter.correlation.traceparent
        subject = String(validating: letter.subject, as: UTF8.self)
        subjectBase64 = subject == nil ? Data(letter.subject).base64EncodedString() : nil
        repeats = letter.repeats
        tokens = letter.targets.map {
            Target(
                tokenID: "\(TokenName($0.token))", environment: $0.environment.name,
                apnsTopic: $0.apnsTopic)
        }
        hasEvent = letter.original != nil
        eventLeftOut = letter.isOriginalLeftOut
    }
}

private struct LetterSummary: Encodable {
    var letters = 0
    var tokens = 0
    var unreadable = 0
    /// The number of letters of each reason, and of events of each topic.
    var byReason: [String: Int] = [:]
    var byTopic: [String: Int] = [:]

    mutating func add(_ letter: DeadLetter) {
        letters += 1
        tokens += letter.targets.count
        byReason[letter.reason, default: 0] += 1
        byTopic[letter.source.topic, default: 0] += 1
    }

    var line: String {
        var text = "\(letters.counted("letter")), \(tokens.counted("token"))"
        for (reason, count) in byReason.sorted(by: { $0.key < $1.key }) {
            text += "; \(TerminalText.visible(reason)) \(count)"
        }
        for (topic, count) in byTopic.sorted(by: { $0.key < $1.key }) {
            text += "; topic \(TerminalText.visible(topic)) \(count)"
        }
        return unreadable == 0 ? text : text + "; unreadable \(unreadable)"
    }
}

/// Writes machine-readable output: one JSON object per line.
enum JSONLine {
    static func of(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self)
    }
}
