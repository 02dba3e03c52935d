// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import EmbeddedKafka
import FleetKit
import PushModel
import Testing

@testable import KafkaLog
@testable import Rdkafka

/// What the consumer says of partitions that deliver nothing, and of itself.
@Suite struct `A watched consumer` {
    private let group: GroupStandIn
    private var consumer: EventConsumer { group.consumer }
    private var reading: Reading { group.reading }

    init() throws { group = try GroupStandIn() }

    private var ends: Int {
        reading.facts.count { if case .endOfPartition = $0 { true } else { false } }
    }

    private func isAtEnd(_ id: AssignmentID) -> Bool {
        consumer.partitions.row(id)?.isAtEnd == true
    }

    @Test func `a silence is counted from the resume`() async throws {
        try group.silence()
        let id = try #require(try await group.assign([0]).first)
        var later = Now.current
        consumer.pauseAll(now: later)
        group.poll(forSeconds: 100, from: &later)
        consumer.resumeAll(now: later)
        group.poll(forSeconds: 59, from: &later)
        #expect(consumer.stalledPartitions(now: later).isEmpty)
        group.poll(forSeconds: 2, from: &later)
        #expect(consumer.stalledPartitions(now: later) == [id])
        group.close()
    }

    @Test func `a silence is counted from the last record`() async throws {
        let id = try #require(try await group.assign([0]).first)
        var later = Now.current
        group.poll(forSeconds: 100, from: &later)
        let assignment = consumer.partitions.receive(
            topic: 0, partition: 0, offset: 7, now: later.monotonic)
        #expect(assignment == id)
        #expect(consumer.stalledPartitions(now: later).isEmpty)
        #expect(consumer.partitions.row(id)?.activeAt == later.monotonic)
        group.close()
    }

    @Test func `a partition that has come to its end is not stalled, and tells of it once`()
        async throws
    {
        let id = try #require(try await group.assign([0]).first)
        for count in 1...2 {
            try await waitUntil("the end") {
                reading.turn()
                return isAtEnd(id)
            }
            #expect(ends == 1)
            if count == 1 {
                try group.fixture.write(1, to: "events")
                try await reading.waitForRecords(1)
            }
        }
        var later = Now.current
        group.poll(forSeconds: 100, from: &later)
        #expect(consumer.stalledPartitions(now: later).isEmpty)
        group.close()
    }

    @Test func `a queue that never runs empty explains a silence`() async throws {
        let ids = try await group.assign([0, 1])
        try await waitUntil("both ends") {
            reading.turn()
            return ids.allSatisfy { isAtEnd($0) }
        }
        try group.fixture.write(200, to: "events", partition: 0)
        // They come in one piece, so that behind the first the others wait.
        try await waitUntil("the first of them") {
            consumer.poll(now: .current, limit: 1) { _ in } == 1
        }
        var later = Now.current
        consumer.partitions.update(ids[1]) { row in
            row.isAtEnd = false
            row.activeAt = later.monotonic
        }
        for _ in 0..<100 {
            later.monotonic = later.monotonic + .seconds(1)
            let looked = consumer.poll(now: later, limit: 1) { _ in }
            try #require(looked == 1)
        }
        #expect(consumer.stalledPartitions(now: later).isEmpty)
        group.close()
    }

    @Test func `a partition that the library gives up asks for a restart`() async throws {
        try await group.assign([0])
        // Where the log has nothing, and never had.
        let list = TopicPartitionList()
        list.append(topic: "events", partition: 0, offset: 1000)
        try #require(consumer.session).client.assign(list)
        try await waitUntil("the demand") {
            reading.turn()
            return reading.facts.contains {
                guard case .restartNeeded(let cause) = $0 else { return false }
                return cause.code == .autoOffsetReset
            }
        }
        group.close()
    }

    @Test func `a client asks for one restart, and the next one for another`() throws {
        let error = RdkafkaError(.failed)
        for _ in 0..<2 {
            for _ in 0..<3 { consumer.askForRestart(error) }
            #expect(consumer.takeFacts() == [.restartNeeded(error)])
            try consumer.restart(timeout: .seconds(5), now: .current)
        }
        group.close()
    }
}
