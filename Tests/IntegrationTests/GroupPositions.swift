// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Rdkafka

/// Asks how far the workers' group has committed its events, and where the topic ends.
struct GroupPositions {
    private let client: Client
    private let topic: String

    init(_ fleet: Fleet) throws {
        let configuration = Configuration()
        try configuration.set("bootstrap.servers", fleet.bootstrap)
        // Only asked for what it has committed: nobody joins.
        try configuration.set("group.id", fleet.topics.prefix)
        client = try Client(.consumer, configuration: configuration) { _, _, _ in }
        topic = fleet.topics[.events]
    }

    /// Of each partition: the events that are written and not committed.
    func lags() throws -> [Int] {
        let committed = try client.committed(list(Offset.unset), timeout: .seconds(5))
        let ends = try client.offsetsForTimes(list(Offset.end), timeout: .seconds(5))
        return (0..<ends.count).map { Int(ends[$0].offset - max(0, committed[$0].offset)) }
    }

    private func list(_ offset: Int64) -> TopicPartitionList {
        let list = TopicPartitionList(capacity: Int(FleetTopics.partitions))
        for partition in 0..<FleetTopics.partitions {
            list.append(topic: topic, partition: partition, offset: offset)
        }
        return list
    }
}
