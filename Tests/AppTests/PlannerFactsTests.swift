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

/// Where the planner brings two facts together: what it then asks of its clients.
@Suite struct `The planner brings facts together` {
    private static let plain = PlannerScript.plain
    private static let orders = PlannerScript.orders
    private static let deferred = PlannerScript.deferred

    // MARK: Delivery

    @Test
    func `each port has as many pushes as it has room for, and gives room back by its outcomes`()
        async throws
    {
        let script = try PlannerScript()
        try await script.start([(Self.plain, 0)])
        for (number, port) in script.ports.enumerated() {
            for pool in script.loop.plan.routing.pools.indices {
                port.publish(capacity: 1 + number, of: PoolID(rawValue: UInt16(pool)))
            }
        }
        try script.event("all")
        try await script.until("three pushes") { script.inFlight == 3 }
        try await script.rest()
        #expect(script.submitted(0).count == 1 && script.submitted(1).count == 2)
        #expect(script.loop.delivery.outstanding.map { $0.reduce(0, +) } == [1, 2])
        script.answer(1)
        try await script.until("the fourth") { script.submitted(1).count == 1 }
        #expect(script.submitted(0).count == 1, "it has answered none")
        #expect(script.accepted == 2)
        script.answerAll()
        try await script.until("all") { script.accepted == 4 }
        #expect(script.loop.delivery.outstanding.joined().allSatisfy { $0 == 0 })
    }

    @Test func `a port is told which pushes are patient`() async throws {
        let script = try PlannerScript()
        try await script.start([(Self.plain, 0), (Self.deferred, 0), (Self.deferred, 1)])
        try script.event("s2")
        try await script.until("a push for an event") { script.inFlight == 1 }
        #expect(script.patientCount == 0)
        try script.deferredPush()
        try await script.until("one that comes from deferred") { script.inFlight == 2 }
        #expect(script.patientCount == 1)
        script.answerAll()
        try await script.until("both have ended") { script.accepted == 2 }
        #expect(script.loop.delivery.outstanding.joined().allSatisfy { $0 == 0 })
    }

    @Test func `another port is first in each turn`() async throws {
        let script = try PlannerScript()
        try await script.start([(Self.plain, 0)])
        var first: Set<Int> = []
        var round = 0
        // Which turn an event is read in is Kafka's affair.
        while first.count < 2, round < 40 {
            round += 1
            try script.event("s1")
            try await script.until("push \(round)") { script.inFlight == 1 }
            for port in 0...1 where !script.submitted(port).isEmpty { first.insert(port) }
            script.answerAll()
            try await script.until("its answer") { script.accepted == round }
        }
        #expect(first == [0, 1])
    }

    @Test func `a new key sends what a refused one has stopped, at once`() async throws {
        let script = try PlannerScript()
        // What has been refused some times waits in `deferred`.
        try await script.start([(Self.plain, 0), (Self.deferred, 0), (Self.deferred, 1)])
        try script.event("s1")
        try await script.until("the push") { script.inFlight == 1 }
        // The first probes may come soon.
        var due = script.now.monotonic
        try await script.until("a breaker that waits") {
            if script.inFlight > 0 {
                for port in 0...1 {
                    script.answer(port, status: 403, reason: .invalidProviderToken)
                }
            }
            let wait = script.status.breakers.compactMap(\.probeIn).max() ?? .zero
            if wait <= .seconds(20) { script.passed += wait }
            due = script.now.monotonic + wait
            return wait > .seconds(20)
        }
        try await script.rest()
        #expect(script.inFlight == 0)
        for pool in script.loop.plan.routing.pools.indices {
            script.control.keyChanged(of: PoolID(rawValue: UInt16(pool)))
        }
        try await script.until("a probe") { script.inFlight == 1 }
        #expect(script.now.monotonic < due, "a probe goes before it would be due")
        #expect(script.status.breakers.allSatisfy { $0.probeIn == nil })
        script.answerAll()
        try await script.until("its end") { script.accepted == 1 }
        #expect(script.status.breakers.isEmpty)
    }

    // MARK: Topics

    @Test func `a pause of events leaves deferred`() async throws {
        let script = try PlannerScript()
        try await script.start([(Self.plain, 0), (Self.orders, 1), (Self.deferred, 0)])
        func paused() -> [Bool] {
            [(Self.plain, 0), (Self.orders, 1), (Self.deferred, 0)].map {
                script.row($0.0, Int32($0.1))?.isPaused == true
            }
        }
        for (topics, expected) in [
            (PausedTopics.events, [true, true, false]), (.all, [true, true, true]),
        ] {
            script.loop.perform([.pause(topics)], now: script.now)
            #expect(paused() == expected, "\(topics)")
            script.loop.perform([.resume(topics)], now: script.now)
            #expect(paused() == [false, false, false], "\(topics)")
        }
    }

