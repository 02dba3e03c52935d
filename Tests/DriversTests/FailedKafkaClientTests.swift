// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import EmbeddedKafka
import FleetKit
import PushModel
import Testing

@testable import KafkaLog
@testable import Rdkafka

/// Clients that will do nothing any more say so, or the worker would wait for them for ever.
@Suite struct `Kafka clients that have failed` {
    @Test func `a producer that Kafka admits no more says so, and takes nothing`() async throws {
        let fixture = try KafkaFixture(["suppressions": 1])
        // CLUSTER_AUTHORIZATION_FAILED on InitProducerId: this user may not write each record once.
        try fixture.kafka.perform(.fail(apiKey: 22, code: 31, count: 1000))
        let producer = try fixture.producer(["suppressions"])
        // On a slow machine it has failed by now.
        let isAccepted =
            producer.produce(topic: 0, key: nil, value: nil, ticket: 7) == .accepted
        var reported: [UInt64: ErrorCode?] = [:]
        try await waitUntil("the end of the producer") {
            producer.poll(now: .current) { ticket, error in reported[ticket] = error }
            return producer.fatalError != nil && (!isAccepted || !reported.isEmpty)
        }
        #expect(producer.fatalError?.code.name == "CLUSTER_AUTHORIZATION_FAILED")
        #expect(reported.keys.elementsEqual(isAccepted ? [7] : []) && reported[7] != .some(nil))
        guard case .failed = producer.produce(topic: 0, key: nil, value: nil, ticket: 8) else {
            Issue.record("a producer that has failed accepts a record")
            return
        }
    }

    @Test func `a consumer that is opened again tells of its own end as well`() async throws {
        let fixture = try KafkaFixture(["events": 1])
        let reading = Reading(
            try fixture.consumer(["events"], properties: ["group.instance.id": "worker-0"]))
        for count in 1...2 {
            try await waitUntil("assignment \(count)") {
                reading.turn()
                return reading.assignmentCount == count
            }
            // FENCED_INSTANCE_ID on Heartbeat.
            try fixture.kafka.perform(.fail(apiKey: 12, code: 82, count: 1))
            try await waitUntil("end \(count)") {
                reading.turn()
                return reading.fatalErrors.count == count
            }
            try reading.consumer.restart(timeout: .seconds(5), now: .current)
        }
        reading.close()
    }
}

/// When the thread that sleeps on a consumer must poll it though nothing has arrived.
@Suite struct `The deadlines of a consumer` {
    @Test func `a consumer has no deadline while nothing waits`() async throws {
        let group = try GroupStandIn()
        #expect(group.consumer.nextDeadline == nil)
        try await group.assign([0])
        #expect(group.consumer.nextDeadline == nil)
        group.close()
    }

    @Test func `an assignment that is being begun is asked about again`() throws {
        let group = try GroupStandIn()
        // NOT_COORDINATOR on OffsetFetch.
        try group.fixture.kafka.perform(.fail(apiKey: 9, code: 16, count: 100_000))
        group.announce(.assignPartitions, [0])
        let deadline = try #require(group.consumer.nextDeadline)
        #expect(deadline <= Now.current.monotonic + StartResolver.attemptInterval)
        group.close()
        #expect(group.consumer.nextDeadline == nil)
    }

    @Test func `a partition that could not be begun with the others is asked about again`()
        async throws
    {
        let group = try GroupStandIn()
        try group.fixture.kafka.perform(.leader(topic: "events", partition: 1, broker: -1))
        try await group.assign([0, 1])
        let deadline = try #require(group.consumer.nextDeadline)
        #expect(deadline <= Now.current.monotonic + StartResolver.partialIntervalMax)
        // A revocation comes first.
        group.announce(.revokePartitions, [0, 1])
        #expect(group.consumer.nextDeadline == nil)
        group.close()
    }
}
