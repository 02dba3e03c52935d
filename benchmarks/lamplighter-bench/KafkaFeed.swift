// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import KafkaLog
import LinuxIO
import Logging
import PushModel
import Rdkafka

/// Writes records to one topic, as fast as it is asked to, and knows how far a group has come.
struct KafkaFeed {
    private let producer: RecordProducer
    private let offsets: Rdkafka.Client
    private let topic: Topic
    private(set) var acknowledged = 0

    private static let answerMax = Duration.seconds(10)

    /// - Parameter properties: of librdkafka's, for the producer.
    init(
        bootstrap: String, topic: String, group: String = "bench",
        properties: [String: String] = [:]
    ) throws {
        let logger = Logger(label: "feed") { StreamLogHandler.standardError(label: $0) }
        producer = try RecordProducer(
            settings: KafkaClientSettings(
                bootstrap: bootstrap, group: group, properties: properties),
            topics: [topic], logger: logger)
        let configuration = Rdkafka.Configuration()
        try configuration.set("bootstrap.servers", bootstrap)
        // Only asked for what it has committed: nobody joins.
        try configuration.set("group.id", group)
        try configuration.set("enable.auto.commit", "false")
        offsets = try Rdkafka.Client(.consumer, configuration: configuration) { _, _, _ in
            // What matters comes back as an error of a call.
        }
        self.topic = try Topic(topic, of: offsets)
    }

    /// Waits for room where there is none.
    mutating func write(key: [UInt8], value: [UInt8]?) throws {
        while true {
            let acceptance = key.withUnsafeBytes { key in
                guard let value else {
                    return producer.produce(topic: 0, key: key, value: nil, ticket: 1)
                }
                return value.withUnsafeBytes { value in
                    producer.produce(topic: 0, key: key, value: value, ticket: 1)
                }
            }
            switch acceptance {
            case .accepted: return
            case .failed(let error): throw BenchError("Kafka does not take a record: \(error)")
            case .queueFull:
                try serveReports()
                usleep(1000)
            }
        }
    }

    mutating func serveReports() throws {
        var refusal: ErrorCode?
        var count = 0
        producer.poll(now: .current) { _, error in
            count += 1
            refusal = refusal ?? error
        }
        acknowledged += count
        if let refusal { throw BenchError("Kafka has refused a record: \(refusal)") }
    }

    /// Returns when everything is acknowledged.
    mutating func flush() throws {
        while producer.outstanding > 0 {
            _ = producer.flush(timeout: .milliseconds(100))
            try serveReports()
        }
    }

    // MARK: The topic's offsets

    /// How many records were ever written to the topic.
    func written() throws -> Int {
        sum(
            try offsets.offsetsForTimes(try partitions(at: Offset.end), timeout: Self.answerMax))
    }

    /// How many of them are gone: the embedded Kafka drops the oldest of a partition beyond 5 MiB.
    func dropped() throws -> Int {
        sum(
            try offsets.offsetsForTimes(
                try partitions(at: Offset.beginning), timeout: Self.answerMax))
    }

    /// How many of them the group has stored as done.
    func committed() throws -> Int {
        sum(try offsets.committed(try partitions(at: Offset.unset), timeout: Self.answerMax))
    }

    private func partitions(at offset: Int64) throws -> TopicPartitionList {
        let count = try offsets.metadata(of: topic, timeout: Self.answerMax).partitionCount
        guard count > 0 else { throw BenchError("Kafka has no topic \(topic.name)") }
        let list = TopicPartitionList(capacity: Int(count))
        for partition in 0..<count {
            list.append(topic: topic.name, partition: partition, offset: offset)
        }
        return list
    }

    private func sum(_ list: TopicPartitionList) -> Int {
        // Where nothing was committed there is no position.
        (0..<list.count).reduce(0) { $0 + Int(max(0, list[$1].offset)) }
    }
}
