// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The Kafka topics of one fleet, with a prefix of its own, since fleets may share a Kafka.
package struct FleetTopics: Sendable {
    /// The prefix of the topics, which is also the name of the consumer group.
    package let prefix: String
    /// The number of partitions of each topic, by its name without the prefix.
    package let partitions: [(topic: String, count: Int)]

    package init(prefix: String, partitions: [(topic: String, count: Int)]) {
        self.prefix = prefix
        self.partitions = partitions
    }

    /// The topics of a fleet with a traffic generator. The embedded Kafka keeps only 5 MiB of a
    /// partition; 16 partitions hold a million events.
    /// - Parameter partitions: the numbers of partitions of some topics, in place of the usual
    ///   ones, and of further topics of events.
    package static func underTraffic(
        prefix: String, partitions: [String: Int] = [:]
    ) -> FleetTopics {
        let usual = [
            ("events", 16), ("registrations", 16), ("suppressions", 4), ("deferred", 16),
            ("dead-letters", 4), ("restrictions", 2),
        ]
        let further = partitions.filter { name, _ in !usual.contains { $0.0 == name } }
        return FleetTopics(
            prefix: prefix,
            partitions: usual.map { ($0.0, partitions[$0.0] ?? $0.1) }
                + further.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
    }

    package func name(of topic: String) -> String { "\(prefix).\(topic)" }

    /// The partitions that the group shares among its members.
    package var sharedPartitions: Int {
        partitions.reduce(0) { sum, topic in
            ["events", "deferred"].contains(topic.topic) ? sum + topic.count : sum
        }
    }

    /// The topics as an argument of `lamplighter-lab simulate kafka`.
    package var simulatorArgument: String {
        partitions.map { "\(name(of: $0.topic)):\($0.count)" }.joined(separator: ",")
    }
}
