// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Delivery
internal import EmbeddedKafka
internal import FleetKit
internal import PushModel
internal import Rdkafka
internal import Testing

@testable internal import KafkaLog
@testable internal import Lifecycle
@testable internal import Pipeline
@testable internal import Worker

/// A partition is held for a schema, and something else happens to it meanwhile.
@Suite struct `The planner and a partition that is held for a schema` {
    private static let plain = PlannerScript.plain
    private static let orders = PlannerScript.orders

    /// Orders 1 and 2 are kept until their schema comes.
    private func held() async throws -> PlannerScript {
        let script = try PlannerScript()
        try await script.start([(Self.plain, 0), (Self.orders, 0), (Self.orders, 1)])
        try script.order(1, 2)
        try await script.until("both orders") { script.keptOffsets == [0, 1] }
        return script
    }

    @Test func `nothing of it is read, others are, and all in order when the schema comes`()
        async throws
    {
        let script = try await held()
        #expect(
            script.row(Self.orders)?.isHeld == true && script.row(Self.orders)?.isPaused == true)
        #expect(script.row(Self.orders, 1)?.isPaused == false)
        try script.event("s3")
        try await script.until("the other topic's push") { script.inFlight == 1 }
        let status = script.status
        #expect(status.held.map(\.offset) == [0] && status.clockDoubt.isNothing)
        #expect(script.position(Self.orders) ?? 0 == 0)

