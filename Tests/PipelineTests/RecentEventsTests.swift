// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import Planning
internal import PushModel
internal import Testing

@testable internal import Lifecycle
@testable internal import Pipeline

/// Events with conditions are remembered for the grace period.
@Suite struct `The memory of recent events` {
    /// Each record of topic 0 is about 16 subjects, for controls alone.
    private func fixture(
        _ adjust: (inout PipelineSettings) -> Void = { _ in }
    ) -> PipelineFixture {
        var flood = TopicBinding(
            decode: .json, app: PipelineFixture.app, classes: TokenClassSet(.control))
        flood.subjects = (0..<16).map { try! SubjectTemplate("flood-{/id}-\($0)") }
        return PipelineFixture(bindings: [flood, .standard]) { settings in
            settings.events.allowKindWide = true
            adjust(&settings)
        }
    }

    @Test func `an event of many subjects is remembered once, and owed for each of them`() {
        let fixture = fixture()
        fixture.event("k", #"{"id":1}"#)
        let count = fixture.pipeline.late.recentEvents.count
        let bytes = fixture.pipeline.late.bytes
        #expect(count == 1 && bytes < 16 * 200, "\(bytes)")
        for number in 0..<16 as Range<UInt8> {
            fixture.registerControl("I\(number)", [number], shows: ["flood-1-\(number)"])
            fixture.register("D\(number)", [.device([99, number], shows: ["flood-1-\(number)"])])
        }
        #expect(fixture.deliverAll().map(\.token) == (0..<16).map { [$0] })
        fixture.pass(.seconds(3))
        let left = fixture.pipeline.late.bytes
        #expect(left == 0 && fixture.isIdle)
    }

    @Test func `each subject of remembered events has the expiry of its own events`() {
        let fixture = fixture()
        fixture.event("s", #"{"v":1,"kinds":["lamp"],"ttlSeconds":60}"#, binding: 1)
        fixture.event("t", #"{"v":1,"kinds":["lamp"],"ttlSeconds":2}"#, binding: 1)
        fixture.event("s", #"{"v":1,"kinds":["lamp"],"ttlSeconds":2}"#, binding: 1)
        fixture.pass(.milliseconds(1500))
        fixture.registerControl("A", [1], shows: ["s"], kind: "lamp")
        fixture.registerControl("B", [2], shows: ["t"], kind: "lamp")
        fixture.pass(.seconds(1))
        #expect(fixture.take().map(\.token) == [[1]])
    }

    @Test func `an event of several lists has one body`() {
        let fixture = fixture()
        for (number, kind) in ["lamp", "lock", "bell"].enumerated() {
            fixture.registerControl("I\(number)", [UInt8(number)], shows: ["x"], kind: kind)
        }
        fixture.event(
            nil,
            #"{"v":1,"app":"com.example.Home","kinds":["lamp","lock","bell"],"#
                + #""payload":{"aps":{"content-available":1}}}"#,
            binding: 1)
        let count = fixture.pipeline.state.pushes.bodies.count
        #expect(count == 1)
    }

    @Test func `a topic that fills the memory of recent events waits, and the quiet one does not`()
    {
        let fixture = fixture { $0.recentEventBytesMax = 100_000 }
        fixture.assign(topic: 1, startOffset: 0, nextOffset: 0)
        fixture.unassign()
        var read = 0
        while !fixture.pipeline.isShortOfRoom, read < 10_000 {
            fixture.event("k", #"{"id":\#(read)}"#)
            read += 1
        }
        let hasRoom = fixture.pipeline.hasRoomForEvents
        #expect(hasRoom && read > 10 && read < 10_000, "before nothing more can be read")
        // Nobody shows these subjects: no event is under way.
        let bounds = fixture.pipeline.eventBounds(underWay: [0, 0])
        var turns = TopicTurns(topics: 2)
        let isChanged = turns.next(bounds, now: fixture.now.monotonic)
        #expect(isChanged && turns.isWaiting(0) && !turns.isWaiting(1))
        let isHalfFree = fixture.pipeline.isHalfFree
        #expect(!isHalfFree, "what is paused is not resumed for one event")
        fixture.pass(.seconds(3))
        let isOver = turns.next(
            fixture.pipeline.eventBounds(underWay: [0, 0]), now: fixture.now.monotonic)
        #expect(isOver && !turns.isAnyWaiting)
    }

    @Test func `events under way through many lists count for their own topic`() {
        let fixture = fixture {
            $0.fanOutsMax = 8
            $0.immediateFanOutMax = 1
            $0.slots = 8
        }
        for subject in ["a", "b", "c", "d", "e", "f", "g"] {
            fixture.register("P" + subject, (0..<3).map { .device([7, $0], shows: [subject]) })
        }
        for subject in ["a", "b", "c", "d", "e", "f", "g"] { fixture.event(subject, binding: 1) }
        let bounds = fixture.pipeline.eventBounds(underWay: [7, 500])
        let taken = bounds.filter(\.isShort).map(\.taken)
        #expect(taken.contains([7, 0]), "\(bounds)")
    }

    @Test func `no topic waits for letters that Kafka may never take`() {
        let fixture = fixture {
            $0.deadLetterBytesMax = 64 << 10
            $0.deadLetterEventBytesMax = 0
        }
        while !fixture.pipeline.isShortOfRoom {
            let hasRoom = fixture.pipeline.hasRoomForEvents
            #expect(hasRoom, "while there is room nothing is short")
            fixture.event("door", "{", binding: 1)
        }
        let hasRoom = fixture.pipeline.hasRoomForEvents
        #expect(!hasRoom)
        fixture.pass(.milliseconds(100))
        fixture.pass(.seconds(1))
        let isShort = fixture.pipeline.isShortOfRoom
        #expect(!isShort, "letters go without their events")
    }

    @Test func `payloads count for the topic that has brought them`() {
        let fixture = fixture { $0.payloadBytesMax = 2000 }
        fixture.register("P", [.device([1], shows: ["score"])])
        var number = 0
        while !fixture.pipeline.isShortOfRoom, number < 1000 {
            fixture.event("score", EventValue.alert("\(number)"), binding: 1)
            number += 1
        }
        // They are of the partition of topic 0, whatever their binding.
        let short = fixture.pipeline.eventBounds(underWay: [1, 200]).filter(\.isShort)
        #expect(short.count == 1 && short[0].taken[0]! >= 1750 && short[0].taken[1] == 0)
        let isHalfFree = fixture.pipeline.isHalfFree
        #expect(isHalfFree, "some payloads cannot even be deferred")
    }
}
