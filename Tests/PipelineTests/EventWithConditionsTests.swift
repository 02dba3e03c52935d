// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// What an event says of itself holds also for tokens that register just after it.
@Suite struct `A token that registers just after an event with conditions` {
    private func fixture(
        bindings: [TopicBinding] = [.standard],
        _ adjust: (inout PipelineSettings) -> Void = { _ in }
    ) -> PipelineFixture {
        PipelineFixture(bindings: bindings) { settings in
            settings.events.allowKindWide = true
            adjust(&settings)
        }
    }

    @Test func `a new token is sent nothing that is for the other environment`() {
        let fixture = fixture()
        fixture.event("s", #"{"v":1,"environment":"development"}"#)
        fixture.registerControl("A", [1], shows: ["s"])
        fixture.registerControl("B", [2], shows: ["s"], environment: .development)
        #expect(fixture.take(pool: 0).isEmpty)
        #expect(fixture.take(pool: 1).map(\.token) == [[2]])
    }

    @Test func `a new token is sent nothing that is for other kinds`() {
        let fixture = fixture()
        fixture.event("s", #"{"v":1,"kinds":["lamp"]}"#)
        fixture.registerControl("A", [1], shows: ["s"], kind: "door")
        fixture.registerControl("B", [2], shows: ["s"], kind: "lamp")
        #expect(fixture.take().map(\.token) == [[2]])
    }

    @Test func `a new token is sent nothing that is for other classes`() {
        let fixture = fixture()
        fixture.event("s", #"{"v":1,"classes":["device"]}"#)
        fixture.registerControl("A", [1], shows: ["s"])
        fixture.register("B", [.device([2], shows: ["s"], hearsChanges: true)])
        #expect(fixture.take().map(\.token) == [[2]])
    }

    @Test func `a new token is sent an event though another one of its subject is not for it`() {
        let fixture = fixture()
        fixture.event("s", #"{"v":1,"environment":"production"}"#)
        fixture.event("s", #"{"v":1,"environment":"development"}"#)
        fixture.registerControl("A", [1], shows: ["s"])
        #expect(fixture.take().map(\.token) == [[1]])
    }

    @Test func `a new token is sent nothing of an event that has expired`() {
        let fixture = fixture()
        fixture.event("s", #"{"v":1,"ttlSeconds":1}"#)
        fixture.pass(.milliseconds(1500))
        fixture.registerControl("A", [1], shows: ["s"])
        #expect(fixture.take().isEmpty && fixture.load.queued == 0)
    }

    @Test func `a new token is not pushed later than the event's own expiry`() {
        let fixture = fixture()
        fixture.event("s", #"{"v":1,"ttlSeconds":2}"#)
        fixture.pass(.seconds(1))
        fixture.registerControl("A", [1], shows: ["s"])
        fixture.pass(.milliseconds(1100))
        #expect(fixture.take().isEmpty && fixture.counters.expired == 1)
    }

    @Test(arguments: [(1500, 1), (3500, 0)])
    func `a new token is pushed for as long as the binding's events live`(wait: Int64, count: Int) {
        let fixture = fixture(bindings: [TopicBinding(decode: .key, ttl: .seconds(3))])
        fixture.event("s")
        fixture.pass(.seconds(1))
        fixture.registerControl("A", [1], shows: ["s"])
        fixture.pass(.milliseconds(wait - 1000))
        #expect(fixture.take().count == count)
    }

    @Test func `a new token is pushed until the last of two events of its subject expires`() {
        let fixture = fixture(
            bindings: [
                TopicBinding(decode: .key, ttl: .seconds(100)),
                TopicBinding(decode: .key, ttl: .seconds(3)),
            ])
        fixture.event("s")
        fixture.event("s", binding: 1)
        fixture.registerControl("A", [1], shows: ["s"])
        fixture.pass(.seconds(99))
        #expect(fixture.take().count == 1)
    }

    @Test func `a new token is sent the headers that the event asks for`() {
        let fixture = fixture()
        fixture.event("s", #"{"v":1,"priority":5}"#)
        fixture.registerControl("A", [1], shows: ["s"])
        #expect(fixture.take().map(\.priority) == [5])
    }

    @Test func `a new token is owed one push by a subject that changes all the time`() {
        let fixture = fixture()
        for _ in 0..<50 { fixture.event("s", #"{"v":1,"ttlSeconds":60}"#) }
        for _ in 0..<50 { fixture.event("s", #"{"v":1,"classes":["device"]}"#) }
        fixture.registerControl("A", [1], shows: ["s"])
        #expect(fixture.take().count == 1)
        #expect(fixture.counters.pushesCoalesced == 0, "each kind of event is looked at once")
        fixture.pass(.seconds(3))
        let bytes = fixture.pipeline.late.bytes
        #expect(bytes == 0)
    }

    @Test func `reading waits where so many events with conditions are remembered as bytes allow`()
    {
        let fixture = fixture { $0.recentEventBytesMax = 10_000 }
        var read = 0
        while fixture.pipeline.hasRoomForEvents, read < 1000 {
            fixture.event("s\(read)", #"{"v":1,"ttlSeconds":60}"#)
            read += 1
        }
        #expect((10...100).contains(read))
        fixture.registerControl("A", [1], shows: ["s0"])
        #expect(fixture.take().count == 1, "none of them is forgotten")
        fixture.pass(.seconds(3))
        let hasRoom = fixture.pipeline.hasRoomForEvents
        #expect(hasRoom)
    }

    @Test func `a new token waits for slots with one entry, however many events it is owed`() {
        let fixture = fixture { $0.slots = 2 }
        fixture.registerControl("A", [9], shows: ["door"])
        for number in 0..<20 {
            fixture.event("score", EventValue.alert("\(number)"))
        }
        fixture.event("door")
        fixture.register("B", [.device([1], shows: ["score"])])
        #expect(fixture.load.fanOuts == 1)
        var bodies: [String] = []
        for _ in 0..<40 {
            bodies += fixture.deliverAll().filter { $0.token == [1] }.map(\.body)
            fixture.pass(.milliseconds(200))
        }
        #expect(bodies == (0..<20).map { #"{"aps":{"alert":"\#($0)"}}"# })
        #expect(fixture.isIdle && fixture.committableOffset == 21)
    }
}