    @Test func `deferred is no topic of events: no turn, no offset, no share of its load`()
        async throws
    {
        let script = try PlannerScript()
        try await script.start([(Self.plain, 0), (Self.deferred, 0), (Self.deferred, 1)])
        #expect(script.loop.holds.topics == [script.id(Self.plain): Self.plain])
        #expect(script.loop.lifecycle.open.events == [script.id(Self.plain)])
        #expect(script.loop.lifecycle.open.deferred.count == 2)
        #expect(script.loop.pipeline.deferredAssignments.count == 2)
        let positions = script.loop.positions(
            of: script.loop.lifecycle.open.deferred, now: script.now)
        #expect(positions.isEmpty)
    }

    @Test func `a topic that waits for its turn is held, and not released by another's end`()
        async throws
    {
        let script = try PlannerScript()
        try await script.start([(Self.plain, 0), (Self.orders, 0)])
        try script.pause(topic: Self.plain)
        try await script.until("the pause") { script.row(Self.plain)?.isHeld == true }
        #expect(script.row(Self.orders)?.isHeld == false)
        try script.event("s1")
        try await script.rest()
        #expect(script.inFlight == 0)
        // The valve pauses and resumes all others; what is held stays.
        script.loop.perform([.pause(.events), .resume(.events)], now: script.now)
        #expect(script.row(Self.plain)?.isPaused == true)
        #expect(script.row(Self.orders)?.isPaused == false)
        try script.pause(topic: Self.plain, false)
        try await script.until("the event") { script.inFlight == 1 }
    }

    @Test func `a partition that comes while its topic is paused is held`() async throws {
        let script = try PlannerScript()
        try script.pause(topic: Self.plain)
        try await script.until("the consumer") { script.loop.consumer != nil }
        script.give([(Self.plain, 0), (Self.orders, 0)])
        try await script.until("the partition") { script.row(Self.plain)?.isHeld == true }
        #expect(script.row(Self.orders)?.isHeld == false)
    }

    // MARK: Offsets

    @Test func `a position that changes while a commit is under way is committed afterwards`()
        async throws
    {
        let script = try PlannerScript()
        try await script.start([(Self.plain, 0)])
        for number in 1...3 {
            try script.event("s\(number)")
            try await script.until("push \(number)") { script.inFlight == 1 }
            script.answerAll()
            try await script.until("its end") { script.accepted == number }
            script.loop.commitOffsets(now: script.now)
        }
        try await script.until("the last commit") { script.row(Self.plain)?.stored == 3 }
        #expect(script.loop.consumer?.commitUnderWay == nil)
    }

    @Test func `an assignment that is lost commits nothing for the next one`() async throws {
        let script = try PlannerScript()
        try await script.start([(Self.plain, 0), (Self.orders, 0)])
        try script.event("s1")
        try await script.until("the push") { script.inFlight == 1 }
        let old = script.id(Self.plain)
        script.revoke([(Self.plain, 0), (Self.orders, 0)], isLost: true)
        try await script.until("the loss") { script.row(Self.plain) == nil }
        #expect(script.loop.holds.topics.isEmpty && script.loop.lifecycle.open.events.isEmpty)
        script.give([(Self.plain, 0)])
        try await script.until("the event again") {
            script.row(Self.plain).map { $0.assignment != old && $0.received == 0 } ?? false
        }
        #expect(script.position(Self.plain) ?? 0 == 0, "the push is owed to the new assignment")
        script.answerAll()
        try await script.until("an end") { script.accepted >= 1 }
        #expect(script.position(of: old) == nil)
    }

    // MARK: Drains

    @Test func `letters that wait for further tokens are written when partitions are given back`()
        async throws
    {
        let script = try PlannerScript()
        try await script.start([(Self.plain, 0)])
        try script.event("s1")
        try await script.until("the push") { script.inFlight == 1 }
        for port in 0...1 { script.answer(port, status: 400, reason: .payloadEmpty) }
        try await script.until("the failure") { script.inFlight == 0 && script.failures > 0 }
        script.revoke([(Self.plain, 0)])
        try await script.until("the drain") { script.loop.lifecycle.isDraining }
        let begun = script.now.monotonic
        try await script.until("its end") { script.row(Self.plain) == nil }
        #expect(script.now.monotonic - begun < .seconds(1), "it did not wait for its deadline")
        #expect(script.loop.pipeline.counters.deadLettersWritten == 1)
        #expect(script.loop.pipeline.load.unacknowledged == 0)
        script.give([(Self.plain, 0)])
        try await script.until("the next assignment") { script.row(Self.plain) != nil }
        #expect(script.row(Self.plain)?.startOffset == 1, "its offset was stored")
    }

