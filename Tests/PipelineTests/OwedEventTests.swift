// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import Pipeline
internal import PushModel
internal import RecordFormats
internal import Testing

@Suite struct `Whom an event is owed to` {
    let token: [UInt8] = [1, 2, 3]

    @Test func `a token that registers within the grace period is owed the event`() {
        let fixture = PipelineFixture()
        fixture.event("door")
        fixture.pass(.milliseconds(1999))
        fixture.registerControl("A", token, shows: ["door"])
        #expect(fixture.committableOffset == 0)
        #expect(fixture.take().count == 1)
        fixture.pass(.seconds(3))
        #expect(fixture.committableOffset == 0, "held until the push has ended")
    }

    @Test func `a token that registers after the grace period is not owed the event`() {
        let fixture = PipelineFixture()
        fixture.event("door")
        fixture.pass(.milliseconds(2100))
        fixture.registerControl("A", token, shows: ["door"])
        #expect(fixture.take().isEmpty)
        #expect(fixture.committableOffset == 1)
    }

    @Test func `a payload is owed to a device that registers within the grace period`() {
        let fixture = PipelineFixture()
        fixture.event("score", EventValue.alert("1", collapseID: "game"))
        fixture.event("score", EventValue.alert("2", collapseID: "game"))
        fixture.pass(.milliseconds(1500))
        fixture.register("A", [.device(token, shows: ["score"])])
        #expect(fixture.deliverAll().map(\.body) == [#"{"aps":{"alert":"2"}}"#])
    }

    @Test func `a payload that waits for a slot outlives the grace period`() {
        let fixture = PipelineFixture { $0.slots = 1 }
        fixture.registerControl("A", [9], shows: ["door"])
        fixture.event("door")
        fixture.event("score", EventValue.alert("late"))
        fixture.register("B", [.device(token, shows: ["score"])])
        fixture.pass(.seconds(1))
        fixture.pass(.seconds(5))
        #expect(fixture.deliverAll().map(\.token) == [[9]])
        fixture.pass(.milliseconds(1))
        #expect(fixture.deliverAll().map(\.body) == [#"{"aps":{"alert":"late"}}"#])
    }

    @Test func `a payload for a kind not seen before is owed to the device that brings it`() {
        let fixture = PipelineFixture()
        fixture.event(
            "score", #"{"v":1,"kinds":["goal"],"payload":{"aps":{"alert":"1"}}}"#)
        var target = RegistrationDraft.Target.device(token, shows: ["score"])
        target.shows[0].kind = "goal"
        fixture.register("A", [target])
        #expect(fixture.take().count == 1)
    }

    @Test func `a token that registers anew after a suppression is owed a recent event`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"])
        fixture.event("door")
        fixture.answer(fixture.take()[0], 410, .unregistered)
        fixture.pass(.seconds(5))
        fixture.event("door")
        fixture.pass(.seconds(1))
        fixture.registerControl("A", token, shows: ["door"])
        #expect(fixture.take().count == 1)
    }

