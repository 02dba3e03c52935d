// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import EmbeddedKafka
internal import Pipeline
internal import PushModel
internal import Testing

@testable internal import Lifecycle
@testable internal import Worker

@Suite struct `The planner writes canaries` {
    private static let plain = PlannerScript.plain
    private static let yaml = "canary: {every: 10s, subject: s1}"

    @Test func `to its own partitions in turn, and sees them come through`() async throws {
        let script = try PlannerScript(Self.yaml)
        try await script.start([(Self.plain, 0), (Self.plain, 1)])
        for number in 1...3 as ClosedRange<UInt64> {
            try await script.until("a push") { script.inFlight == 1 }
            let partition = Int32(number % 2)
            #expect(script.status.canary?.latest?.partition == partition)
            script.answer(status: 410, reason: .unregistered)
            script.answer(1, status: 410, reason: .unregistered)
            try await script.until("the answer") {
                script.status.canary?.lastProof?.number == number
            }
            #expect(script.position(Self.plain, partition).map { $0 > 0 } == true)
            script.passed += .seconds(10)
        }
        #expect(script.status.canary?.counts.cameThrough == 3)
        #expect(script.loop.pipeline.counters.unregistered == 0)
        #expect(script.status.canary?.topic == "lamplighter.events")
    }

    @Test func `none without a partition of their topic, and is not judged then`() async throws {
        let script = try PlannerScript(Self.yaml)
        try await script.start([(PlannerScript.orders, 0)])
        script.passed += .seconds(100)
        try await script.rest()
        let canary = try #require(script.status.canary)
        #expect(canary.silence == nil && canary.counts.written == 0)
    }

    @Test func `none while it gives partitions back`() async throws {
        let script = try PlannerScript(Self.yaml)
        try await script.start([(Self.plain, 0)])
        try await script.until("a push") { script.inFlight == 1 }
        script.passed += .milliseconds(9500)
        script.turn()
        script.revoke([(Self.plain, 0)])
        // The next is due while answers to what was read are awaited, for two seconds.
        script.passed += .seconds(1)
        try await script.rest()
        #expect(script.loop.lifecycle.isDraining)
        #expect(script.status.canary?.counts.written == 1)
        script.answerAll()
        try await script.until("the answer") { script.status.canary?.lastProof?.number == 1 }
    }

    @Test func `those that nothing answers are missed`() async throws {
        let script = try PlannerScript(Self.yaml)
        try await script.start([(Self.plain, 0)])
        try await script.until("a push") { script.inFlight == 1 }
        for _ in 1...3 {
            script.passed += .seconds(10)
            try await script.rest()
        }
        script.passed += .seconds(1)
        script.turn()
        let problems = Diagnosis(script.status).problems
        #expect(
            problems.contains { $0.summary.hasPrefix("No canary has come through") }, "\(problems)")
        script.answerAll()
        try await script.until("another") { script.inFlight == 1 }
        script.answerAll()
        try await script.until("the latest") { script.status.canary?.isMissing == false }
    }

    @Test func `and misses them while no group gives it partitions`() async throws {
        let script = try PlannerScript(Self.yaml)
        try await script.start([(Self.plain, 0)])
        try await script.until("a push") { script.inFlight == 1 }
        script.answerAll()
        try await script.until("the answer") { script.status.canary?.lastProof?.number == 1 }
        script.revoke([(Self.plain, 0)], isLost: true)
        for _ in 1...4 {
            script.passed += .seconds(10)
            try await script.rest()
        }
        #expect(script.row(Self.plain, 0) == nil)
        #expect(
            script.status.canary?.isMissing == true && script.status.canary?.counts.written == 1)
    }

    @Test func `those that the broker refuses say why`() async throws {
        let script = try PlannerScript(Self.yaml) {
            // TOPIC_AUTHORIZATION_FAILED on Produce, beyond the registrations of the script.
            try $0.perform(.fail(apiKey: 0, code: 29, count: 1))
        }
        try await script.start([(Self.plain, 0)])
        try await script.until("Kafka's answer") {
            script.status.canary?.latest?.stage == .refused(cause: "TOPIC_AUTHORIZATION_FAILED")
        }
        script.passed += .seconds(10)
        try await script.until("the next") { script.inFlight == 1 }
    }
}
