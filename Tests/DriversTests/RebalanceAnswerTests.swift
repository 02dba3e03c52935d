// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import EmbeddedKafka
import FleetKit
import PushModel
import Testing

@testable import KafkaLog
@testable import Rdkafka

/// What the consumer does when the group speaks.
@Suite struct `Answers to rebalances` {
    private let group: GroupStandIn
    private var consumer: EventConsumer { group.consumer }
    private var reading: Reading { group.reading }

    init() throws { group = try GroupStandIn() }

    @Test func `of what the group wants back nothing more is delivered`() async throws {
        let id = try #require(try await group.assign([0]).first)
        try group.fixture.write(5, to: "events")
        try await reading.waitForRecords(5)
        group.announce(.revokePartitions, [0])
        #expect(consumer.takeFacts() == [.revoking([id])])
        #expect(consumer.isRevoking)
        // The library does not know that they are unwanted, and hands them out.
        try group.fixture.write(5, from: 5, to: "events")
        var looked = 0
        try await waitUntil("the library's records") {
            looked += consumer.poll(now: .current, limit: 100) { _ in
                Issue.record("a record of a partition that is being given back")
            }
            return looked >= 5
        }
        consumer.completeRevoke(
            commit: [CommitPosition(id, offset: 5)], now: .current)
        // They are the next owner's.
        try await group.assign([0])
        #expect(group.starts == [5])
        try await reading.waitForRecords(10)
        #expect(reading.records.map(\.offset) == Array(0..<10))
        group.close()
    }

    @Test func `a muted partition is neither paused nor called stalled`() async throws {
        try group.silence()
        let id = try #require(try await group.assign([0]).first)
        group.announce(.revokePartitions, [0])
        consumer.pause(id, now: .current)
        consumer.pauseAll(now: .current)
        #expect(consumer.pausedPartitions.isEmpty)
        var later = Now.current
        group.poll(forSeconds: 70, from: &later)
        #expect(consumer.stalledPartitions(now: later).isEmpty)
        group.close()
    }

    @Test func `the next rebalance waits for the drain, and follows it at once`() async throws {
        let id = try #require(try await group.assign([0]).first)
        group.announce(.revokePartitions, [0])
        group.announce(.assignPartitions, [1])
        #expect(consumer.takeFacts() == [.revoking([id])])
        #expect(consumer.isRevoking)
        consumer.completeRevoke(commit: [], now: .current)
        #expect(!consumer.isRevoking)
        try await waitUntil("the next assignment") {
            reading.turn()
            return reading.assignments.map(\.partition) == [1]
        }
        #expect(reading.consumer.partitions.assigned() == reading.assignments.map(\.id))
        group.close()
    }

    @Test func `a loss ends the drain, and what ended meanwhile is not stored`() async throws {
        let id = try #require(try await group.assign([0]).first)
        group.announce(.revokePartitions, [0])
        group.announce(.revokePartitions, [0], isLost: true)
        #expect(consumer.takeFacts() == [.revoking([id]), .lost([id])])
        #expect(!consumer.isRevoking)
        let position = CommitPosition(id, offset: 5)
        consumer.completeRevoke(commit: [position], now: .current)
        #expect(consumer.store([position]) == 0)
        #expect(consumer.takeFacts().isEmpty)
        try await group.assign([0])
        #expect(group.starts == [0])
        group.close()
    }

