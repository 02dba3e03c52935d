// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Configuration
import Delivery
import Foundation
import KafkaLog
import PushModel
import RecordFormats

/// The options that select dead letters.
struct LetterFilter: ParsableArguments {
    @Option(name: .customLong("reason"), help: "Only letters of this reason; may be repeated.")
    var reasons: [String] = []

    @Option(help: "Only letters of this app.")
    var app: String?

    @Option(help: "Only letters of this subject.")
    var subject: String?

    @Option(help: "Only letters of events of this topic.")
    var topic: String?

    @Option(help: "Only letters of the event at this place: TOPIC/PARTITION/OFFSET.")
    var event: String?

    @Option(help: "Only this partition of the dead-letters topic.")
    var partition: Int32?

    @Option(help: "Only letters from this offset of the dead-letters topic on.")
    var fromOffset: Int64?

    @Option(help: "Only letters up to this offset of the dead-letters topic, with it.")
    var toOffset: Int64?

    @Option(help: "Only letters since this instant, or for so long: 2026-11-21T06:12:00Z, 2h, 7d.")
    var since: String?

    @Option(help: "The most letters to handle.")
    var limit: Int?

    /// Whether every letter matches.
    var isEmpty: Bool {
        let texts = [app, subject, topic, event, since].compactMap { $0 }
        let numbers = [partition.map(Int64.init), fromOffset, toOffset, limit.map(Int64.init)]
        return reasons.isEmpty && texts.isEmpty && numbers.allSatisfy { $0 == nil }
    }

    func validate() throws {
        if let limit, limit < 1 { throw ValidationError("--limit is 1 at least") }
        if let event, DeadLetter.Source(text: event) == nil {
            throw ValidationError("--event is TOPIC/PARTITION/OFFSET, such as events/0/412")
        }
        if let since { _ = try Arguments.instant(since, now: RecordWriter.now().wall) }
    }

    /// Whether a record at this position may match. Other records are not decoded.
    func covers(partition: Int32, offset: Int64) -> Bool {
        if let wanted = self.partition, wanted != partition { return false }
        return offset >= fromOffset ?? 0 && offset <= toOffset ?? .max
    }

    func matches(_ letter: DeadLetter, since: WallTime?) -> Bool {
        if !reasons.isEmpty, !reasons.contains(letter.reason) { return false }
        if let app, letter.app != app { return false }
        if let subject, letter.subject != Array(subject.utf8) { return false }
        if let topic, letter.source.topic != topic { return false }
        if let event, letter.source.text != event { return false }
        if let since, letter.lastAt < since { return false }
        return true
    }

    /// Whether letters of withheld events are asked for by their reason, or one by its event.
    var namesWithheldEvents: Bool {
        event != nil || reasons.contains(UnreadableCode.fanOutTooLarge.rawValue)
    }
}

extension DeadLetter {
    /// Whether its event was withheld because of its many tokens: sent again, it reaches them all.
    var isOfWithheldEvent: Bool { reason == UnreadableCode.fanOutTooLarge.rawValue }
}

/// A dead letter and its position in the topic.
struct FiledLetter {
    var partition: Int32
    var offset: Int64
    var letter: DeadLetter
}

/// Reads the dead letters that match a filter.
struct LetterReader: ~Copyable {
    private let sweep: TopicSweep
    private let filter: LetterFilter
    private let since: WallTime?
    private let leavesOutWithheldEvents: Bool
    private var decoder = DeadLetterDecoder()
    /// How many letters of withheld events match and were left out.
    private(set) var leftOut = 0
    /// How many records within the filter's partition and offsets could not be read as letters.
    private(set) var unreadable = 0
    /// The reasons of the filter that occurred in letters within its partition and offsets.
    private var seenReasons: Set<String> = []

    /// - Parameter onlyIfNamed: whether letters of withheld events are left out unless the filter
    ///   names them.
    init(
        _ configuration: Configuration, filter: LetterFilter,
        withheldOnlyIfNamed onlyIfNamed: Bool = false
    ) throws {
        sweep = TopicSweep(configuration, topic: configuration.kafka.topics.deadLetters)
        self.filter = filter
        leavesOutWithheldEvents = onlyIfNamed && !filter.namesWithheldEvents
        since = try filter.since.map { try Arguments.instant($0, now: RecordWriter.now().wall) }
    }

    /// Passes the matching letters to `body`.
    ///
    /// - Returns: how far each partition was read; see `TopicSweep.run` for `ends`.
    mutating func forEach(
        upTo ends: TopicSweep.Ends? = nil, _ body: (FiledLetter) throws -> Void
    ) throws -> TopicSweep.Ends {
        var left = filter.limit ?? .max
        unreadable = 0
        leftOut = 0
        let sweep = sweep
        return try sweep.run(upTo: ends) { record in
            guard filter.covers(partition: record.partition, offset: record.offset) else {
                return true
            }
            if record.value == nil, ProbeRecord.hasKey(record.key) { return true }
            guard let letter = try? decoder.letter(record.value) else {
                unreadable += 1
                return true
            }
            if filter.reasons.contains(letter.reason) { seenReasons.insert(letter.reason) }
            guard filter.matches(letter, since: since) else { return true }
            if leavesOutWithheldEvents, letter.isOfWithheldEvent {
                leftOut += 1
                return true
            }
            try body(
                FiledLetter(partition: record.partition, offset: record.offset, letter: letter))
            left -= 1
            return left > 0
        }
    }

    /// Throws for a reason that is unknown and occurs in no letter: a misspelt one would look as if
    /// there were no such letters. APNs may introduce new reasons, so any that occurs is accepted.
    func refuseMisspeltReasons() throws {
        for reason in filter.reasons
        where !seenReasons.contains(reason) && !Self.knownReasons.contains(reason) {
            let near = Spelling.nearest(to: reason, among: Self.knownReasons) ?? ""
            throw ValidationError(
                "--reason: no letter has '\(TerminalText.visible(reason))', and no reason of that "
                    + "name is known; the nearest is \(near)")
        }
    }

    private static let knownReasons =
        DeadLetter.OwnReason.allCases.map(\.rawValue)
        + APNSReason.allCases.filter { $0 != .unknown && $0 != .none }.map(\.name)
        + UnreadableCode.allCases.map(\.rawValue)
}

extension Arguments {
    /// Parses an instant, or a duration, which means that long ago.
    static func instant(_ text: String, now: WallTime) throws -> WallTime {
        if let instant = WallTime(rfc3339: text) { return instant }
        guard let age = Duration(notation: text) else {
            throw ValidationError(
                "'\(text)' is neither an instant such as 2026-11-21T06:12:00Z nor a duration such "
                    + "as 30m, 2h or 7d")
        }
        return now - age
    }
}

extension WallTime {
    fileprivate static func - (time: WallTime, duration: Duration) -> WallTime {
        WallTime(milliseconds: time.milliseconds &- duration.nanoseconds / 1_000_000)
    }
}
