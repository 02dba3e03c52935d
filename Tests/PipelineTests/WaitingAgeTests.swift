// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// How old the oldest of what waits is.
@Suite struct `The ages of waiting pushes and offsets` {
    private let fixture = PipelineFixture {
        $0.registrationGrace = .seconds(2)
        $0.tokenGuard.suppressionsPerMinuteMax = 0
    }

    private var waiting: Duration? { fixture.pipeline.load(now: fixture.now).oldestWaiting }
    private var uncommitted: Duration? { fixture.pipeline.load(now: fixture.now).oldestUncommitted }

    @Test func `the oldest waiting push is told by its event, until none waits`() {
        fixture.registerControl("A", [1], shows: ["door"])
        fixture.registerControl("B", [2], shows: ["hall"])
        #expect(waiting == nil)
        fixture.event("hall", writtenAt: fixture.now.wall + .seconds(-30))
        fixture.event("door", writtenAt: fixture.now.wall + .seconds(-5))
        fixture.pass(.seconds(1))
        #expect(waiting == .seconds(31))
        let first = fixture.take(1)[0]
        fixture.pass(.seconds(1))
        fixture.pass(.seconds(1))
        #expect(waiting == .seconds(first.token == [2] ? 8 : 33))
        _ = fixture.take(1)
        #expect(waiting == nil, "in flight")
        fixture.answer(first, 503, .serviceUnavailable, retryAfterSeconds: 60)
        fixture.pass(.seconds(1))
        #expect(waiting == .seconds(first.token == [2] ? 34 : 9), "it waits for its next try")
    }

    @Test func `the oldest waiting push is not told by one that waited before all had ended`() {
        let fixture = PipelineFixture { $0.slots = 16_384 }
        fixture.checksEachCall = false
        fixture.register("D", [.device([9], shows: ["inbox"])])
        // More than the watch looks at in one go, so that the incident ends in the middle of a lap.
        for number in 0..<HoldWatch.chunk + 1000 {
            fixture.event(
                "inbox", EventValue.alert("\(number)"), writtenAt: fixture.now.wall + .seconds(-30))
        }
        func waiting() -> Duration? { fixture.pipeline.load(now: fixture.now).oldestWaiting }
        fixture.pass(.seconds(1))
        #expect(waiting() == .seconds(31))
        while !fixture.deliverAll().isEmpty {}
        fixture.pass(.seconds(3600))
        fixture.event("inbox", EventValue.alert("later"), writtenAt: fixture.now.wall)
        fixture.pass(.seconds(1))
        #expect(waiting() == .seconds(1))
    }

    @Test func `the oldest uncommitted record is told by its reading, grace period and all`() {
        fixture.registerControl("A", [1], shows: ["door"])
        #expect(uncommitted == nil)
        fixture.event("nobody's")
        fixture.pass(.seconds(1))
        #expect((uncommitted ?? .zero) >= .milliseconds(900))
        fixture.pass(.seconds(3))
        _ = fixture.committableOffset
        #expect(uncommitted == nil)

        fixture.event("door", writtenAt: fixture.now.wall + .seconds(-600))
        fixture.pass(.seconds(7))
        fixture.event("door")
        #expect(uncommitted == .seconds(7))
        let push = fixture.take()[0]
        fixture.pass(.seconds(5))
        #expect(uncommitted == .seconds(12))
        fixture.answer(push, 200)
        _ = fixture.committableOffset
        #expect(uncommitted == nil)
    }
}
