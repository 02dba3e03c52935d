// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import PushModel
internal import Testing

@testable internal import Pipeline

/// The time from event to acceptance.
@Suite struct `The latency of accepted pushes` {
    private let fixture = PipelineFixture { $0.registrationGrace = .seconds(2) }

    private func milliseconds(_ type: PushType) -> UInt64? {
        fixture.acceptanceTimes.first { $0.type == type }.map { $0.times.sum / 1_000_000 }
    }

    @Test func `a push is measured from the writing of its record, under its type`() {
        fixture.registerControl("A", [1], shows: ["door"])
        fixture.register("D", [.device([9], shows: ["door"])])
        fixture.event("door", writtenAt: fixture.now.wall + .milliseconds(-7))
        fixture.event(
            "door", #"{"payload":{"aps":{"alert":"1"}}}"#,
            writtenAt: fixture.now.wall + .seconds(-600))
        fixture.pass(.milliseconds(35))
        #expect(fixture.deliverAll().count == 2)
        #expect(milliseconds(.controls) == 42 && milliseconds(.alert) == 600_035)
        #expect(fixture.acceptanceTimes.map(\.times.count) == [1, 1])
    }

    @Test func `a push is measured from the oldest event that it answers for`() {
        fixture.registerControl("A", [1], shows: ["door"])
        for _ in 0..<3 {
            fixture.event("door")
            fixture.pass(.milliseconds(10))
        }
        let push = fixture.take()[0]
        fixture.event("door")
        fixture.pass(.milliseconds(100))
        fixture.answer(push, 200)
        #expect(milliseconds(.controls) == 130)
        // Its follow-up answers for the fourth event alone.
        #expect(fixture.deliverAll().count == 1)
        #expect(milliseconds(.controls) == 230)
    }

    @Test func `a producer's clock that is ahead counts as no time at all`() {
        fixture.registerControl("A", [1], shows: ["door"])
        fixture.event("door", writtenAt: fixture.now.wall + .seconds(5))
        #expect(fixture.deliverAll().count == 1 && milliseconds(.controls) == 0)
    }

    @Test func `the first push of all is measured, even in its event's millisecond`() {
        var routing = RoutingTable()
        routing.add(
            credential: "team", apps: ["com.example.Home"], environments: [.production])
        var tally = PushTally(routing: routing)
        let now = fixture.now.wall
        tally.accepted(RouteID(rawValue: 0), .controls, writtenAt: now, now: now)
        tally.closeRun()
        #expect(tally.acceptanceTimes.map(\.times.count) == [1])
    }

    @Test func `a record without a timestamp is measured from its reading`() {
        fixture.registerControl("A", [1], shows: ["door"])
        fixture.event("door", writtenAt: WallTime(milliseconds: -1))
        fixture.pass(.milliseconds(20))
        #expect(fixture.deliverAll().count == 1 && milliseconds(.controls) == 20)
    }

    @Test func `a fan-out to many tokens is measured from its event at each`() {
        for number in 1...100 {
            fixture.registerControl("I\(number)", [UInt8(number)], shows: ["door"])
        }
        fixture.event("door")
        fixture.pass(.milliseconds(300))
        #expect(fixture.deliverAll().count == 100)
        #expect(milliseconds(.controls) == 30_000)
    }

    @Test func `a push of a shard is measured from the writing of the event that was split`() {
        let fixture = PipelineFixture { settings in
            settings.splitAbove = 3
            settings.shards = ShardTopic(binding: 0, partitions: 2)
        }
        for number in 1...4 {
            fixture.registerControl("I\(number)", [UInt8(number)], shows: ["door"])
        }
        let changedAt = fixture.now.wall + .seconds(-7200)
        fixture.event(
            "door", #"{"time":"\#(changedAt.rfc3339)"}"#,
            writtenAt: fixture.now.wall + .seconds(-3))
        let shards = fixture.takeRecords()
        fixture.acknowledge(shards)
        #expect(shards.count == 2)
        fixture.pass(.milliseconds(40))
        for shard in shards { fixture.event(shard.key, shard.value) }
        #expect(fixture.deliverAll().count == 4)
        let first = fixture.acceptanceTimes.map(\.times)
        #expect(first.map(\.sum) == [4 * 3_040_000_000])
        // A shard that an earlier version wrote says nothing of its event.
        for shard in shards {
            let value = shard.value.replacing(/,"writtenAt":"[^"]*"/, with: "")
            #expect(value != shard.value)
            fixture.event(shard.key, value)
        }
        #expect(fixture.deliverAll().count == 4)
        #expect(fixture.acceptanceTimes.map(\.times.count) == first.map(\.count))
    }

    @Test func `a token that registers after the event is not measured`() {
        fixture.event("door")
        fixture.pass(.seconds(1))
        fixture.registerControl("A", [1], shows: ["door"])
        fixture.event("hall", #"{"classes":["control"]}"#)
        fixture.registerControl("B", [2], shows: ["hall"])
        #expect(fixture.deliverAll().count == 2)
        #expect(fixture.acceptanceTimes.isEmpty && fixture.counters.accepted == 2)
    }

    @Test func `a deferred push keeps the time of its event on the way through Kafka`() {
        let owner = DeferredOwner(controls: 1)
        owner.pipeline.event("s1")
        owner.pipeline.answer(
            owner.pipeline.take()[0], 429, .tooManyRequests, retryAfterSeconds: 60)
        owner.deferred.produce()
        owner.deferred.read()
        owner.pipeline.pass(.seconds(61))
        #expect(owner.pipeline.deliverAll().count == 1)
        #expect(owner.pipeline.acceptanceTimes.map(\.times.sum) == [61_000_000_000])
        // One that an earlier version wrote says nothing of its event.
        owner.write(1)
        owner.pipeline.pass(.seconds(1))
        #expect(owner.pipeline.deliverAll().count == 1)
        #expect(owner.pipeline.acceptanceTimes.map(\.times.count) == [1])
    }
}

extension PipelineFixture {
    var acceptanceTimes: [(type: PushType, times: LatencyHistogram)] {
        pipeline.pushTally.acceptanceTimes
    }
}
