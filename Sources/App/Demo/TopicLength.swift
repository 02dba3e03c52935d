// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Rdkafka

/// Asks how many records were ever written to topics that began empty.
struct TopicLength {
    private let client: Client

    private static let answerMax = Duration.seconds(10)

    init(bootstrap: String) throws {
        let configuration = Configuration()
        try configuration.set("bootstrap.servers", bootstrap)
        client = try Client(.producer, configuration: configuration) { _, _, _ in
            // What matters comes back as an error of a call.
        }
    }

    func records(in name: String) throws -> Int {
        let metadata = try client.metadata(of: Topic(name, of: client), timeout: Self.answerMax)
        let list = TopicPartitionList(capacity: Int(metadata.partitionCount))
        for partition in 0..<metadata.partitionCount {
            list.append(topic: name, partition: partition, offset: Offset.end)
        }
        let ends = try client.offsetsForTimes(list, timeout: Self.answerMax)
        return (0..<ends.count).reduce(0) { $0 + Int(max(0, ends[$1].offset)) }
    }
}
