// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import EmbeddedKafka
import FleetKit
import PushModel
import Testing

@testable import KafkaLog
@testable import Rdkafka

/// One partition that cannot be read is one partition that is not read.
@Suite struct `Unavailable partitions` {
    private let group: GroupStandIn
    private var consumer: EventConsumer { group.consumer }
    private var reading: Reading { group.reading }

    init() throws { group = try GroupStandIn(partitions: 3) }

    private func leader(of partition: Int32, is broker: Int32) throws {
        try group.fixture.kafka.perform(
            .leader(topic: "events", partition: partition, broker: broker))
    }

    private func told(_ facts: [ConsumerFact]) -> [UnavailablePartition] {
        for case .unavailable(let partitions) in facts { return partitions }
        return []
    }

    @Test func `a partition without a leader keeps no other from being started`() async throws {
        try group.fixture.write(3, to: "events", partition: 0)
        try group.fixture.write(3, to: "events", partition: 2)
        try leader(of: 1, is: -1)
        try await group.assign([0, 1, 2])
        #expect(reading.assignments.map(\.partition) == [0, 2])
        try await reading.waitForRecords(6)
        #expect(consumer.unavailableCount == 1 && consumer.partitions.assigned().count == 2)

        // Named, with its cause, when that has lasted for a while; not before.
        #expect(told(reading.facts).isEmpty)
        var later = Now.current
        later.monotonic = later.monotonic + .seconds(4)
        _ = consumer.poll(now: later, limit: 10) { _ in }
        let named = try #require(told(consumer.takeFacts()).first)
        #expect(named.topic == 0 && named.partition == 1)
        #expect(named.cause.code == .leaderNotAvailable)
        group.close()
    }

    @Test func `a partition begins when it has a leader, and the others go on where they were`()
        async throws
    {
        for partition in 0..<3 as Range<Int32> {
            try group.fixture.write(5, to: "events", partition: partition)
        }
        try leader(of: 1, is: -1)
        try await group.assign([0, 1, 2])
        try await reading.waitForRecords(10)
        let others = reading.assignments.map(\.id)
        let stored = consumer.store([CommitPosition(others[0], offset: 3)])
        #expect(stored == 1)
        consumer.pause(others[1], now: .current)

        try leader(of: 1, is: 1)
        try await reading.waitForRecords(15)
        #expect(reading.assignmentCount == 2)
        #expect(reading.assignments.map(\.partition) == [1])
        #expect(consumer.unavailableCount == 0 && consumer.unstarted == nil)
        // The same assignments of the others, each offset once; a paused one stays paused.
        try group.fixture.write(5, from: 5, to: "events", partition: 0)
        try group.fixture.write(5, from: 5, to: "events", partition: 2)
        try await reading.waitForRecords(20)
        #expect(consumer.pausedPartitions == [others[1]])
        consumer.resume(others[1], now: .current)
        try await reading.waitForRecords(25)
        for partition in 0..<3 as Range<Int32> {
            let offsets = reading.records.filter { $0.partition == partition }.map(\.offset)
            #expect(offsets == Array(0..<(partition == 1 ? 5 : 10)))
        }
        #expect(consumer.store([CommitPosition(others[0], offset: 9)]) == 1)
        // What was stored before and after is committed.
        group.announce(.revokePartitions, [0, 1, 2])
        consumer.completeRevoke(commit: [], now: .current)
        try await group.assign([0, 1, 2])
        #expect(group.starts == [9, 0, 0])
        group.close()
    }

