// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import Testing

@Suite(
    .serialized,
    .fleet(
        TestPlan(
            workers: 2, recordRequests: 100, registrationGrace: .milliseconds(500), splitAbove: 1000
        )))
struct `An event split among workers` {
    @Test func `an event above splitAbove is sent by all workers, also from a foreign topic`()
        async throws
    {
        let fleet = try #require(Fleet.current)
        let tokens = (0..<2000).map { _ in TestToken() }
        for start in stride(from: 0, to: tokens.count, by: 50) {
            try fleet.register(
                .controls(Array(tokens[start..<start + 50]), show: ["order-7"]))
        }
        // Both workers have a partition from now on, and know every token.
        try await fleet.eventually("a partition for each worker") {
            fleet.workers.allSatisfy { $0.output.contains("assigned") }
        }
        try await fleet.registrationsApplied()
        try fleet.write(to: .orders, key: "7", value: #"{"orderId":7}"#)
        let expected = Set(tokens.map(\.hex))
        var answers: [LoggedOutcome] = []
        try await fleet.eventually("a push to each token") {
            answers = try fleet.answers()
                .filter { $0.status == 200 && expected.contains($0.token) }
            return Set(answers.map(\.token)) == expected
        }
        let shards = try await OperatorTopics(fleet).records(of: fleet.topics[.events])
            .filter { $0.value?.contains(#""shard":{"index":"#) == true }
        #expect(Set(shards.map(\.partition)) == Set(0..<FleetTopics.partitionsEach))
        #expect(shards.allSatisfy { $0.key == "order-7" })
        // Each worker has connections of its own.
        #expect(Set(answers.map(\.connection)).count >= 2)
        let names = Dictionary(grouping: answers, by: \.token).mapValues { Set($0.map(\.apnsID)) }
        #expect(names.values.allSatisfy { $0.count == 1 }, "a push has one name")
    }
}

/// The worker may not write shards, and is given more of them at once than its producer takes.
@Suite(
    .serialized,
    .fleet(
        TestPlan(
            recordRequests: 100, registrationGrace: .milliseconds(200), splitAbove: 1000,
            producerRecordsMax: 1000))
)
struct `Events of many tokens while their topic takes no shards` {
    @Test func `events are sent at once by the worker that read them while no shards are taken`()
        async throws
    {
        let fleet = try #require(Fleet.current)
        // Only the embedded Kafka refuses records as it is told.
        guard fleet.broker != nil else { return }
        let tokens = (0..<1001).map { _ in TestToken() }
        let subjects = (0..<80).map { "subject-\($0)" }
        for start in stride(from: 0, to: tokens.count, by: 7) {
            try fleet.register(.controls(Array(tokens[start..<start + 7]), show: subjects))
        }
        try await fleet.registrationsApplied()
        let positions = try fleet.positions()
        let worker = fleet.workers[0]
        worker.signal(SIGTERM)
        _ = try await worker.finish()

        try fleet.write(
            subjects.map {
                WrittenRecord(
                    topic: .events, key: $0,
                    value: #"{"v":1,"subject":"\#($0)","app":"\#(TestApp.home)"}"#)
            })
        // Produce (0) fails with TOPIC_AUTHORIZATION_FAILED (29).
        try await fleet.tellKafka("err 0 29 1000")
        try fleet.startWorker()
        try await fleet.eventually("every event to end") {
            try fleet.lags(positions).allSatisfy { $0 == 0 }
        }
        // The simulator's log is written a moment after its answers.
        let expected = Set(tokens.map(\.hex))
        try await fleet.eventually("a push to each token") {
            try expected.isSubset(of: fleet.answers().filter { $0.status == 200 }.map(\.token))
        }
    }
}
