// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import Pipeline
internal import PushModel
internal import RecordFormats
internal import Testing

/// The corners of the hold bound and of the shares of the slots.
@Suite struct `Holds of offsets and of slots` {
    private func bounded(
        adjust: (inout PipelineSettings) -> Void = { _ in }
    ) -> PipelineFixture {
        PipelineFixture { settings in
            settings.holdMax = .seconds(10)
            settings.registrationGrace = .zero
            adjust(&settings)
        }
    }

    @Test func `a joined push has held since the first of its events`() {
        let fixture = bounded()
        fixture.registerControl("A", [1], shows: ["door"])
        fixture.event("door")
        fixture.pass(.seconds(7))
        fixture.event("door")
        fixture.pass(.milliseconds(1500))
        #expect(fixture.takeRecords().map(\.topic) == [.deferred])
    }

    @Test func `an event that a push in flight answers for is held by it from then on`() {
        let fixture = bounded { $0.immediateFanOutMax = 2 }
        let deferred = DeferredFixture(fixture)
        for number in 1..<7 as Range<UInt8> {
            fixture.registerControl("I\(number)", [number], shows: ["hot"])
        }
        let key = "production/com.example.Home.push-type.controls/01"
        let (from, to) = (fixture.now.wall, fixture.now.wall + .seconds(3600))
        deferred.write(
            DeferredFixture.Record(
                key: key,
                value: #"{"v":1,"notBefore":""# + from.rfc3339 + #"","expiresAt":""# + to.rfc3339
                    + #"","class":"control","attempts":0}"#))
        deferred.assign()
        // Its fan-out has not come to the token when the deferred push is handed over.
        fixture.event("hot")
        fixture.pipeline.advance(now: fixture.now)
        let push = fixture.take()
        #expect(push.map(\.token) == [[1]])
        fixture.pass(.milliseconds(1))
        fixture.end(push[0], .unknown)
        fixture.pass(.seconds(9))
        #expect(deferred.produce().deferred.contains { $0.key == key })
        fixture.pass(.seconds(1))
        #expect(fixture.committableOffset == 1)
    }

    @Test func `events leave the deferred pushes' share of the slots alone`() {
        let fixture = bounded { settings in
            settings.slots = 64
            settings.immediateFanOutMax = 4
        }
        for number in 0..<100 as Range<UInt8> {
            fixture.registerControl("I\(number)", [number], shows: ["s\(number)"])
        }
        var read = 0
        while fixture.pipeline.hasRoomForEvents {
            fixture.event("s\(read)")
            read += 1
        }
        #expect(read == 64 - 8 - 4)
    }

    @Test func `a push owed late for want of a slot keeps further records out`() {
        let fixture = PipelineFixture { $0.slots = 1 }
        fixture.registerControl("A", [9], shows: ["door"])
        fixture.event("door")
        fixture.event("score", EventValue.alert("late"))
        fixture.register("B", [.device([1], shows: ["score"])])
        let room = fixture.pipeline.roomForRegistrations
        #expect(room == 0)
    }

    @Test func `a pool that stands still goes back to its share when another sends`() {
        let fixture = bounded { $0.slots = 128 }
        fixture.checksEachCall = false
        for number in 0..<100 as Range<UInt8> {
            fixture.registerControl("I\(number)", [number], shows: ["s\(number)"])
        }
        fixture.registerControl("D", [200], shows: ["dev"], environment: .development)
        for number in 0..<100 { fixture.event("s\(number)") }
        fixture.event("dev")
        #expect(fixture.deliverAll(pool: 1).count == 1)
        fixture.pass(.milliseconds(2600))
        #expect(fixture.load.queued <= 64)
        #expect(fixture.takeRecords().allSatisfy { $0.topic == .deferred })
    }

    @Test func `a retry waits for the delay of its follow-up`() {
        let fixture = PipelineFixture(
            bindings: [.standard, TopicBinding(decode: .json, delay: .seconds(60))]
        ) { $0.retryBackoff = Backoff(least: .seconds(1), most: .seconds(1)) }
        fixture.registerControl("A", [1], shows: ["door"])
        fixture.event("door")
        let push = fixture.take()[0]
        fixture.event("door", binding: 1)
        fixture.answer(push, 503, .serviceUnavailable)
        fixture.pass(.seconds(30))
        #expect(fixture.take().isEmpty)
        fixture.pass(.seconds(31))
        #expect(fixture.deliverAll().count == 1)
    }

    @Test func `Apple is asked to keep a push for an hour at most`() {
        let fixture = PipelineFixture()
        fixture.register("A", [.device([1], shows: ["door"], hearsChanges: true)])
        fixture.event("door")
        #expect(fixture.take().map(\.expiration) == [(fixture.now.wall + .seconds(3600)).seconds])
    }

    @Test func `a refused suppression is not written over a later one of another worker`() {
        let fixture = PipelineFixture { $0.registrationGrace = .zero }
        fixture.registerControl("A", [1], shows: ["door"])
        fixture.event("door")
        fixture.answer(fixture.take()[0], 410, .unregistered)
        let ours = fixture.takeRecords()
        #expect(ours.map(\.topic) == [.suppressions])
        fixture.pass(.seconds(1))
        let later = Array(
            (#"{"v":1,"status":410,"reason":"Unregistered","registeredAt":""#
                + fixture.now.wall.rfc3339 + #""}"#).utf8)
        let problem = Array(ours[0].key.utf8).withUnsafeBytes { key in
            later.withUnsafeBytes { later in
                fixture.pipeline.suppressionRecord(
                    key: key, value: later, timestamp: fixture.now.wall)
            }
        }
        #expect(problem == nil)
        fixture.pipeline.refused(ours[0].ticket)
        #expect(fixture.takeRecords().isEmpty)
        #expect(fixture.committableOffset == 1)
    }
}
