// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Configuration
import Entrypoint
import KafkaLog
import PushModel
import RecordFormats

/// What operators have asked for, as far as Kafka has not compacted it away: the records of the
/// restrictions topic, oldest first.
struct RestrictionHistory {
    private(set) var changes: [ListedRestriction] = []
    private(set) var unreadable = 0

    /// The headers of a tombstone, whose value has no room to say who has lifted the restriction.
    static let byHeader = "by"
    static let reasonHeader = "reason"

    init(_ configuration: Configuration) throws {
        var decoder = RestrictionDecoder()
        var found: [(time: Int64, change: ListedRestriction)] = []
        var unreadable = 0
        try TopicSweep(configuration, topic: configuration.kafka.topics.restrictions).run {
            record in
            do throws(UnreadableRecord) {
                let (scope, restriction) = try decoder.decode(key: record.key, value: record.value)
                let time = record.timestampMilliseconds
                guard let restriction else {
                    let by = Self.text(record.header(named: Self.byHeader))
                    let reason = Self.text(record.header(named: Self.reasonHeader))
                    let at = WallTime(milliseconds: time)
                    let change = ListedRestriction(lifted: scope, at: at, by: by, reason: reason)
                    found.append((time, change))
                    return true
                }
                found.append((time, ListedRestriction(scope, restriction)))
            } catch {
                if !error.isLeftOut { unreadable += 1 }
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
