// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import LinuxIO
package import Logging
internal import PushModel
package import Rdkafka

/// Finds which member of a group has which partition of a topic, for members that announce
/// themselves with their commits (`EventConsumer.announce`). It joins no group. It belongs to one
/// thread, which it blocks.
package final class PartitionOwners {
    private let topic: String
    private let session: ConsumerSession

    /// - Parameter settings: with the group whose members are looked for.
    package init(
        settings: KafkaClientSettings, topic: String, logger: Logger
    ) throws(KafkaError) {
        self.topic = topic
        session = try ConsumerSession(
            settings: settings, role: .table, topics: [topic], logger: logger, waker: Waker())
    }

    /// The number of the topic's partitions.
    package func partitionCount(timeout: Duration) throws(RdkafkaError) -> Int32 {
        _ = session.client.takeNews()
        let metadata = try session.client.metadata(of: session.topics[0], timeout: timeout)
        guard metadata.error == .none else { throw RdkafkaError(metadata.error) }
        return Int32(metadata.leaders.count)
    }

    /// What each partition's owner announced last; nil for one that nobody has had yet.
    package func announcements(
        of partitions: Int32, timeout: Duration
    ) throws(RdkafkaError) -> [String?] {
        let list = TopicPartitionList(capacity: Int(partitions))
        for partition in 0..<partitions { list.append(topic: topic, partition: partition) }
        let answer = try session.client.committed(list, timeout: timeout)
        let metadata = answer.metadataOfPartitions
        return (0..<partitions).map {
            metadata[TopicPartition(topic: topic, partition: $0)].flatMap {
                $0.isEmpty ? nil : $0
            }
        }
    }

    package var connectionFailure: ConnectionFailure? { session.client.connectionFailure }
}
