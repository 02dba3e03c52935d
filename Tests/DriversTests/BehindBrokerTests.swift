// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Testing

@testable import KafkaLog
@testable import Rdkafka

@Suite struct `A broker that is behind` {
    private func sight(_ leaders: [Int32], _ error: ErrorCode = .none) -> BehindBroker.Sight {
        BehindBroker.Sight(
            TopicMetadata(name: "events", leaders: leaders, error: error, replication: 3))
    }

    @Test func `a topic is whole when each of its partitions has a leader`() {
        #expect(sight([1, 2, 3]) == .whole)
        #expect(sight([1, TopicMetadata.noLeader, 3]) == .leaderless(led: 2, of: 3))
        #expect(sight([]) == .missing)
        #expect(sight([], .unknownTopicOrPartition) == .missing)
    }

    @Test func `a right that is missing is no missing topic`() {
        let error = RdkafkaError(.topicAuthorizationFailed)
        #expect(sight([], .topicAuthorizationFailed) == .failed("\(error)"))
    }

    @Test func `who knows every topic is not behind`() {
        #expect(BehindBroker("kafka:9092", topics: ["a", "b"]) { _ in .whole } == nil)
    }

    @Test func `the first topic that is not whole is named, and no other is asked for`() throws {
        var asked: [String] = []
        let behind = try #require(
            BehindBroker("kafka:9092", topics: ["a", "b", "c"]) { topic in
                asked.append(topic)
                return topic == "b" ? .leaderless(led: 1, of: 12) : .whole
            })
        #expect(asked == ["a", "b"])
        #expect("\(behind)" == "kafka:9092 knows leaders for 1 of the 12 partitions of 'b'")
    }
}
