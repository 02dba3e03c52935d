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
        #expect(fixture.load.queued == 64 - 64 / 8)
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
}
