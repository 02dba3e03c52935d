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

    /// The value of the record at this offset; nil if the log does not have it any more, or not in
    /// time.
    package func value(partition: Int32, offset: Int64, timeout: Duration) -> [UInt8]? {
        let list = TopicPartitionList(capacity: 1)
        list.append(topic: topic, partition: partition, offset: offset)
        guard (try? session.client.assign(list)) != nil else { return nil }
        defer { try? session.client.unassignAll() }
        let deadline = ContinuousClock.now + timeout
        while ContinuousClock.now < deadline {
            guard let message = session.client.pollMessage() else {
                _ = session.client.takeNews()
                usleep(1000)
                continue
            }
            guard message.error == .none else {
                if message.error == .partitionEOF { return nil }
                continue
            }
            guard message.partition == partition, message.offset >= offset else { continue }
            return message.offset == offset ? message.value.map { Array($0) } : nil
        }
        return nil
    }
}