    // MARK: Restrictions and clocks

    @Test func `a start without restrictions waits a minute, says so, and follows them afterwards`()
        async throws
    {
        let script = try PlannerScript { kafka in
            try kafka.perform(.leader(topic: "lamplighter.restrictions", partition: 0, broker: -1))
        }
        try await script.until("the registrations") {
            script.loop.tables.isCaughtUp(topic: 0) && script.loop.tables.isCaughtUp(topic: 1)
        }
        script.passed += .seconds(59)
        script.turn()
        #expect(script.loop.consumer == nil && !script.status.lacksRestrictions)
        script.passed += .seconds(1)
        try await script.start([(Self.plain, 0)])
        #expect(script.status.lacksRestrictions)
        #expect(
            script.lines.taken().contains { $0.hasPrefix("warning starting without the restri") })
        try script.event("s1")
        try await script.until("a push") { script.inFlight == 1 }

        try script.kafka.perform(
            .leader(topic: "lamplighter.restrictions", partition: 0, broker: 1))
        try script.pause(topic: Self.plain)
        try await script.until("the pause") { script.row(Self.plain)?.isHeld == true }
        try await script.until("the end of the table") {
            !script.status.lacksRestrictions
        }
        #expect(script.lines.taken().contains { $0.hasPrefix("notice the restrictions are read") })
    }

    @Test func `a start without registrations waits for them, however long that lasts`()
        async throws
    {
        let script = try PlannerScript { kafka in
            try kafka.perform(.leader(topic: "lamplighter.registrations", partition: 0, broker: -1))
        }
        try await script.until("the restrictions") { script.loop.tables.isCaughtUp(topic: 2) }
        script.passed += .seconds(3600)
        try await script.rest()
        #expect(script.loop.consumer == nil)
    }

    @Test func `a clock a day ahead reads no event that is being written, until it is set right`()
        async throws
    {
        let script = try PlannerScript()
        script.wallAhead = .seconds(86_400)
        try await script.start([(Self.plain, 0), (Self.plain, 1)])
        try script.event("s1")
        try await script.until("the hold") { script.row(Self.plain)?.isHeld == true }
        try await script.rest()
        #expect(script.loop.pipeline.counters.eventsExpired == 0 && script.inFlight == 0)
        let doubt = script.status.clockDoubt
        #expect(doubt.partitions == 1 && abs(doubt.lead.components.seconds - 86_400) < 60)
        #expect(script.status.held.isEmpty, "no schema is awaited")
        script.loop.watchOver(now: script.now)
        #expect(
            script.lines.taken().contains { $0.hasPrefix("warning this worker's clock is ahe") })

        script.wallAhead = .zero
        try await script.until("the push") { script.inFlight == 1 }
        #expect(script.row(Self.plain)?.isHeld == false && script.loop.waits.held.isEmpty)
        script.answerAll()
        try await script.until("its end") { script.accepted == 1 }
    }

    @Test func `a backlog that has expired is read on, whatever the clock`() async throws {
        let script = try PlannerScript()
        for number in 1...3 { try script.event("s\(number)") }
        script.wallAhead = .seconds(86_400)
        try await script.start([(Self.plain, 0)])
        #expect(script.loop.pipeline.counters.eventsExpired == 3 && script.loop.waits.held.isEmpty)
    }

    @Test func `a clock that is set right has deferred read again, and nothing was lost`()
        async throws
    {
        let script = try PlannerScript()
        script.wallAhead = .seconds(86_400)
        try script.deferredPush()
        try await script.start([(Self.plain, 0), (Self.deferred, 0)])
        try await script.until("the row that is held back") {
            script.status.clockDoubt.deferred == 1
        }
        script.loop.watchOver(now: script.now)
        #expect(!script.loop.lifecycle.restarts.isAwaited)
        script.wallAhead = .zero
        script.loop.watchOver(now: script.now)
        #expect(script.loop.lifecycle.restarts.isAwaited)
        script.passed += .seconds(60)
        try await script.until("the restart") { script.row(Self.deferred) == nil }
        script.give([(Self.deferred, 0)])
        try await script.until("the push") { script.inFlight == 1 }
        script.answerAll()
        try await script.until("its end") { script.accepted == 1 }
        #expect(script.loop.pipeline.counters.expired == 0)
    }
}

extension PlannerScript {
    var failures: Int { loop.pipeline.counters.rejected }
}
