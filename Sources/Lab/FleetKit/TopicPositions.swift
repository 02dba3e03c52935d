// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Rdkafka

/// Asks Kafka for the first and last offsets of topics, and for a group's committed offsets.
package final class TopicPositions: Sendable {
    private let client: Client

    private static let answerMax = Duration.seconds(10)

    /// - Parameter group: the group whose commits are asked for. No member joins it.
    package init(bootstrap: String, group: String) throws {
        let configuration = Configuration()
        try configuration.set("bootstrap.servers", bootstrap)
        try configuration.set("group.id", group)
        try configuration.set("enable.auto.commit", "false")
        client = try Client(.consumer, configuration: configuration) { _, _, _ in
            // The log is not needed: errors are returned by the calls.
        }
    }

    /// The oldest offset that Kafka still has, of each partition.
    package func beginnings(of topic: String) throws -> [Int64] {
        try offsets(of: topic, at: Offset.beginning)
    }

    /// The offset of the next record, of each partition.
    package func ends(of topic: String) throws -> [Int64] {
        try offsets(of: topic, at: Offset.end)
    }

    /// The group's committed offset of each partition; 0 if it has committed nothing.
    package func committed(of topic: String) throws -> [Int64] {
        let answer = try client.committed(
            try list(topic, offset: Offset.unset), timeout: Self.answerMax)
        return (0..<answer.count).map { max(0, answer[$0].offset) }
    }

    private func offsets(of topic: String, at time: Int64) throws -> [Int64] {
        let answer = try client.offsetsForTimes(
            try list(topic, offset: time), timeout: Self.answerMax)
        return (0..<answer.count).map { answer[$0].offset }
    }

    private func list(_ name: String, offset: Int64) throws -> TopicPartitionList {
        let metadata = try client.metadata(of: Topic(name, of: client), timeout: Self.answerMax)
        guard metadata.partitionCount > 0 else {
            throw FleetError(description: "Kafka has no topic \(name)")
        }
        let list = TopicPartitionList(capacity: Int(metadata.partitionCount))
        for partition in 0..<metadata.partitionCount {
            list.append(topic: name, partition: partition, offset: offset)
        }
        return list
    }
}
