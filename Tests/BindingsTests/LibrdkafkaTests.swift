// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Rdkafka
import Testing

@Suite struct `librdkafka` {
    let cluster: MockCluster

    init() throws {
        cluster = try MockCluster(brokers: 1) { _, _, _ in }
        try cluster.createTopic("log", partitions: 2)
    }

    private func client(_ kind: Client.Kind) throws -> Client {
        let configuration = Configuration()
        try configuration.set("bootstrap.servers", cluster.bootstrap)
        if kind == .consumer {
            try configuration.set("group.id", "readers")
            try configuration.set("fetch.wait.max.ms", "20")
            try configuration.set("enable.partition.eof", "true")
        }
        return try Client(kind, configuration: configuration) { _, _, _ in }
    }

    private func write(_ values: [String], partition: Int32) throws {
        let producer = try client(.producer)
        let topic = try Topic("log", of: producer)
        for value in values {
            var value = value
            let code = value.withUTF8 { bytes -> ErrorCode? in
                do throws(RdkafkaError) {
                    try producer.produce(
                        to: topic, partition: partition, key: nil,
                        value: UnsafeRawBufferPointer(bytes), headers: nil, ticket: 0)
                    return nil
                } catch {
                    return error.code
                }
            }
            #expect(code == nil)
        }
        #expect(producer.flush(timeout: .seconds(10)))
        #expect(producer.takeDeliveryReports().allSatisfy { $0.code == .none })
    }

    private func both(at offset: Int64) -> TopicPartitionList {
        let list = TopicPartitionList()
        for partition in Int32(0)..<2 {
            list.append(topic: "log", partition: partition, offset: offset)
        }
        return list
    }

    /// librdkafka would end the process.
    @Test func `an assignment is replaced while the fetchers of the one before still stop`() throws
    {
        try write(["a"], partition: 0)
        let consumer = try client(.consumer)
        try consumer.pollEverythingAsConsumer()
        for _ in 0..<500 { try consumer.assign(both(at: Offset.beginning)) }
        for _ in 0..<100 {
            try consumer.unassignAll()
            try consumer.assign(both(at: Offset.beginning))
        }
        let patience = Patience()
        var isRead = false
        while !isRead, !patience.isOver {
            if let message = consumer.pollMessage() { isRead = message.error == .none }
        }
        #expect(isRead)
        try consumer.assign(both(at: Offset.beginning))
        #expect(consumer.closeConsumer(timeout: .seconds(60)))
    }

    @Test func `one configuration starts several clients`() throws {
        let configuration = Configuration()
        try configuration.set("client.id", "shared")
        for kind in [Client.Kind.producer, .consumer, .producer] {
            _ = try Client(kind, configuration: configuration) { _, _, _ in }
        }
        #expect(configuration.value(of: "client.id") == "shared")
        #expect(configuration.value(of: "no.such.property") == nil)
    }

