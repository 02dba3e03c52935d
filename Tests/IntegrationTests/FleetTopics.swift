// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import KafkaLog
import Logging

/// The Kafka topics of one fleet, under names of its own: tests may share a broker.
struct FleetTopics: Sendable {
    /// Also the name of the consumer group.
    let prefix: String

    /// Those that tests write to; the raw value is the producer's number of them.
    enum Written: Int, CaseIterable {
        case events, orders, cloudEvents, registrations, verdicts
    }

    /// Each event topic has so many.
    static let partitions: Int32 = 4

    init() { prefix = "test-" + UUID().uuidString.prefix(8).lowercased() }

    subscript(topic: Written) -> String { "\(prefix).\(topic)" }
    var deferred: String { "\(prefix).deferred" }
    var deadLetters: String { "\(prefix).dead-letters" }

    private var all: [(name: String, configuration: [String: String])] {
        let compacted = ["cleanup.policy": "compact"]
        return [
            (self[.events], [:]), (self[.orders], [:]), (self[.cloudEvents], [:]),
            (
                self[.registrations],
                ["cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"]
            ),
            (self[.verdicts], compacted),
            (deferred, ["cleanup.policy": "compact", "min.compaction.lag.ms": "3600000"]),
            (deadLetters, [:]),
        ]
    }

    /// As `lamplighter simulate kafka` takes them.
    var argument: String {
        all.map { "\($0.name):\(Self.partitions)" }.joined(separator: ",")
    }

    /// On a broker that is not ours.
    func create(bootstrap: String) throws {
        let admin = try TopicAdmin(
            settings: KafkaClientSettings(bootstrap: bootstrap, group: ""), timeout: .seconds(20),
            logger: Logger(label: "topics", factory: { _ in SwiftLogNoOpLogHandler() }))
        for topic in all {
            try admin.create(
                topic.name, partitions: Self.partitions, configuration: topic.configuration)
        }
        _ = try admin.waitUntilKnown(all.map(\.name))
    }
}
