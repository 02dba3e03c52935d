// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import EmbeddedKafka
import FleetKit
import PushModel
import Rdkafka
import Testing

@testable import KafkaLog

/// The mock refuses commits while members join, so these assert that nothing is lost, and leave
/// repetitions to tests against a real broker.
@Suite struct `Event consumer's rebalances` {
    @Test func `a revoked partition is silent until it is let go and nothing of it is lost`()
        async throws
    {
        let fixture = try KafkaFixture(["events": 2])
        // The mock goes on without a member that keeps it waiting for this long, less 1 s.
        let patient = ["session.timeout.ms": "6000"]
        let first = Reading(try fixture.consumer(["events"], properties: patient))
        try await first.waitForAssignment()
        let held = Set(first.assignments.map(\.id))
        #expect(held.count == 2)
        var revoked: [AssignmentID] = []
        first.onRevoking = { _, ids in revoked = ids }

        let second = Reading(try fixture.consumer(["events"], properties: patient))
        try await waitUntil("the revocation") {
            first.turn()
            second.turn()
            return !revoked.isEmpty
        }
        #expect(Set(revoked) == held)
        #expect(first.consumer.isRevoking)
        try fixture.write(10, to: "events", partition: 0)
        try fixture.write(10, to: "events", partition: 1)
        for _ in 0..<20 {
            first.turn()
            second.turn()
            try await Task.sleep(for: .milliseconds(10))
        }
        #expect(first.records.isEmpty)
        #expect(second.assignmentCount == 0)

        first.onRevoking = { consumer, _ in consumer.completeRevoke(commit: [], now: .current) }
        first.consumer.completeRevoke(commit: [], now: .current)
        #expect(!first.consumer.isRevoking)
        try await waitUntil("every record") {
            first.turn()
            second.turn()
            return Set(first.records + second.records).count == 20
        }
        #expect(Set(first.assignments.map(\.id)).isDisjoint(with: held))
        first.close()
        second.close()
    }

    @Test func `a lost partition is told and comes back under a new assignment`() async throws {
        let fixture = try KafkaFixture(["events": 1])
        try fixture.write(5, to: "events")
        let reading = Reading(try fixture.consumer(["events"]))
        try await reading.waitForRecords(5)
        let old = try #require(reading.assignments.first).id
        // UNKNOWN_MEMBER_ID on Heartbeat: the group has expelled us.
        try fixture.kafka.perform(.fail(apiKey: 12, code: 25, count: 1))
        try await waitUntil("the loss") {
            reading.turn()
            return reading.facts.contains(.lost([old]))
        }
        #expect(reading.consumer.store([CommitPosition(old, offset: 5)]) == 0)
        try await waitUntil("the new assignment") {
            reading.turn()
            return reading.assignmentCount == 2
        }
        #expect(try #require(reading.assignments.first).id.epoch > old.epoch)
        // Nothing was stored, so all of it is owed again.
        try await reading.waitForRecords(10)
        reading.close()
    }

    @Test func `a refused offset question is asked again`() async throws {
        let fixture = try KafkaFixture(["events": 1])
        try fixture.write(5, to: "events")
        // NOT_COORDINATOR on OffsetFetch: the library alone would stall the partition for ever.
        try fixture.kafka.perform(.fail(apiKey: 9, code: 16, count: 3))
        let reading = Reading(try fixture.consumer(["events"]))
        try await reading.waitForRecords(5)
        #expect(reading.assignments.first?.startOffset == 0)
        reading.close()
    }

    @Test func `an offset question that cannot be answered asks for a restart and reads nothing`()
        async throws
    {
        let fixture = try KafkaFixture(["events": 1])
        try fixture.write(5, to: "events")
        // GROUP_AUTHORIZATION_FAILED on OffsetFetch.
        try fixture.kafka.perform(.fail(apiKey: 9, code: 30, count: 1))
        let reading = Reading(try fixture.consumer(["events"]))
        try await waitUntil("the demand for a restart") {
            reading.turn()
            return reading.facts.contains { fact in
                if case .restartNeeded(let error) = fact {
                    error.code == .groupAuthorizationFailed
                } else {
                    false
                }
            }
        }
        for _ in 0..<20 {
            reading.turn()
            try await Task.sleep(for: .milliseconds(10))
        }
        #expect(reading.records.isEmpty)
        #expect(reading.assignmentCount == 0)
        try reading.consumer.restart(timeout: .seconds(5), now: .current)
        try await reading.waitForRecords(5)
        reading.close()
    }

    @Test func `a consumer closes in time when no broker is left`() async throws {
        let fixture = try KafkaFixture(["events": 1])
        let reading = Reading(try fixture.consumer(["events"]))
        try await reading.waitForAssignment()
        try fixture.kafka.perform(.down(broker: 1))
        let stopwatch = Stopwatch()
        reading.consumer.close(timeout: .milliseconds(500), now: .current)
        #expect(stopwatch.time < .seconds(20))
        #expect(reading.consumer.poll(now: .current, limit: 1) { _ in } == 0)
    }

    /// The mock makes whoever joins next wait for the session in any case.
    @Test func `a static member leaves its group where it is told to`() async throws {
        let fixture = try KafkaFixture(["events": 1])
        let reading = Reading(
            try fixture.consumer(["events"], properties: ["group.instance.id": "worker-0"]))
        try await reading.waitForAssignment()
        let client = try #require(reading.consumer.session).client
        #expect(client.isGroupMember)
        // Which would be false if it had not left.
        #expect(reading.consumer.close(timeout: .seconds(20), now: .current))
    }

    @Test func `a consumer joins anew after its static name was given away`() async throws {
        let fixture = try KafkaFixture(["events": 1])
        try fixture.write(3, to: "events")
        let reading = Reading(
            try fixture.consumer(["events"], properties: ["group.instance.id": "worker-0"]))
        try await reading.waitForRecords(3)
        reading.storeAll()
        let id = try #require(reading.assignments.first).id
        // FENCED_INSTANCE_ID on Heartbeat.
        try fixture.kafka.perform(.fail(apiKey: 12, code: 82, count: 1))
        try await waitUntil("the end of the client") {
            reading.turn()
            return !reading.fatalErrors.isEmpty
        }
        #expect(reading.fatalErrors.map(\.code) == [.fencedInstanceID])
        try reading.consumer.restart(timeout: .seconds(5), now: .current)
        try fixture.write(2, from: 3, to: "events")
        try await waitUntil("the new records") {
            reading.turn()
            return reading.records.last?.offset == 4
        }
        #expect(reading.facts.contains(.lost([id])))
        #expect(reading.fatalErrors.count == 1)
        reading.close()
    }
}
