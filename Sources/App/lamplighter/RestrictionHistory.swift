// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Entrypoint
import KafkaLog
import PushModel
import RecordFormats
import Worker

/// What operators have asked for, as far as Kafka has not compacted it away: the records of the
/// controls topic, oldest first.
struct RestrictionHistory {
    /// One record: a restriction, or that one was lifted.
    struct Change: Encodable {
        let at: String
        let what: String
        let action: String
        let perSecond: Int?
        let until: String?
        let by: String?
        let reason: String?

        var line: String {
            let rate = perSecond.map { "\(action) to \($0)/s" } ?? action
            var words = [at, rate, TerminalText.visible(what)]
            if let by { words.append("by \(TerminalText.visible(by))") }
            if let until { words.append("until \(until)") }
            if let reason { words.append("\"\(TerminalText.visible(reason))\"") }
            return words.joined(separator: "  ")
        }
    }

    private(set) var changes: [Change] = []
    private(set) var unreadable = 0

    /// The headers of a tombstone, whose value has no room to say who has lifted the restriction.
    static let byHeader = "by"
    static let reasonHeader = "reason"

    init(_ configuration: Configuration) throws {
        var decoder = RestrictionDecoder()
        var found: [(time: Int64, change: Change)] = []
        var unreadable = 0
        try TopicSweep(configuration, topic: configuration.kafka.topics.controls).run { record in
            do throws(UnreadableRecord) {
                let (scope, restriction) = try decoder.decode(key: record.key, value: record.value)
                let time = record.timestampMilliseconds
                guard let restriction else {
                    let by = Self.text(record.header(named: Self.byHeader))
                    let reason = Self.text(record.header(named: Self.reasonHeader))
                    let at = WallTime(milliseconds: time)
                    found.append((time, Change(lifted: scope, at: at, by: by, reason: reason)))
                    return true
                }
                found.append((time, Change(scope, restriction)))
            } catch {
                unreadable += 1
            }
            return true
        }
        // Records of one key are of one partition, and in their order; a sort keeps that.
        changes = found.enumerated()
            .sorted { ($0.element.time, $0.offset) < ($1.element.time, $1.offset) }
            .map(\.element.change)
        self.unreadable = unreadable
    }

    private static func text(_ bytes: UnsafeRawBufferPointer?) -> String? {
        bytes.flatMap { String(validating: $0, as: UTF8.self) }
    }
}

extension RestrictionHistory.Change {
    fileprivate init(_ scope: Restriction.Scope, _ restriction: Restriction) {
        at = restriction.at.rfc3339
        what = "\(scope)"
        action = restriction.action.word
        if case .limit(let rate) = restriction.action { perSecond = rate } else { perSecond = nil }
        until = restriction.until?.rfc3339
        by = restriction.by
        reason = restriction.reason
    }

    fileprivate init(lifted scope: Restriction.Scope, at: WallTime, by: String?, reason: String?) {
        self.at = at.rfc3339
        what = "\(scope)"
        action = "resume"
        perSecond = nil
        until = nil
        self.by = by
        self.reason = reason
    }
}
