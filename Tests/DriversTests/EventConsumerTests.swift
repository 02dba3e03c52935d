// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import EmbeddedKafka
import FleetKit
import KafkaLog
import PushModel
import Rdkafka
import Testing

@Suite struct `Event consumer` {
    @Test func `every record is delivered once and a new member resumes at the stored offset`()
        async throws
    {
        let fixture = try KafkaFixture(["events": 2])
        try fixture.write(100, to: "events", partition: 0)
        try fixture.write(50, to: "events", partition: 1)
        let first = Reading(try fixture.consumer(["events"]))
        try await first.waitForRecords(150)
        #expect(Set(first.records).count == 150)
        let stored = first.assignments.map { assignment in
            CommitPosition(
                assignment.id,
                offset: assignment.partition == 0 ? 40 : 50)
        }
        #expect(first.consumer.store(stored) == 2)
        // Neither the same position again nor an older one is anything to store.
        #expect(first.consumer.store(stored) == 0)
        first.close()

        let second = Reading(try fixture.consumer(["events"]))
        try await second.waitForRecords(60)
        let starts = second.assignments.map { [$0.partition: $0.startOffset] }
        #expect(starts.contains([0: 40]) && starts.contains([1: 50]))
        #expect(second.records.map(\.offset) == Array(40..<100))
        second.close()
    }

    @Test func `topics are told apart by their position in the list`() async throws {
        let fixture = try KafkaFixture(["a": 1, "b": 1])
        try fixture.write(3, to: "a")
        try fixture.write(2, from: 100, to: "b")
        let reading = Reading(try fixture.consumer(["b", "a"]))
        try await reading.waitForRecords(5)
        let values = Dictionary(grouping: reading.records, by: \.topic).mapValues { records in
            records.map(\.value)
        }
        #expect(values == [0: ["100", "101"], 1: ["0", "1", "2"]])
        reading.close()
    }

    @Test func `positions of an earlier assignment are ignored`() async throws {
        let fixture = try KafkaFixture(["events": 1])
        try fixture.write(10, to: "events")
        let reading = Reading(try fixture.consumer(["events"]))
        try await reading.waitForRecords(10)
        let old = try #require(reading.assignments.first).id
        try reading.consumer.restart(timeout: .seconds(5), now: .current)
        #expect(reading.consumer.takeFacts() == [.lost([old])])
        try await reading.waitForRecords(20)
        let new = try #require(reading.assignments.first).id
        #expect(new.ordinal == old.ordinal && new.epoch > old.epoch)
        #expect(reading.consumer.store([CommitPosition(old, offset: 10)]) == 0)
        #expect(reading.consumer.store([CommitPosition(new, offset: 10)]) == 1)
        #expect(reading.consumer.store([CommitPosition(new, offset: 9)]) == 0)
        reading.close()
    }

    @Test func `the eventfd becomes readable when records arrive`() async throws {
        let fixture = try KafkaFixture(["events": 1])
        let reading = Reading(try fixture.consumer(["events"]))
        try await reading.waitForAssignment()
        try await waitUntil("silence") {
            reading.turn()
            return !isReadable(reading.consumer.wakeDescriptor)
        }
        try fixture.write(1, to: "events")
        // Not polled meanwhile: the descriptor alone must tell.
        try await waitUntil("a wake-up") { isReadable(reading.consumer.wakeDescriptor) }
        try await reading.waitForRecords(1)
        reading.close()
    }

    @Test func `the end of a partition is told once and the lag falls to zero`() async throws {
        let fixture = try KafkaFixture(["events": 1])
        try fixture.write(7, to: "events")
        let reading = Reading(try fixture.consumer(["events"]))
        try await waitUntil("the end") {
            reading.turn()
            return reading.facts.contains {
                if case .endOfPartition = $0 { true } else { false }
            }
        }
        #expect(reading.records.count == 7)
        #expect(reading.consumer.lag(topic: 0, partition: 0) == 7)
        #expect(reading.consumer.lag == 7)
        reading.storeAll()
        #expect(reading.consumer.lag(topic: 0, partition: 0) == 0)
        #expect(reading.consumer.lag == 0)
        #expect(reading.consumer.lag(topic: 0, partition: 9) == nil)
        try fixture.write(3, from: 7, to: "events")
        try await reading.waitForRecords(10)
        try await waitUntil("the new high watermark") {
            reading.turn()
            return reading.consumer.lag(topic: 0, partition: 0) == 3
        }
        let ends = reading.facts.filter { if case .endOfPartition = $0 { true } else { false } }
        #expect(ends.count == 1)
        reading.close()
    }

    @Test func `a fatal error of the client is told`() async throws {
        let fixture = try KafkaFixture(["events": 1])
        let consumer = try fixture.consumer(
            ["events"], properties: ["group.instance.id": "worker-1"])
        let reading = Reading(consumer)
        try await reading.waitForAssignment()
        // FENCED_INSTANCE_ID on Heartbeat: a second worker with the same identity.
        try fixture.kafka.perform(.fail(apiKey: 12, code: 82, count: 100))
        try await waitUntil("the fatal fact") {
            reading.turn()
            return reading.fatalErrors.count == 1
        }
        #expect(reading.fatalErrors.first?.code.name == "FENCED_INSTANCE_ID")
        reading.close()
    }
}
