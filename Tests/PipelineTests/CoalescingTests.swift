// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import Pipeline
internal import PushModel
internal import RecordFormats
internal import Testing

@Suite struct `Coalescing in the pipeline` {
    let token: [UInt8] = [1, 2, 3]

    @Test func `a plain event reaches a control with the documented headers`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"])
        fixture.event("door")
        let sent = fixture.take()
        #expect(sent.count == 1)
        #expect(sent[0].token == token)
        #expect(sent[0].type == .controls)
        #expect(sent[0].priority == 10)
        #expect(sent[0].expiration == 0)
        #expect(sent[0].body == #"{"aps":{"content-changed":true}}"#)
        #expect(sent[0].collapseID == "")
    }

    @Test func `events to one token are one push until it is handed over`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door", "lamp"])
        fixture.event("door")
        fixture.event("lamp")
        fixture.event("door")
        #expect(fixture.deliverAll().count == 1)
        #expect(fixture.counters.pushesCoalesced == 2)
        fixture.pass(.seconds(3))
        #expect(fixture.committableOffset == 3)
        #expect(fixture.isIdle)
    }

    @Test func `an event read while the push is in flight is sent once more afterwards`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"])
        fixture.event("door")
        let first = fixture.take()
        fixture.event("door")
        fixture.event("door")
        #expect(fixture.take().isEmpty, "one push for a token is in flight at a time")
        fixture.answer(first[0], 200)
        let followUp = fixture.take()
        #expect(followUp.count == 1)
        fixture.answer(followUp[0], 200)
        #expect(fixture.take().isEmpty)
        fixture.pass(.seconds(3))
        #expect(fixture.committableOffset == 3)
    }

    @Test func `a push that is sent once more for a later event is counted as a follow-up`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"])
        fixture.event("door")
        let first = fixture.take()[0]
        fixture.event("door")
        #expect(fixture.counters.pushesFollowedUp == 0, "it may still join a retry")
        fixture.answer(first, 200)
        #expect(fixture.deliverAll().count == 1)
        let counters = fixture.counters
        #expect(counters.pushesQueued == 1 && counters.pushesCoalesced == 1)
        #expect(counters.pushesFollowedUp == 1 && counters.accepted == 2)
    }

    @Test func `the offset is held until the follow-up has ended`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"])
        fixture.event("door")
        let first = fixture.take()
        let second = fixture.event("door")
        fixture.pass(.seconds(3))
        #expect(fixture.committableOffset == 0)
        fixture.answer(first[0], 200)
        #expect(fixture.committableOffset == second)
        _ = fixture.deliverAll()
        #expect(fixture.committableOffset == second + 1)
    }

    @Test func `a token in two registrations is pushed once per event`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"])
        fixture.registerControl("B", token, shows: ["door"])
        fixture.event("door")
        #expect(fixture.deliverAll().count == 1)
        fixture.unregister("A")
        fixture.event("door")
        #expect(fixture.deliverAll().count == 1)
        fixture.unregister("B")
        fixture.event("door")
        #expect(fixture.deliverAll().isEmpty)
    }

    @Test func `apns-id is of version 8 and the same on every try and after a restart`() {
        var seen: Set<APNSID> = []
        for seed in 1...3 as ClosedRange<UInt64> {
            let fixture = PipelineFixture(startOffset: 41) { $0.seed = seed }
            fixture.registerControl("A", token, shows: ["door"])
            fixture.event("door")
            for _ in 0..<3 {
                let sent = fixture.take()
                #expect(sent.count == 1)
                seen.insert(sent[0].apnsID)
                fixture.answer(sent[0], 503, .serviceUnavailable)
                fixture.pass(.seconds(900))
            }
        }
        #expect(seen.count == 1)
        let text = Array(seen.first!.text)
        #expect(text[14] == "8")
        #expect("89ab".contains(text[19]))
    }

    @Test func `of payloads with one collapse ID the newest is sent`() {
        let fixture = PipelineFixture()
        fixture.register("A", [.device(token, shows: ["score"])])
        fixture.event("score", EventValue.alert("1", collapseID: "game"))
        fixture.event("score", EventValue.alert("2", collapseID: "game"))
        let sent = fixture.deliverAll()
        #expect(sent.map(\.body) == [#"{"aps":{"alert":"2"}}"#])
        #expect(sent.map(\.collapseID) == ["game"])
        #expect(sent.map(\.type) == [.alert])
    }

    @Test func `payloads without a collapse ID are sent each, and each with an ID of its own`() {
        let fixture = PipelineFixture()
        fixture.register("A", [.device(token, shows: ["score"])])
        fixture.event("score", EventValue.alert("1"))
        fixture.event("score", EventValue.alert("2"))
        let sent = fixture.deliverAll()
        #expect(sent.map(\.body) == [#"{"aps":{"alert":"1"}}"#, #"{"aps":{"alert":"2"}}"#])
        #expect(Set(sent.map(\.collapseID)).count == 2)
        #expect(sent.allSatisfy { $0.collapseID.count == APNSID.textBytes })
    }

    @Test func `a payload read while an older one is on its way to a hot subject is not lost`() {
        let fixture = PipelineFixture { $0.immediateFanOutMax = 1 }
        fixture.register("A", [.device(token, shows: ["own", "hot"])])
        fixture.register("B", [.device([9], shows: ["hot"])])
        fixture.event("own", EventValue.alert("1", collapseID: "game"))
        // Read, but its fan-out has not reached the token when the older payload is handed over.
        fixture.event("hot", EventValue.alert("2", collapseID: "game"))
        let older = fixture.take()
        #expect(older.map(\.body) == [#"{"aps":{"alert":"1"}}"#])
        _ = fixture.pipeline.advanceFanOuts(steps: 10, now: fixture.now)
        fixture.answer(older[0], 200)
        let newer = fixture.deliverAll().filter { $0.token == token }
        #expect(newer.map(\.body) == [#"{"aps":{"alert":"2"}}"#])
    }

    @Test func `an older payload that comes to a token late does not replace a newer one`() {
        let fixture = PipelineFixture { $0.immediateFanOutMax = 1 }
        fixture.register("A", [.device(token, shows: ["own", "hot"])])
        fixture.register("B", [.device([9], shows: ["hot"])])
        fixture.event("hot", EventValue.alert("1", collapseID: "game"))
        fixture.event("own", EventValue.alert("2", collapseID: "game"))
        _ = fixture.pipeline.advanceFanOuts(steps: 10, now: fixture.now)
        let sent = fixture.deliverAll().filter { $0.token == token }
        #expect(sent.last?.body == #"{"aps":{"alert":"2"}}"#)
    }
}
