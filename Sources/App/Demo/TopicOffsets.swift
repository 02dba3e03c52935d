// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Rdkafka

/// Asks where topics begin and end.
struct TopicOffsets {
    private let client: Client

    private static let answerMax = Duration.seconds(10)

    init(bootstrap: String) throws {
        let configuration = Configuration()
        try configuration.set("bootstrap.servers", bootstrap)
        client = try Client(.producer, configuration: configuration) { _, _, _ in
            // What matters comes back as an error of a call.
        }
    }

    /// How many records were ever written to a topic that began empty.
    func records(in name: String) throws -> Int {
        try offsets(of: name, at: Offset.end).reduce(0) { $0 + Int(max(0, $1)) }
    }

    /// The oldest offset that Kafka still has, of each partition.
    func lowWatermarks(of name: String) throws -> [Int64] {
        try offsets(of: name, at: Offset.beginning)
    }

    /// Of each partition from 0 on.
    private func offsets(of name: String, at time: Int64) throws -> [Int64] {
        let metadata = try client.metadata(of: Topic(name, of: client), timeout: Self.answerMax)
        let list = TopicPartitionList(capacity: Int(metadata.partitionCount))
        for partition in 0..<metadata.partitionCount {
            list.append(topic: name, partition: partition, offset: time)
        }
        let answer = try client.offsetsForTimes(list, timeout: Self.answerMax)
        return (0..<answer.count).map { answer[$0].offset }
    }
}
