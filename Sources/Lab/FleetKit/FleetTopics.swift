// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The Kafka topics of one fleet, under a prefix of its own: fleets may share a Kafka.
package struct FleetTopics: Sendable {
    /// Also the name of the consumer group.
    package let prefix: String
    /// How many partitions each topic has, by its name without the prefix.
    package let partitions: [(topic: String, count: Int)]

    package init(prefix: String, partitions: [(topic: String, count: Int)]) {
        self.prefix = prefix
        self.partitions = partitions
    }

    /// For traffic: an event partition's 5 MiB are all that the embedded Kafka keeps of it, and 16
    /// of them hold a million events.
    /// - Parameter partitions: how many of some topics, in place of the usual.
    package static func underTraffic(
        prefix: String, partitions: [String: Int] = [:]
    ) -> FleetTopics {
        let usual = [
            ("events", 16), ("registrations", 16), ("suppressions", 4), ("deferred", 16),
            ("dead-letters", 4),
        ]
        return FleetTopics(
            prefix: prefix, partitions: usual.map { ($0.0, partitions[$0.0] ?? $0.1) })
    }

    package func name(of topic: String) -> String { "\(prefix).\(topic)" }

    /// The partitions that the group shares among its members.
    package var sharedPartitions: Int {
        partitions.reduce(0) { sum, topic in
            ["events", "deferred"].contains(topic.topic) ? sum + topic.count : sum
        }
    }

    /// As `lamplighter-lab simulate kafka` takes them.
    package var simulatorArgument: String {
        partitions.map { "\(name(of: $0.topic)):\($0.count)" }.joined(separator: ",")
    }
}