        try script.schemaArrives()
        try await script.until("the orders") { script.inFlight == 3 }
        #expect(script.loop.waits.held.isEmpty)
        #expect(script.row(Self.orders)?.isHeld == false, "it is read on")
        #expect(script.row(Self.orders)?.isPaused == false)
        try script.order(4)
        try await script.until("a later order") { script.inFlight == 4 }
        script.answerAll()
        try await script.until("the offset") {
            script.position(Self.orders) == 3
        }
    }

    @Test func `a record behind it that is to be skipped waits for its turn`() async throws {
        let script = try PlannerScript()
        try await script.start([(Self.orders, 0)])
        try script.reload(skip: "orders/0/1")
        script.turn()
        try script.order(1, 2, 3)
        try await script.until("the orders") { script.keptOffsets == [0, 1, 2] }
        #expect(script.skipped == 0)
        try script.schemaArrives()
        try await script.until("the others") { script.inFlight == 2 }
        #expect(script.skipped == 1)
        script.answerAll()
        try await script.until("the offset") {
            script.position(Self.orders) == 3
        }
    }

    @Test func `a reload that skips the awaited record reads on without its schema`() async throws {
        let script = try await held()
        try script.reload(skip: "orders/0/0, orders/0/1")
        try await script.until("the end of the hold") { script.loop.waits.held.isEmpty }
        #expect(script.skipped == 2 && script.inFlight == 0)
        #expect(script.row(Self.orders)?.isHeld == false)
        #expect(script.position(Self.orders) == 2)
    }

    @Test func `kafka.skip frees a held partition though its schema is refused`() async throws {
        let script = try await held()
        script.schemaIsRefused("http://registry answers 403")
        try await script.until("the cause") {
            script.status.held.map(\.cause) == ["http://registry answers 403"]
        }
        #expect(script.status.held.map(\.schema) == [1])
        try script.reload(skip: "orders/0/0, orders/0/1")
        try await script.until("the end of the hold") { script.loop.waits.held.isEmpty }
        #expect(script.position(Self.orders) == 2)
        // The schema is wanted no more: nobody asks for it, so that the registry is not either.
        let asked = script.schemaLookups
        try await script.rest()
        #expect(script.schemaLookups == asked)
    }

    @Test func `an operator's pause outlasts the hold, and the hold outlasts the pause`()
        async throws
    {
        let script = try await held()
        try script.pause(topic: Self.orders)
        try await script.until("the pause") {
            script.loop.pipeline.restrictions.pausedTopics[Self.orders]
        }
        try script.pause(topic: Self.orders, false)
        try await script.until("the resumption") {
            !script.loop.pipeline.restrictions.pausedTopics[Self.orders]
        }
        #expect(script.row(Self.orders)?.isHeld == true, "the schema is awaited")
        #expect(script.row(Self.orders, 1)?.isHeld == false)

        try script.pause(topic: Self.orders)
        try await script.until("the second pause") { script.row(Self.orders, 1)?.isHeld == true }
        try script.schemaArrives()
        try await script.until("what was kept") { script.loop.waits.held.isEmpty }
        try await script.rest()
        #expect(script.row(Self.orders)?.isHeld == true, "the topic is paused")
        try script.pause(topic: Self.orders, false)
        try await script.until("the second resumption") { script.row(Self.orders)?.isHeld == false }
        #expect(script.row(Self.orders)?.isPaused == false)
    }

    @Test func `what is kept is forgotten with its partition, and the next assignment reads it`()
        async throws
    {
        let script = try await held()
        let old = script.id(Self.orders)
        script.revoke([(Self.orders, 0), (Self.orders, 1), (Self.plain, 0)])
        try await script.until("the end of the drain") { script.row(Self.orders) == nil }
        #expect(script.loop.waits.held.isEmpty && script.loop.holds.topics.isEmpty)
        #expect(script.position(of: old) == nil)
        try script.schemaArrives()
        script.give([(Self.orders, 0)])
        try await script.until("the orders") { script.inFlight == 2 }
    }

    @Test func `nothing that is kept is read while the group takes the partition back`()
        async throws
    {
        let script = try await held()
        try script.event("s3")
        try await script.until("a push that keeps the drain open") { script.inFlight == 1 }
        script.revoke([(Self.orders, 0), (Self.orders, 1), (Self.plain, 0)])
        try await script.until("the drain") { script.loop.lifecycle.isDraining }
        try script.schemaArrives()
        try await script.rest()
        #expect(script.inFlight == 1 && script.loop.lifecycle.isDraining)
        script.answerAll()
        try await script.until("the end of the drain") { !script.loop.lifecycle.isDraining }
        #expect(script.accepted == 1)
    }

    @Test func `nothing that is kept is read without room, and the resumption leaves it held`()
        async throws
    {
        let script = try await held()
        script.loop.perform([.pause(.events)], now: script.now)
        #expect(script.row(Self.plain)?.isPaused == true)
        script.loop.perform([.resume(.events)], now: script.now)
        #expect(script.row(Self.plain)?.isPaused == false)
        #expect(script.row(Self.orders)?.isPaused == true, "it is held")
        #expect(script.row(Self.orders, 1)?.isPaused == false)
    }

    @Test func `nothing that is kept is read once the worker stops`() async throws {
        let script = try await held()
        try script.event("s3")
        try await script.until("a push that keeps the stop waiting") { script.inFlight == 1 }
        script.control.requestStop()
        try await script.until("the stop") { script.loop.lifecycle.isStopping }
        try script.schemaArrives()
        try await script.rest()
        #expect(script.inFlight == 1 && script.keptOffsets == [0, 1])
    }

    @Test func `a restart of the consumer reads again what was kept`() async throws {
        let script = try await held()
        script.loop.lifecycle.restartNeeded()
        script.passed += .seconds(60)
        try await script.until("the restart") { script.row(Self.orders) == nil }
        #expect(script.loop.waits.held.isEmpty)
        try script.schemaArrives()
        script.give([(Self.orders, 0)])
        try await script.until("the orders") { script.inFlight == 2 }
    }
}

extension PlannerScript {
    /// The offsets that are kept of partition 0 of `orders`.
    var keptOffsets: [Int64] {
        row(Self.orders).flatMap { loop.waits.held.partitions[$0.assignment] }?.records.map(
            \.offset)
            ?? []
    }

    var skipped: Int { loop.pipeline.counters.eventsSkipped }
}