    @Test func `a topic that may be described and not read costs no other its start`() async throws
    {
        let group = try GroupStandIn(["events", "table"])
        try group.fixture.write(3, to: "table")
        // TOPIC_AUTHORIZATION_FAILED on OffsetCommit, by which a start is made the group's.
        try group.fixture.kafka.perform(.fail(apiKey: 8, code: 29, count: 1))
        let list = TopicPartitionList()
        list.append(topic: "events", partition: 0)
        list.append(topic: "table", partition: 0)
        group.consumer.rebalances.append(
            Rebalance(code: .assignPartitions, partitions: list, isLost: false))
        group.consumer.answerRebalances(.current)
        try await group.reading.waitForRecords(3)
        let starts = group.reading.facts.compactMap { fact -> [Int]? in
            if case .assigned(let assignments) = fact { assignments.map(\.topic) } else { nil }
        }
        #expect(starts.first == [1])
        #expect(
            !group.reading.facts.contains { if case .restartNeeded = $0 { true } else { false } })
        // The right is given; it is asked for again by itself.
        try group.fixture.write(2, to: "events")
        try await group.reading.waitForRecords(5)
        group.close()
    }

    @Test func `a partition that is refused while it is read restarts nobody, and is named`()
        async throws
    {
        let id = try #require(try await group.assign([0]).first)
        // TOPIC_AUTHORIZATION_FAILED on Fetch; the library goes on asking.
        try group.fixture.kafka.perform(.fail(apiKey: 1, code: 29, count: 4))
        try await waitUntil("the refusal") {
            reading.turn()
            return consumer.unavailableCount == 1
        }
        var later = Now.current
        group.poll(forSeconds: 4, from: &later)
        let facts = reading.facts + consumer.takeFacts()
        #expect(told(facts).first?.cause.code == .topicAuthorizationFailed)
        #expect(!facts.contains { if case .restartNeeded = $0 { true } else { false } })
        consumer.partitions.update(id) { $0.isAtEnd = false }
        group.poll(forSeconds: 100, from: &later)
        #expect(consumer.stalledPartitions(now: later).isEmpty)

        try group.fixture.write(2, to: "events")
        try await reading.waitForRecords(2)
        #expect(reading.facts.contains(.availableAgain(topic: 0, partition: 0)))
        #expect(consumer.unavailableCount == 0)
        group.close()
    }

    @Test func `an idle partition is known to be read again without a record of it`() async throws {
        try group.fixture.write(3, to: "events", partition: 1)
        let ids = try await group.assign([0, 1])
        try await reading.waitForRecords(3)
        try await waitUntil("the ends") {
            reading.turn()
            return reading.facts.count { if case .endOfPartition = $0 { true } else { false } } == 2
        }
        #expect(consumer.store([CommitPosition(ids[1], offset: 2)]) == 1)
        // As when the library had told of a refusal, and the right is back: a broker's refusal has no
        // end of the log in it, as the embedded one's has, so the library tells the end no more.
        var later = Now.current
        let error = RdkafkaError(.topicAuthorizationFailed)
        for id in ids {
            consumer.partitions.update(id) { $0.isRefused = true }
            let partition = consumer.partitions.partition(of: id).number
            consumer.unavailable.note(0, partition, error, now: later.monotonic)
        }
        consumer.pause(ids[1], now: later)
        try await waitUntil("the end of the refusal") {
            group.poll(forSeconds: 1, from: &later)
            return consumer.takeFacts().contains(.availableAgain(topic: 0, partition: 0))
        }
        #expect(consumer.partitions[0, 0]?.isRefused == false)
        // The others' positions and pauses are as they were.
        #expect(consumer.pausedPartitions == [ids[1]])
        try group.fixture.write(2, from: 3, to: "events", partition: 1)
        consumer.resume(ids[1], now: .current)
        try await reading.waitForRecords(5)
        #expect(reading.records.map(\.offset) == [0, 1, 2, 3, 4])
        #expect(consumer.store([CommitPosition(ids[1], offset: 5)]) == 1)
        #expect(consumer.unavailableCount == 0)
        group.close()
    }

    /// librdkafka says nothing of it.
    @Test func `a partition that loses its leader while it is read is named until it has one`()
        async throws
    {
        let ids = try await group.assign([0, 1])
        try await waitUntil("the ends") {
            reading.turn()
            return reading.facts.count { if case .endOfPartition = $0 { true } else { false } } == 2
        }
        try leader(of: 1, is: -1)
        // An election takes a moment.
        try await consumer.lookAtPartitions()
        #expect(consumer.unavailableCount == 0)
        try await consumer.lookAtPartitions()
        #expect(consumer.unavailableCount == 1)
        var later = Now.current
        group.poll(forSeconds: 4, from: &later)
        #expect(
            told(consumer.takeFacts())
                == [
                    UnavailablePartition(
                        topic: 0, partition: 1, cause: RdkafkaError(.leaderNotAvailable))
                ])
        // The other is read, and the client stays: another would find no leader either.
        try group.fixture.write(2, to: "events", partition: 0)
        try await reading.waitForRecords(2)
        consumer.partitions.update(ids[1]) { $0.isAtEnd = false }
        group.poll(forSeconds: 100, from: &later)
        #expect(!consumer.stalledPartitions(now: later).contains(ids[1]))

        try leader(of: 1, is: 1)
        try await consumer.lookAtPartitions(now: later)
        #expect(consumer.unavailableCount == 0)
        #expect(consumer.takeFacts().contains(.availableAgain(topic: 0, partition: 1)))
        // From now on it must deliver.
        #expect(!consumer.stalledPartitions(now: later).contains(ids[1]))
        #expect(consumer.partitions.row(ids[1])?.activeAt == later.monotonic)
        try group.fixture.write(2, to: "events", partition: 1)
        try await reading.waitForRecords(4)
        group.close()
    }

    @Test func `a partition whose broker does not answer is named until it does`() async throws {
        let group = try GroupStandIn(partitions: 2, brokers: 2)
        let (consumer, reading) = (group.consumer, group.reading)
        for partition in [0, 1] as [Int32] {
            try group.fixture.kafka.perform(
                .leader(topic: "events", partition: partition, broker: partition + 1))
        }
        try await group.assign([0, 1])
        try await consumer.lookAtPartitions()
        #expect(consumer.unavailableCount == 0)
        try group.fixture.kafka.perform(.down(broker: 2))
        for _ in 0..<2 { try await consumer.lookAtPartitions() }
        #expect(consumer.unavailableCount == 1)
        var later = Now.current
        group.poll(forSeconds: 4, from: &later)
        let named = try #require(told(consumer.takeFacts()).first)
        #expect(named.partition == 1)
        try group.fixture.write(2, to: "events", partition: 0)
        try await reading.waitForRecords(2)
        try group.fixture.kafka.perform(.up(broker: 2))
        let patience = Patience(.seconds(60))
        while consumer.unavailableCount > 0, !patience.isOver {
            try await consumer.lookAtPartitions()
        }
        #expect(consumer.unavailableCount == 0)
        group.close()
    }

    /// The group's next look at the metadata is minutes away.
    @Test func `a topic that is gone is missed at the second look, and found again`() async throws {
        try await group.assign([0, 1])
        try group.fixture.kafka.perform(.topicError(name: "events", code: 3))
        try await consumer.lookAtPartitions()
        #expect(consumer.missingTopics.isEmpty)
        try await consumer.lookAtPartitions()
        #expect(consumer.missingTopics == ["events"] && consumer.unavailableCount == 0)
        try group.fixture.kafka.perform(.topicError(name: "events", code: 0))
        try await consumer.lookAtPartitions()
        #expect(consumer.missingTopics.isEmpty)
        group.close()
    }

    @Test func `who may not ask for the ends accuses no partition`() async throws {
        try await group.assign([0, 1])
        // TOPIC_AUTHORIZATION_FAILED on Metadata.
        try group.fixture.kafka.perform(.topicError(name: "events", code: 29))
        for _ in 0..<3 { try await consumer.lookAtPartitions() }
        #expect(consumer.unavailableCount == 0)
        group.close()
    }

    @Test func `a partition without a leader is forgotten when the group takes it back`()
        async throws
    {
        try await group.assign([0, 1])
        try leader(of: 1, is: -1)
        for _ in 0..<2 { try await consumer.lookAtPartitions() }
        #expect(consumer.unavailableCount == 1)
        group.announce(.revokePartitions, [1])
        consumer.completeRevoke(commit: [], now: .current)
        try await consumer.lookAtPartitions()
        #expect(consumer.unavailableCount == 0)
        group.close()
    }

    @Test func `an unavailable partition is forgotten when the group takes it back`() async throws {
        try leader(of: 1, is: -1)
        try await group.assign([0, 1])
        #expect(consumer.unavailableCount == 1 && consumer.nextDeadline != nil)
        group.announce(.revokePartitions, [0, 1])
        #expect(consumer.unavailableCount == 0 && consumer.nextDeadline == nil)
        consumer.completeRevoke(commit: [], now: .current)
        try leader(of: 1, is: 1)
        try await group.assign([1])
        #expect(reading.assignments.map(\.partition) == [1])
        group.close()
    }

    @Test func `each unavailable partition is told of when it has lasted, and every minute`() {
        var unavailable = UnavailablePartitions()
        let error = RdkafkaError(.leaderNotAvailable)
        let start = Now.current.monotonic
        unavailable.note(0, 3, error, now: start)
        unavailable.note(0, 3, error, now: start + .seconds(2))
        #expect(unavailable.takeDue(now: start + .milliseconds(2999)).isEmpty)
        unavailable.note(0, 1, error, now: start + .seconds(2))
        #expect(unavailable.takeDue(now: start + .seconds(3)).map(\.partition) == [1, 3])
        #expect(unavailable.takeDue(now: start + .seconds(62)).isEmpty)
        #expect(unavailable.takeDue(now: start + .seconds(63)).count == 2)
        let other = RdkafkaError(.topicAuthorizationFailed)
        unavailable.note(0, 3, other, now: start + .seconds(64))
        #expect(unavailable.takeDue(now: start + .seconds(64)).last?.cause == other)
        #expect(unavailable.forget(0, 3) && !unavailable.forget(0, 3))
        #expect(unavailable.count == 1)
    }
}

/// With the embedded Kafka's own group, whose protocol knows whole assignments only.
@Suite struct `A member with an unavailable partition` {
    @Test func `a member reads other partitions, and an unavailable one as soon as it can`()
        async throws
    {
        let fixture = try KafkaFixture(["events": 2, "orders": 2])
        for partition in 0..<2 as Range<Int32> {
            try fixture.write(4, to: "events", partition: partition)
            try fixture.write(4, to: "orders", partition: partition)
        }
        try fixture.kafka.perform(.leader(topic: "orders", partition: 0, broker: -1))
        let reading = Reading(try fixture.consumer(["events", "orders"]))
        try await reading.waitForRecords(12)
        reading.storeAll()
        try fixture.kafka.perform(.leader(topic: "orders", partition: 0, broker: 1))
        try await reading.waitForRecords(16)
        #expect(Set(reading.records).count == 16 && reading.records.count == 16)
        #expect(reading.assignmentCount == 2)
        #expect(!reading.facts.contains { if case .lost = $0 { true } else { false } })
        reading.close()
    }
}
