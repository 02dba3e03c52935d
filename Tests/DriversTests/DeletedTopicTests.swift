// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import EmbeddedKafka
import FleetKit
import PushModel
import Rdkafka
import Testing

@testable import KafkaLog

/// The embedded Kafka cannot delete a topic. It can say that there is none of the name.
@Suite struct `A deleted topic of events` {
    private let fixture: KafkaFixture
    private static let unknownTopic: Int32 = 3

    init() throws { fixture = try KafkaFixture(["events": 1, "others": 1]) }

    @Test func `a deleted topic is read again once it is back, and its consumer ends at once`()
        async throws
    {
        try fixture.write(3, to: "events")
        let reading = Reading(
            try fixture.consumer(
                ["events", "others"], properties: ["topic.metadata.refresh.interval.ms": "1000"]))
        try await reading.waitForRecords(3)
        try fixture.kafka.perform(.topicError(name: "events", code: Self.unknownTopic))
        try await waitUntil("the others alone") {
            reading.turn()
            return reading.assignments.map(\.topic) == [1]
        }
        #expect(reading.consumer.missingTopics == ["events"])
        try await reading.consumer.lookAtPartitions()
        #expect(reading.consumer.missingTopics == ["events"], "it is not there yet")
        try fixture.write(2, to: "others")
        try await reading.waitForRecords(5)

        try fixture.kafka.perform(.topicError(name: "events", code: 0))
        try fixture.write(3, from: 3, to: "events")
        try await waitUntil("the topic's new records") {
            reading.turn()
            return reading.records.contains { $0.topic == 0 && $0.value == "5" }
        }
        #expect(reading.consumer.missingTopics.isEmpty)
        let stopwatch = Stopwatch()
        #expect(reading.consumer.close(timeout: .seconds(20), now: .current))
        // The destruction of the client would never end.
        #expect(stopwatch.time < .seconds(20))
    }

    @Test func `a topic that another member reads again is missed no longer`() async throws {
        let reading = Reading(
            try fixture.consumer(
                ["events", "others"], properties: ["topic.metadata.refresh.interval.ms": "1000"]))
        try await reading.waitForAssignment()
        for topic in ["events", "others"] {
            try fixture.kafka.perform(.topicError(name: topic, code: Self.unknownTopic))
        }
        try await waitUntil("the loss") {
            reading.turn()
            return reading.consumer.missingTopics.count == 2
        }
        try fixture.kafka.perform(.topicError(name: "others", code: 0))
        // Without a turn no assignment comes here.
        try await reading.consumer.lookAtPartitions()
        #expect(reading.consumer.missingTopics == ["events"])
        reading.close()
    }
}
