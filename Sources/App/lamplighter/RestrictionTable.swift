// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Configuration
import KafkaLog
import PushModel
import RecordFormats

/// The restrictions in Kafka: the last record of each key, unless that is a tombstone.
struct RestrictionTable {
    /// Those that have ended by themselves included.
    private(set) var recorded: [Restriction.Scope: Restriction] = [:]
    private(set) var unreadable = 0

    var standing: [Restriction.Scope: Restriction] {
        let now = RecordWriter.now().wall
        return recorded.filter { $0.value.until.map { $0 > now } ?? true }
    }

    /// - Parameter timeMax: how long reading may take; nil for as long as Kafka sends something.
    init(_ configuration: Configuration, within timeMax: Duration? = nil) throws {
        let sweep = TopicSweep(
            configuration, topic: configuration.kafka.topics.restrictions, within: timeMax)
        var decoder = RestrictionDecoder()
        var found: [Restriction.Scope: Restriction] = [:]
        var unreadable = 0
        try sweep.run { record in
            do throws(UnreadableRecord) {
                let (scope, restriction) = try decoder.decode(key: record.key, value: record.value)
                found[scope] = restriction
            } catch {
                if !error.isLeftOut { unreadable += 1 }
            }
            return true
        }
        recorded = found
        self.unreadable = unreadable
    }
}