    @Test func `kinds filter controls`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", [1], shows: ["s"], kind: "door")
        fixture.registerControl("B", [2], shows: ["s"], kind: "lamp")
        fixture.registerControl("C", [3], shows: ["s"], kind: nil)
        fixture.event("s", #"{"v":1,"kinds":["lamp"]}"#)
        #expect(fixture.deliverAll().map(\.token) == [[2]])
        fixture.event("s", #"{"v":1,"kinds":["none","door","lamp"]}"#)
        #expect(Set(fixture.deliverAll().map(\.token)) == [[1], [2]])
        fixture.event("s", #"{"v":1,"kinds":["none"]}"#)
        #expect(fixture.deliverAll().isEmpty)
        fixture.event("s")
        #expect(fixture.deliverAll().count == 3)
    }

    @Test func `environments and classes filter`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", [1], shows: ["s"])
        fixture.registerControl("B", [2], shows: ["s"], environment: .development)
        fixture.register("C", [.device([3], shows: ["s"], hearsChanges: true)])
        fixture.register("D", [.device([4], shows: ["s"])])
        fixture.event("s", #"{"v":1,"environment":"sandbox"}"#)
        #expect(fixture.deliverAll(pool: 0).isEmpty)
        #expect(fixture.deliverAll(pool: 1).map(\.token) == [[2]])
        fixture.event("s", #"{"v":1,"classes":["device"]}"#)
        #expect(fixture.deliverAll(pool: 0).map(\.token) == [[3]])
        #expect(fixture.deliverAll(pool: 1).isEmpty)
    }

    @Test func `an event without a subject reloads the controls of each of its kinds`() {
        let fixture = PipelineFixture { $0.events.allowKindWide = true }
        fixture.registerControl("A", [1], shows: ["a"], kind: "door")
        fixture.registerControl("B", [2], shows: ["b"], kind: "lamp")
        fixture.registerControl("C", [3], shows: ["c"], kind: "fan")
        fixture.event(nil, #"{"v":1,"kinds":["door","lamp"]}"#)
        #expect(Set(fixture.deliverAll().map(\.token)) == [[1], [2]])
    }

    @Test func `an event without a subject is owed to a control registered just after it`() {
        let fixture = PipelineFixture { $0.events.allowKindWide = true }
        fixture.registerControl("A", [1], shows: ["a"], kind: "door")
        fixture.event(nil, #"{"v":1,"kinds":["door"]}"#)
        fixture.registerControl("B", [2], shows: ["b"], kind: "door")
        #expect(Set(fixture.deliverAll().map(\.token)) == [[1], [2]])
    }

    @Test(arguments: [1, 5, 10] as [UInt8])
    func `a background push never has a priority above 5`(priority: UInt8) {
        let fixture = PipelineFixture()
        fixture.registerControl("A", [1], shows: ["s"])
        fixture.register("B", [.device([2], shows: ["s"], hearsChanges: true)])
        fixture.event("s", #"{"v":1,"priority":\#(priority)}"#)
        let sent = fixture.deliverAll()
        #expect(sent.count == 2)
        for push in sent {
            #expect(push.priority == (push.type == .background ? min(priority, 5) : priority))
        }
    }

    @Test func `an event asks the app's own tokens alone`() {
        let fixture = PipelineFixture(apps: [PipelineFixture.app, "com.example.Other"])
        fixture.registerControl("A", [1], shows: ["s"])
        fixture.register(
            "B", [.control([2], shows: ["s"])], app: "com.example.Other")
        fixture.event("s", #"{"v":1,"app":"com.example.Other"}"#)
        #expect(fixture.deliverAll().map(\.token) == [[2]])
    }

    @Test func `slots run out, the event waits in its fan-out, and nothing is lost`() {
        let fixture = PipelineFixture { settings in
            settings.slots = 16
            settings.immediateFanOutMax = 4
        }
        for number in 0..<100 as Range<UInt8> {
            fixture.registerControl("I\(number)", [number], shows: ["hot"])
        }
        fixture.event("hot")
        var sent: Set<[UInt8]> = []
        for _ in 0..<20 {
            fixture.pass(.milliseconds(10))
            #expect(fixture.load.queued <= 16)
            for push in fixture.take(5) {
                sent.insert(push.token)
                fixture.answer(push, 200)
            }
        }
        #expect(!fixture.pipeline.hasRoomForEvents || sent.count > 50)
        for _ in 0..<10 {
            fixture.pass(.seconds(1))
            sent.formUnion(fixture.deliverAll().map(\.token))
        }
        #expect(sent.count == 100)
        #expect(fixture.isIdle)
        #expect(fixture.committableOffset == 1)
    }

    @Test func `a token that moves to another registration under a slow fan-out is not skipped`() {
        let fixture = PipelineFixture { settings in
            settings.slots = 8
            settings.immediateFanOutMax = 2
        }
        for number in 0..<20 as Range<UInt8> {
            fixture.registerControl("I\(number)", [number], shows: ["hot"])
        }
        fixture.event("hot")
        fixture.pass(.milliseconds(1))
        fixture.pass(.seconds(5))
        // The fan-out goes downwards and stands still for want of slots: it has not met this token,
        // whose new entry is above it.
        fixture.registerControl("new", [5], shows: ["hot"])
        fixture.registerControl("other", [200], shows: ["hot"])
        fixture.unregister("I5")
        var sent: Set<[UInt8]> = []
        for _ in 0..<10 {
            sent.formUnion(fixture.deliverAll().map(\.token))
            fixture.pass(.seconds(1))
        }
        #expect(sent.isSuperset(of: (0..<20).map { [$0] }))
    }

    @Test func `the offset does not pass an event that comes to a token late`() {
        let fixture = PipelineFixture { $0.immediateFanOutMax = 1 }
        fixture.registerControl("A", token, shows: ["hot", "own"])
        fixture.registerControl("B", [9], shows: ["hot"])
        fixture.event("hot")
        fixture.event("own")
        fixture.pass(.seconds(3))
        #expect(fixture.committableOffset == 0)
        // Held by the push to the token alone, once the fan-out is over and the other has ended.
        for push in fixture.take() where push.token == [9] { fixture.answer(push, 200) }
        #expect(fixture.committableOffset == 0)
    }

    @Test func `an unreadable record becomes a dead letter and its offset waits for it`() {
        let fixture = PipelineFixture()
        fixture.event("door", "{")
        fixture.event("door", #"{"v":2}"#)
        fixture.pass(.seconds(3))
        #expect(fixture.committableOffset == 0)
        let letters = fixture.takeRecords()
        #expect(letters.count == 2)
        #expect(letters[0].value.contains(#""reason":"invalidJSON""#))
        #expect(letters[1].value.contains(#""reason":"unknownVersion""#))
        // The first may have named another subject than its key.
        #expect(!letters[0].value.contains(#""subject""#))
        #expect(letters[1].value.contains(#""subject":"door""#))
        fixture.acknowledge([letters[1]])
        #expect(fixture.committableOffset == 0)
        fixture.acknowledge([letters[0]])
        #expect(fixture.committableOffset == 2)
    }

    @Test func `a binding's delay is kept by a follow-up`() {
        let delayed = TopicBinding(decode: .key, delay: .seconds(5))
        let fixture = PipelineFixture(bindings: [delayed])
        fixture.registerControl("A", token, shows: ["door"])
        fixture.event("door")
        #expect(fixture.take().isEmpty)
        fixture.pass(.seconds(5))
        let first = fixture.take()
        #expect(first.count == 1)
        fixture.event("door")
        for push in first { fixture.answer(push, 200) }
        #expect(fixture.take().isEmpty)
        fixture.pass(.seconds(5))
        #expect(fixture.take().count == 1)
    }

    @Test func `a binding's delay is kept for a token that registers just after the event`() {
        let delayed = TopicBinding(decode: .key, delay: .seconds(5))
        let fixture = PipelineFixture(bindings: [delayed])
        fixture.event("door")
        fixture.registerControl("A", token, shows: ["door"])
        fixture.pass(.seconds(4))
        #expect(fixture.take().isEmpty)
        fixture.pass(.seconds(1))
        #expect(fixture.take().count == 1)
    }
}
