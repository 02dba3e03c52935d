// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import LinuxIO
package import Logging
internal import PushModel
internal import Rdkafka

/// Reads single records by their offsets, for what is seldom asked. It belongs to one thread, which
/// it blocks.
package final class RecordFetcher {
    private let topic: String
    private let session: ConsumerSession

    package init(
        settings: KafkaClientSettings, topic: String, logger: Logger
    ) throws(KafkaError) {
        self.topic = topic
        session = try ConsumerSession(
            settings: settings, role: .table, topics: [topic], logger: logger, waker: Waker())
    }

    /// What has become of a record.
    package enum Found: Sendable, Hashable {
        /// nil for a tombstone.
        case value([UInt8]?)
        /// The log does not have it any more.
        case gone
        /// Kafka has not answered in time.
        case unavailable
    }

    /// Reads the record at this offset.
    package func record(partition: Int32, offset: Int64, timeout: Duration) -> Found {
        let list = TopicPartitionList(capacity: 1)
        list.append(topic: topic, partition: partition, offset: offset)
        guard (try? session.client.assign(list)) != nil else { return .unavailable }
        defer { try? session.client.unassignAll() }
        let deadline = ContinuousClock.now + timeout
        while ContinuousClock.now < deadline {
            guard let message = session.client.pollMessage() else {
                _ = session.client.takeNews()
                usleep(1000)
                continue
            }
            guard message.error == .none else {
                if message.error == .partitionEOF { return .gone }
                continue
            }
            guard message.partition == partition, message.offset >= offset else { continue }
            return message.offset == offset ? .value(message.value.map { Array($0) }) : .gone
        }
        return .unavailable
    }
}