    @Test func `mistakes in a configuration are told apart`() throws {
        let configuration = Configuration()
        #expect(throws: ConfigurationError.unknownProperty("no.such.property")) {
            try configuration.set("no.such.property", "1")
        }
        let error = #expect(throws: ConfigurationError.self) {
            try configuration.set("linger.ms", "soon")
        }
        guard case .invalidValue("linger.ms", let message) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        // The message names the property by its oldest alias.
        #expect(message.contains("Invalid value"))
    }

    @Test func `a client that cannot be made says why`() throws {
        let configuration = Configuration()
        // Each is valid alone.
        try configuration.set("enable.idempotence", "true")
        try configuration.set("acks", "1")
        let error = #expect(throws: RdkafkaError.self) {
            _ = try Client(.producer, configuration: configuration) { _, _, _ in }
        }
        #expect(error?.message.contains("acks") == true)
    }

    @Test func `errors have bounded names and a sentence`() {
        #expect(ErrorCode.notCoordinator.name == "NOT_COORDINATOR")
        #expect(ErrorCode.timedOut.name == "_TIMED_OUT")
        #expect(!RdkafkaError(.timedOut).message.isEmpty)
        #expect(RdkafkaVersion.number >= 0x0200_0000)
    }

    @Test func `asking for the offset of the beginning and of the end gives the watermarks`() throws
    {
        try write(["a", "b", "c"], partition: 1)
        let consumer = try client(.consumer)
        let low = try consumer.offsetsForTimes(both(at: Offset.beginning), timeout: .seconds(10))
        let high = try consumer.offsetsForTimes(both(at: Offset.end), timeout: .seconds(10))
        #expect((0..<2).map { low[$0].offset } == [0, 0])
        #expect((0..<2).map { high[$0].offset } == [0, 3])
        #expect(consumer.clusterID(timeout: .seconds(5))?.hasPrefix("mockCluster") == true)
    }

    @Test func `a commit is answered, and read back`() throws {
        let consumer = try client(.consumer)
        let before = try consumer.committed(both(at: Offset.unset), timeout: .seconds(10))
        #expect((0..<2).allSatisfy { before[$0].offset == Offset.unset })
        try consumer.commit(both(at: 5), timeout: .seconds(10))
        let after = try consumer.committed(both(at: Offset.unset), timeout: .seconds(10))
        #expect((0..<2).allSatisfy { after[$0].offset == 5 })
        // TOPIC_AUTHORIZATION_FAILED on OffsetCommit.
        cluster.failRequests(apiKey: 8, with: [.topicAuthorizationFailed])
        let refused = try consumer.commit(both(at: 6), timeout: .seconds(10))
        #expect((0..<2).allSatisfy { refused[$0].error == .topicAuthorizationFailed })
    }

    @Test func `a commit nobody answers ends with its timeout and holds up no one`() throws {
        var consumer: Client? = try client(.consumer)
        try consumer?.commit(both(at: 5), timeout: .seconds(10))
        try cluster.takeBrokerDown(1)
        let stopwatch = Stopwatch()
        #expect(throws: RdkafkaError.self) {
            try consumer?.commit(both(at: 6), timeout: .milliseconds(300))
        }
        consumer = nil
        #expect(stopwatch.time < .seconds(10))
    }

    @Test func `a message carries its topic's identity for as long as the topic is held`()
        async throws
    {
        try write(["a"], partition: 0)
        let consumer = try client(.consumer)
        try consumer.pollEverythingAsConsumer()
        let topic = try Topic("log", of: consumer)
        try consumer.incrementalAssign(both(at: Offset.beginning))
        var identities: [Bool] = []
        var ends: Set<Int32> = []
        let patience = Patience()
        while ends.count < 2, !patience.isOver {
            guard let message = consumer.pollMessage() else {
                try await Task.sleep(for: .milliseconds(5))
                continue
            }
            identities.append(message.topicIdentity == topic.identity)
            if message.error == .partitionEOF { ends.insert(message.partition) }
        }
        #expect(identities == [true, true, true])
        #expect(topic.name == "log")
        #expect(
            consumer.cachedWatermarks(topic: "log", partition: 0) == Watermarks(low: 0, high: 1))
    }

    @Test func `a topic that is not there is an error and is not made`() throws {
        cluster.setError(.unknownTopicOrPartition, ofTopic: "missing")
        let consumer = try client(.consumer)
        let topic = try Topic("missing", of: consumer)
        let metadata = try consumer.metadata(of: topic, timeout: .seconds(10))
        #expect(metadata.error == .unknownTopicOrPartition)
        let all = try consumer.metadataOfAllTopics(timeout: .seconds(10))
        #expect(all.contains { $0.name == "log" && $0.partitionCount == 2 })
    }

    @Test func `closing twice, or a consumer that never joined, ends at once`() throws {
        let consumer = try client(.consumer)
        let stopwatch = Stopwatch()
        #expect(consumer.closeConsumer(timeout: .seconds(5)))
        #expect(consumer.closeConsumer(timeout: .seconds(5)))
        #expect(stopwatch.time < .seconds(5))
    }
}
