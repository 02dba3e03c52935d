// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Pipeline
internal import PushModel
internal import RecordFormats
internal import Testing

@Suite struct `Room in the pipeline` {
    @Test func `an event of many tokens leaves the share of deferred pushes free`() {
        let fixture = PipelineFixture { $0.slots = 64 }
        for number in 0..<100 as Range<UInt8> {
            fixture.registerControl("I\(number)", [number], shows: ["door"])
        }
        fixture.event("door")
        fixture.pass(.zero)
        // And a quarter for events of few tokens: with so few slots a sixteenth is none of them.
        #expect(fixture.load.queued == 64 - 64 / 8 - 64 / 4)
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

    @Test func `a fan-out that goes on and on never fills what it leaves`() {
        let fixture = PipelineFixture {
            $0.slots = 64
            $0.immediateFanOutMax = 2
        }
        for number in 0..<200 as Range<UInt8> {
            fixture.registerControl("I\(number)", [number], shows: ["city"])
        }
        fixture.event("city")
        for _ in 0..<20 {
            fixture.pass(.zero)
            #expect(fixture.roomForEvents > 0 && fixture.load.fanOuts == 1)
            for push in fixture.take(1) { fixture.answer(push, 200) }
        }
    }

    @Test func `the fewest slots that can be configured leave room for an event at once`() {
        let fixture = PipelineFixture { $0.slots = 1000 }
        fixture.checksEachCall = false
        for number in 0..<1000 as Range<UInt16> {
            let token = [UInt8(number >> 8), UInt8(number & 255)]
            fixture.registerControl("I\(number)", token, shows: ["city"])
        }
        fixture.event("city")
        for _ in 0..<3 { fixture.pass(.zero) }
        #expect(fixture.load.fanOuts == 1 && fixture.roomForEvents > 0)
    }

    @Test func `events of few tokens take half of what is free, and leave a fan-out the rest`() {
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
        // These take 3 of the 4 slots that the fan-out has left; of the last one it leaves half, none.
        for number in 0..<3 as Range<UInt8> {
            fixture.registerControl("D\(number)", [200 + number], shows: ["door"])
        }
        fixture.event("door")
        let filled = fixture.load.queued
        fixture.pass(.zero)
        #expect(fixture.load.queued == filled + 1)
    }

    @Test func `no registration is read while one's push has found no slot`() {
        let fixture = PipelineFixture {
            $0.slots = 8
            $0.immediateFanOutMax = 1
        }
        for number in 0..<20 as Range<UInt8> {
            fixture.registerControl("I\(number)", [number], shows: ["door"])
        }
        fixture.event("door")
        fixture.pass(.zero)
        // The two slots that the fan-out leaves.
        for (number, subject) in ["hall", "bell"].enumerated() {
            fixture.registerControl(subject, [100 + UInt8(number)], shows: [subject])
            fixture.event(subject)
        }
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
    @Test func `the deadline of a push is told to APNs, but for an hour at most`() {
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
