// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Pipeline
internal import PushModel
internal import Testing

@Suite struct `Room in the pipeline` {
    @Test func `an event of many tokens leaves the share of deferred pushes free`() {
        let fixture = PipelineFixture { $0.slots = 64 }
        for number in 0..<100 as Range<UInt8> {
            fixture.registerControl("I\(number)", [number], shows: ["door"])
        }
        fixture.event("door")
        fixture.pass(.zero)
        // And a sixteenth for events of few tokens.
        #expect(fixture.load.queued == 64 - 64 / 8 - 64 / 16)
    }

    @Test func `an event of few tokens goes at once beside one that fills all it may`() {
        let fixture = PipelineFixture {
            $0.slots = 64
            $0.immediateFanOutMax = 2
        }
        for number in 0..<100 as Range<UInt8> {
            fixture.registerControl("I\(number)", [number], shows: ["city"])
        }
        fixture.registerControl("D", [200], shows: ["door"])
        fixture.event("city")
        fixture.pass(.zero)
        let filled = fixture.load.queued
        #expect(fixture.roomForEvents > 0)
        fixture.event("door")
        #expect(fixture.load.queued == filled + 1 && fixture.load.fanOuts == 1)
    }

    @Test func `events of few tokens take half of what is free, and leave a walk the rest`() {
        let fixture = PipelineFixture {
            $0.slots = 64
            $0.immediateFanOutMax = 3
        }
        for number in 0..<100 as Range<UInt8> {
            fixture.registerControl("I\(number)", [number], shows: ["city"])
        }
        // 56 slots are not the deferred share's.
        #expect(fixture.roomForEvents == 56 / 2 / 3)
        fixture.event("city")
        fixture.pass(.zero)
        #expect(fixture.roomForEvents == 1)
        // These take 3 of the 4 slots that the walk has left; of the last one it leaves half, none.
        for number in 0..<3 as Range<UInt8> {
            fixture.registerControl("D\(number)", [200 + number], shows: ["door"])
        }
        fixture.event("door")
        let filled = fixture.load.queued
        fixture.pass(.zero)
        #expect(fixture.load.queued == filled + 1)
    }

    @Test func `no registration is read while one's push has found no slot`() {
        let fixture = PipelineFixture { $0.slots = 8 }
        for number in 0..<20 as Range<UInt8> {
            fixture.registerControl("I\(number)", [number], shows: ["door"])
        }
        fixture.event("door")
        fixture.pass(.zero)
        fixture.event("lamp")
        #expect(fixture.roomForRegistrations > 0)
        fixture.registerControl("L", [200], shows: ["lamp"])
        #expect(fixture.roomForRegistrations == 0)
        #expect(fixture.deliverAll().count == 7)
        fixture.pass(.zero)
        #expect(fixture.roomForRegistrations > 0)
    }
}

@Suite struct `The deadline of a push` {
    @Test func `is told to APNs, but for an hour at most`() {
        let fixture = PipelineFixture()
        fixture.register("D", [.device([9], shows: ["door"], hearsChanges: true)])
        fixture.event("door", #"{"ttlSeconds":86400}"#)
        let hour = (fixture.now.wall + .seconds(3600)).seconds
        #expect(fixture.take().map(\.expiration) == [hour])
    }
}

extension PipelineFixture {
    fileprivate var roomForRegistrations: Int { pipeline.roomForRegistrations }
    fileprivate var roomForEvents: Int { pipeline.roomForEvents }
}
