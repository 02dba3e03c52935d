// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import EmbeddedKafka
import FleetKit
import PushModel
import Testing

@testable import KafkaLog
@testable import Rdkafka

/// How the consumer finds out where partitions begin. The clock is the test's.
@Suite struct `Starts that take time` {
    private let group: GroupStandIn
    private var consumer: EventConsumer { group.consumer }
    private let start = Now.current

    init() throws { group = try GroupStandIn(["events", "table"], startFrom: .latest) }

    /// The group gives partitions at `start`.
    private func announce(_ partitions: [Int32], ofTable tablePartitions: [Int32] = []) {
        let list = TopicPartitionList()
        for partition in partitions { list.append(topic: "events", partition: partition) }
        for partition in tablePartitions { list.append(topic: "table", partition: partition) }
        consumer.rebalances.append(
            Rebalance(code: .assignPartitions, partitions: list, isLost: false))
        consumer.answerRebalances(start)
    }

    /// What is told of a poll so long after `start`, but that no group can be joined.
    private func facts(after delay: Duration) -> [ConsumerFact] {
        var now = start
        now.monotonic = now.monotonic + delay
        _ = consumer.poll(now: now, limit: 10) { _ in }
        return consumer.takeFacts().filter { if case .warning = $0 { false } else { true } }
    }

    private func offsets(in facts: [ConsumerFact]) -> [Int32: Int64] {
        for case .assigned(let assignments) in facts {
            return Dictionary(
                uniqueKeysWithValues: assignments.map { ($0.partition, $0.startOffset) })
        }
        return [:]
    }

    private func list(_ topic: String, _ offsets: [Int32: Int64]) -> TopicPartitionList {
        let list = TopicPartitionList()
        for (partition, offset) in offsets {
            list.append(topic: topic, partition: partition, offset: offset)
        }
        return list
    }

