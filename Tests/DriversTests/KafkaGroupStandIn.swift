// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import EmbeddedKafka
import FleetKit
import PushModel
import Testing

@testable import KafkaLog
@testable import Rdkafka

/// A consumer to which the test announces rebalances in place of the group. The broker refuses to
/// let it join, so no other rebalance is announced and tests do not wait for joins. Fetching,
/// storing and committing are done by librdkafka.
final class GroupStandIn {
    let fixture: KafkaFixture
    let reading: Reading
    var consumer: EventConsumer { reading.consumer }

    /// - Parameter topics: the second and all that follow are read as tables.
    init(
        _ topics: [String] = ["events"], partitions: Int = 2, startFrom: StartFrom = .earliest,
        brokers: Int = 1
    ) throws {
        fixture = try KafkaFixture(
            Dictionary(uniqueKeysWithValues: topics.map { ($0, partitions) }), brokers: brokers)
        // REBALANCE_IN_PROGRESS on JoinGroup.
        try fixture.kafka.perform(.fail(apiKey: 11, code: 27, count: 100_000))
        reading = Reading(
            try EventConsumer(
                settings: fixture.settings(), topics: topics,
                replayed: Set(topics.indices.dropFirst()), startFrom: startFrom,
                logger: fixture.logger))
        reading.onRevoking = { _, _ in }
    }

    /// Announces a rebalance as librdkafka's callback would.
    func announce(
        _ code: ErrorCode, _ partitions: [Int32], of topic: String = "events",
        isLost: Bool = false
    ) {
        let list = TopicPartitionList()
        for partition in partitions { list.append(topic: topic, partition: partition) }
        consumer.rebalances.append(Rebalance(code: code, partitions: list, isLost: isLost))
        consumer.answerRebalances(.current)
    }

    /// Gives these partitions; returns their assignments.
    @discardableResult
    func assign(
        _ partitions: [Int32], of topic: String = "events"
    ) async throws -> [AssignmentID] {
        let before = reading.assignmentCount
        announce(.assignPartitions, partitions, of: topic)
        try await waitUntil("the assignment") {
            reading.turn()
            return reading.assignmentCount > before
        }
        return reading.assignments.map(\.id)
    }

    /// Of the last assignment.
    var starts: [Int64] { reading.assignments.map(\.startOffset) }

    /// Polls once a second for so long, by the clock of `now`.
    func poll(forSeconds seconds: Int, from now: inout Now) {
        for _ in 0..<seconds {
            now.monotonic = now.monotonic + .seconds(1)
            _ = consumer.poll(now: now, limit: 10) { _ in }
        }
    }

    /// Makes every fetch fail with REQUEST_TIMED_OUT.
    func silence() throws {
        try fixture.kafka.perform(.fail(apiKey: 1, code: 7, count: 100_000))
    }

    func close() { reading.close() }
}