    @Test func `a rebalance that went wrong takes everything, and is told`() async throws {
        let ids = try await group.assign([0, 1])
        group.announce(.failed, [0, 1])
        let facts = consumer.takeFacts()
        #expect(facts.contains(.lost(ids)))
        #expect(
            facts.contains { if case .warning = $0 { true } else { false } })
        #expect(consumer.partitions.assigned().isEmpty)
        group.close()
    }

    @Test func `a revocation of nothing is answered at once`() async throws {
        group.announce(.revokePartitions, [])
        #expect(!consumer.isRevoking)
        #expect(consumer.takeFacts().isEmpty)
        group.announce(.revokePartitions, [], isLost: true)
        #expect(consumer.takeFacts().isEmpty)
        try await group.assign([0])
        group.close()
    }

    @Test func `a partition that was paused comes back unpaused`() async throws {
        let id = try #require(try await group.assign([0]).first)
        consumer.pause(id, now: .current)
        group.announce(.revokePartitions, [0])
        consumer.completeRevoke(commit: [], now: .current)
        #expect(consumer.pausedPartitions.isEmpty)
        try group.fixture.write(3, to: "events")
        try await group.assign([0])
        try await reading.waitForRecords(3)
        group.close()
    }

    @Test func `closing in the middle of a drain stores what has ended`() async throws {
        let id = try #require(try await group.assign([0]).first)
        try group.fixture.write(5, to: "events")
        try await reading.waitForRecords(5)
        group.announce(.revokePartitions, [0])
        group.announce(.assignPartitions, [1])
        let position = CommitPosition(id, offset: 3)
        try consumer.restart(committing: [position], timeout: .seconds(5), now: .current)
        // What was announced to the client that was closed means nothing to the next.
        #expect(consumer.rebalances.isEmpty && !consumer.isRevoking)
        try await group.assign([0])
        #expect(group.starts == [3])
        group.close()
    }

    @Test func `closing tells of everything that was held, once`() async throws {
        let ids = try await group.assign([0, 1])
        _ = consumer.takeFacts()
        consumer.close(timeout: .seconds(5), now: .current)
        #expect(consumer.takeFacts() == [.lost(ids)])
        #expect(consumer.close(timeout: .seconds(5), now: .current))
        #expect(consumer.takeFacts().isEmpty)
        #expect(consumer.store([CommitPosition(ids[0], offset: 5)]) == 0)
    }

    @Test func `closing forgets what was held and what was announced`() async throws {
        let ids = try await group.assign([0, 1])
        consumer.pause(ids[1], now: .current)
        group.announce(.revokePartitions, [0])
        group.announce(.revokePartitions, [1])
        group.announce(.assignPartitions, [0])
        try consumer.restart(timeout: .seconds(5), now: .current)
        #expect(consumer.rebalances.isEmpty && !consumer.isRevoking)
        #expect(consumer.pausedPartitions.isEmpty)
        #expect(consumer.partitions.assigned().isEmpty)
        group.close()
    }

    @Test func `what was given back on closing is not called lost`() async throws {
        try await group.assign([0])
        group.announce(.revokePartitions, [0])
        _ = consumer.takeFacts()
        group.close()
        #expect(consumer.takeFacts().isEmpty)
    }

    @Test func `a position that the library does not take is not counted as stored`() async throws {
        let id = try #require(try await group.assign([0]).first)
        // As when it has lost the partition and has not said so yet.
        try #require(consumer.session).client.unassignAll()
        let position = CommitPosition(id, offset: 5)
        #expect(consumer.store([position]) == 0)
        #expect(consumer.partitions.row(id)?.stored == 0)
        group.close()
    }
}

@Suite struct `An assignment lost in the middle of a drain` {
    /// The library knows of the loss before it says so: the answer to the revocation is where it
    /// can be asked.
    @Test func `an assignment lost in the middle of a drain is told, and nothing of it is stored`()
        async throws
    {
        let fixture = try KafkaFixture(["events": 1])
        try fixture.write(5, to: "events")
        let reading = Reading(try fixture.consumer(["events"]))
        let consumer = reading.consumer
        try await reading.waitForRecords(5)
        let id = try #require(reading.assignments.first).id
        let list = TopicPartitionList()
        list.append(topic: "events", partition: 0)
        consumer.rebalances.append(
            Rebalance(code: .revokePartitions, partitions: list, isLost: false))
        consumer.answerRebalances(.current)
        #expect(consumer.takeFacts().contains(.revoking([id])))
        // UNKNOWN_MEMBER_ID on Heartbeat: the group has expelled us.
        try fixture.kafka.perform(.fail(apiKey: 12, code: 25, count: 1))
        let client = try #require(consumer.session).client
        try await waitUntil("the loss") { client.isAssignmentLost }
        consumer.completeRevoke(
            commit: [CommitPosition(id, offset: 5)], now: .current)
        #expect(consumer.takeFacts().contains(.lost([id])))
        // Owed again, to whoever is given it next.
        try await reading.waitForRecords(10)
        #expect(reading.assignments.first?.startOffset == 0)
        reading.close()
    }
}