    /// As another member of the group does.
    private func commit(_ topic: String, _ offsets: [Int32: Int64]) throws {
        try #require(consumer.session).client.commit(
            list(topic, offsets), timeout: .seconds(60))
    }

    private func committed(_ topic: String) throws -> [Int64] {
        let answer = try #require(consumer.session).client.committed(
            list(topic, [0: Offset.unset]), timeout: .seconds(60))
        return [answer[0].offset]
    }

    /// NOT_COORDINATOR on OffsetFetch.
    private func refuseQuestions() throws {
        try group.fixture.kafka.perform(.fail(apiKey: 9, code: 16, count: 100_000))
    }

    @Test func `the opener of a new topic is waited for, but not for ever`() throws {
        try group.fixture.write(3, to: "events", partition: 1)
        // Partition 0 is somebody else's, and so is the opening.
        announce([1])
        #expect(consumer.takeFacts().isEmpty)
        #expect(facts(after: .milliseconds(4900)).isEmpty)
        #expect(offsets(in: facts(after: .milliseconds(5100))) == [1: 3])
        group.close()
    }

    private func leader(of partition: Int32, is broker: Int32) throws {
        try group.fixture.kafka.perform(
            .leader(topic: "events", partition: partition, broker: broker))
    }

    private func told(_ facts: [ConsumerFact]) -> [UnavailablePartition] {
        for case .unavailable(let partitions) in facts { return partitions }
        return []
    }

    @Test func `a new topic of which a partition is away is begun when it is back`() async throws {
        for partition in 0..<2 as Range<Int32> {
            try group.fixture.write(3, to: "events", partition: partition)
        }
        try leader(of: 1, is: -1)
        // Partition 1 is somebody else's, who would take it for an added one.
        announce([0], ofTable: [0])
        // The other topic does not wait.
        #expect(consumer.takeFacts().count == 1 && consumer.partitions.assigned().count == 1)
        let waiting = facts(after: .seconds(4))
        #expect(told(waiting).map(\.partition) == [0])
        #expect("\(try #require(told(waiting).first).cause)".contains("events/1 is unavailable"))
        #expect(offsets(in: waiting).isEmpty && consumer.unavailableCount == 1)
        #expect(try committed("events") == [Offset.unset])

        try leader(of: 1, is: 1)
        var delay = Duration.seconds(10)
        try await waitUntil("the start") {
            delay += .seconds(5)
            return offsets(in: facts(after: delay)) == [0: 3]
        }
        // For the owner of the other one.
        let answer = try #require(consumer.session).client.committed(
            list("events", [1: Offset.unset]), timeout: .seconds(60))
        #expect(answer[0].offset == 3)
        group.close()
    }

    @Test func `a new topic waits a minute for a partition that is away`() async throws {
        for partition in 0..<2 as Range<Int32> {
            try group.fixture.write(3, to: "events", partition: partition)
        }
        try leader(of: 1, is: -1)
        announce([0, 1])
        #expect(offsets(in: consumer.takeFacts()).isEmpty)
        #expect(offsets(in: facts(after: .milliseconds(59_900))).isEmpty)
        #expect(offsets(in: facts(after: .seconds(66))) == [0: 3])
        #expect(consumer.unavailableCount == 1)
        // Who has seen the topic new still knows it when the partition comes back.
        try leader(of: 1, is: 1)
        var delay = Duration.seconds(70)
        try await waitUntil("the start") {
            delay += .seconds(5)
            return offsets(in: facts(after: delay)) == [1: 3]
        }
        group.close()
    }

    @Test func `a topic that shows as new later has its opener awaited from then on`() async throws
    {
        try group.fixture.write(3, to: "events", partition: 1)
        // UNKNOWN_TOPIC_OR_PART
        try group.fixture.kafka.perform(.topicError(name: "events", code: 3))
        announce([1], ofTable: [0])
        #expect(consumer.takeFacts().count == 1 && consumer.partitions.assigned().count == 1)
        try group.fixture.kafka.perform(.topicError(name: "events", code: 0))
        #expect(offsets(in: facts(after: .seconds(6))).isEmpty)
        try commit("events", [0: 0, 1: 2])
        var delay = Duration.seconds(10)
        try await waitUntil("the start") {
            delay += .seconds(5)
            return offsets(in: facts(after: delay)) == [1: 2]
        }
        group.close()
    }

    @Test func `the opener begins a new topic first, however long a partition was away`() {
        var topics = NewTopics()
        let start = start.monotonic
        topics.seen("events", at: start)
        func mayBegin(_ seconds: Int, isWhole: Bool, isOpener: Bool = false) -> Bool {
            topics.mayBegin(
                "events", isWhole: isWhole, isOpener: isOpener, at: start + .seconds(seconds))
        }
        #expect(topics.isAwaited("events", at: start + .seconds(4)))
        #expect(!topics.isAwaited("events", at: start + .seconds(5)))
        #expect(!mayBegin(6, isWhole: false))
        // It is back: the opener begins at its next look, and only then the others.
        #expect(!mayBegin(20, isWhole: true))
        topics.seen("events", at: start + .seconds(20))
        #expect(topics.isAwaited("events", at: start + .seconds(24)))
        #expect(!topics.isAwaited("events", at: start + .seconds(25)))
        #expect(mayBegin(25, isWhole: true))
        #expect(mayBegin(20, isWhole: true, isOpener: true))
        // It is not.
        #expect(!mayBegin(59, isWhole: false, isOpener: true))
        #expect(mayBegin(60, isWhole: false, isOpener: true))
        #expect(!mayBegin(69, isWhole: false) && mayBegin(70, isWhole: false))
    }

    @Test func `what the opener has committed is where the others begin`() throws {
        try group.fixture.write(3, to: "events", partition: 1)
        announce([1])
        try commit("events", [0: 0, 1: 2])
        #expect(offsets(in: facts(after: .milliseconds(200))) == [1: 2])
        group.close()
    }

    @Test func `a partition that was added begins at its beginning though others are committed`()
        throws
    {
        try group.fixture.write(3, to: "events", partition: 1)
        try commit("events", [0: 0])
        announce([1])
        #expect(offsets(in: consumer.takeFacts()) == [1: 0])
        group.close()
    }

    @Test func `a log that seems to be cut is given time to show its end`() throws {
        try group.fixture.write(3, to: "events", partition: 0)
        try commit("events", [0: 10, 1: 0])
        announce([0])
        #expect(consumer.takeFacts().isEmpty)
        #expect(facts(after: .milliseconds(2900)).isEmpty)
        let late = facts(after: .milliseconds(3100))
        #expect(offsets(in: late) == [0: 0])
        #expect(
            late.contains(
                .offsetsLost(
                    OffsetLoss(
                        topic: 0, partition: 0, cause: .truncation, committed: 10, startOffset: 0))
            ))
        group.close()
    }

    @Test func `a log that seems to be cut is given its time in a late start too`() throws {
        try group.fixture.write(3, to: "events", partition: 0)
        try commit("events", [0: 10, 1: 0])
        // TOPIC_AUTHORIZATION_FAILED on ListOffsets: the group gets its answer without them.
        try group.fixture.kafka.perform(.fail(apiKey: 2, code: 29, count: 2))
        announce([0, 1])
        #expect(consumer.takeFacts().count == 1 && consumer.partitions.assigned().isEmpty)
        #expect(offsets(in: facts(after: .seconds(10))) == [1: 0])
        #expect(offsets(in: facts(after: .milliseconds(12_900))).isEmpty)
        let late = facts(after: .milliseconds(13_500))
        #expect(offsets(in: late) == [0: 0])
        #expect(late.contains { if case .offsetsLost = $0 { true } else { false } })
        group.close()
    }

    @Test func `an end that shows in time costs nothing`() throws {
        try commit("events", [0: 3, 1: 0])
        announce([0])
        #expect(consumer.takeFacts().isEmpty)
        try group.fixture.write(3, to: "events", partition: 0)
        let facts = facts(after: .milliseconds(200))
        #expect(offsets(in: facts) == [0: 3] && facts.count == 1)
        group.close()
    }

    @Test func `a table is read from its beginning, and nothing of it is committed`() async throws {
        try group.fixture.write(5, to: "table")
        #expect(try committed("table") == [Offset.unset])
        try await group.assign([0], of: "table")
        #expect(group.starts == [0])
        #expect(try committed("table") == [Offset.unset])
        group.announce(.revokePartitions, [0], of: "table")
        consumer.completeRevoke(commit: [], now: .current)
        // Whoever did that.
        try commit("table", [0: 3])
        try await group.assign([0], of: "table")
        #expect(group.starts == [0])
        group.close()
    }

    @Test func `a question is repeated at intervals, and given up in the end`() throws {
        try refuseQuestions()
        announce([0])
        #expect(consumer.takeFacts().isEmpty)
        #expect(consumer.nextDeadline == start.monotonic + StartResolver.attemptInterval)
        #expect(facts(after: .milliseconds(29_900)).isEmpty)
        let late = facts(after: .milliseconds(30_100))
        #expect(late.contains { if case .restartNeeded = $0 { true } else { false } })
        #expect(consumer.nextDeadline == nil)
        group.close()
    }

    @Test func `what the group says next ends the question`() throws {
        try refuseQuestions()
        announce([0])
        group.announce(.revokePartitions, [0])
        #expect(consumer.rebalances.isEmpty && !consumer.isRevoking)
        #expect(consumer.takeFacts().isEmpty && consumer.nextDeadline == nil)
        group.close()
    }
}
