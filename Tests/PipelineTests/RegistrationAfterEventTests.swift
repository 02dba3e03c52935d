// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Delivery
internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// What is owed to a token that registers just after an event, and what is not.
@Suite struct `A registration just after an event` {
    private func alert(_ text: String) -> String { EventValue.alert(text) }
    private func body(_ text: String) -> String { #"{"aps":{"alert":"\#(text)"}}"# }

    private func letter(of fixture: PipelineFixture) throws -> ProducedRecord {
        fixture.answer(try #require(fixture.take().first), 400, .badMessageId)
        fixture.pass(.seconds(1))
        return try #require(fixture.takeRecords().first)
    }

    // MARK: Payloads

    @Test func `a new registration is owed a payload up to the end of the grace period`() {
        let fixture = PipelineFixture()
        fixture.event("score", alert("a"))
        fixture.pass(.seconds(1))
        fixture.event("other")
        fixture.pass(.seconds(1))
        fixture.register("D", [.device([9], shows: ["score"])])
        #expect(fixture.take().map(\.body) == [body("a")])
    }

    @Test func `a new registration is owed the payloads of its own subjects alone`() {
        let fixture = PipelineFixture()
        fixture.event("score", alert("own"))
        fixture.event("other", alert("not"))
        fixture.register("D", [.device([9], shows: ["score"])])
        #expect(fixture.take().map(\.body) == [body("own")])
    }

    @Test func `a new registration is owed its subject's newer payload, not one past its grace`() {
        let fixture = PipelineFixture()
        fixture.event("score", alert("old"))
        fixture.pass(.seconds(3))
        #expect(fixture.load.payloadBytes == 0)
        fixture.event("score", alert("new"))
        fixture.register("D", [.device([9], shows: ["score"])])
        #expect(fixture.take().map(\.body) == [body("new")])
    }

    @Test func `a new registration fails with a letter of its subject and the payload's own event`()
        throws
    {
        let fixture = PipelineFixture()
        fixture.event("other")
        let offset = fixture.event("score", alert("a"))
        fixture.register("D", [.device([9], shows: ["score"])])
        let letter = try letter(of: fixture)
        #expect(letter.key == "score")
        #expect(letter.value.contains(#""offset":\#(offset)}"#))
    }

    // MARK: Changes

    @Test func `a new registration is owed nothing of a subject that has not changed`() {
        let fixture = PipelineFixture()
        fixture.event("door")
        fixture.registerControl("A", [1], shows: ["lamp"])
        #expect(fixture.take().isEmpty)
    }

    @Test func `a new registration is owed nothing of a subject named like a kind that changed`() {
        let fixture = PipelineFixture { $0.events.allowKindWide = true }
        fixture.event(nil, #"{"v":1,"kinds":["door"]}"#)
        fixture.registerControl("A", [1], shows: ["door"], kind: "lamp")
        #expect(fixture.take().isEmpty)
    }

    @Test func `a new registration looks again after a push that was under way before the event`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", [1], shows: ["lamp"])
        fixture.event("lamp")
        let first = fixture.take()
        fixture.event("door")
        fixture.registerControl("A", [1], shows: ["lamp", "door"])
        for push in first { fixture.answer(push, 200) }
        #expect(fixture.deliverAll().count == 1)
    }

    @Test func `a new registration holds nothing where it is owed nothing`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", [1], shows: ["lamp"])
        fixture.event("lamp")
        fixture.answer(fixture.take()[0], 410, .unregistered)
        fixture.acknowledge(fixture.takeRecords())
        fixture.event("door")
        // One is for controls alone, and the other is of a token that has died since.
        fixture.register("D", [.device([9], shows: ["door"])])
        fixture.registerControl("B", [1], shows: ["door"], at: WallTime(milliseconds: 0))
        #expect(fixture.take().isEmpty && fixture.counters.suppressed == 1)
        fixture.pass(.seconds(3))
        #expect(fixture.isIdle && fixture.committableOffset == 2)
    }

    // MARK: Partitions

    @Test func `a new registration is owed nothing by a table that was assigned after a loss`() {
        let fixture = PipelineFixture { $0.registrationGrace = .zero }
        fixture.assign(startOffset: 0)
        fixture.unassign()
        let deferred = DeferredFixture(fixture)
        deferred.assign()
        let instant = (fixture.now.wall + .seconds(60)).rfc3339
        deferred.write(
            DeferredFixture.Record(
                key: "production/com.example.Home.push-type.controls/01",
                value: #"{"v":1,"notBefore":"\#(instant)","expiresAt":"\#(instant)","#
                    + #""class":"control","attempts":0}"#))
        deferred.read()
        fixture.event("score", alert("a"))
        fixture.register("D", [.device([9], shows: ["score"])])
        #expect(fixture.take().isEmpty)
    }

    @Test func `a partition that comes back is read under another assignment`() {
        let fixture = PipelineFixture { $0.registrationGrace = .zero }
        fixture.assign(startOffset: 0)
        let first = fixture.assignment
        fixture.unassign()
        fixture.assign(startOffset: 0)
        #expect(fixture.assignment.ordinal == first.ordinal && fixture.assignment != first)
        fixture.event("score")
        #expect(fixture.committableOffset == 1)
        let ofFirst = fixture.pipeline.committableOffset(first, now: fixture.now)
        #expect(ofFirst == nil)
    }

    // MARK: No free slot

    @Test func `a new registration waits for a slot, until its token is gone`() {
        let fixture = PipelineFixture { $0.slots = 1 }
        fixture.registerControl("A", [9], shows: ["door"])
        fixture.event("door")
        fixture.event("lamp")
        fixture.registerControl("B", [1], shows: ["lamp"])
        #expect(fixture.load.fanOuts == 1)
        fixture.unregister("B")
        #expect(fixture.load.fanOuts == 0 && fixture.counters.unregistered == 1)
        #expect(fixture.deliverAll().map(\.token) == [[9]])
        fixture.pass(.seconds(3))
        #expect(fixture.deliverAll().isEmpty && fixture.isIdle && fixture.committableOffset == 2)
    }

    @Test func `a new registration ends what expires before there is a slot, counted`() {
        let fixture = PipelineFixture { $0.slots = 1 }
        fixture.registerControl("A", [9], shows: ["door"])
        fixture.event("door")
        func alert(_ ttl: Duration, _ more: String = "") {
            let instant = (fixture.now.wall + ttl).rfc3339
            fixture.event(
                "score",
                #"{"v":1,"expiresAt":"\#(instant)","payload":{"aps":{"alert":"a"}}\#(more)}"#)
        }
        alert(.milliseconds(100))
        fixture.pass(.milliseconds(200))
        alert(.seconds(1))
        alert(.seconds(1), #","environment":"sandbox""#)
        fixture.register("D", [.device([1], shows: ["score"])])
        fixture.pass(.seconds(2))
        #expect(fixture.deliverAll().map(\.token) == [[9]])
        fixture.pass(.milliseconds(1))
        #expect(fixture.deliverAll().isEmpty && fixture.counters.expired == 1)
        #expect(fixture.load.fanOuts == 0)
    }

    @Test func `a new registration keeps the worker busy while it has a slot to come`() {
        let fixture = PipelineFixture { $0.slots = 1 }
        fixture.registerControl("A", [9], shows: ["door"])
        fixture.event("door")
        fixture.event("lamp")
        fixture.registerControl("B", [1], shows: ["lamp"])
        #expect(fixture.deliverAll().map(\.token) == [[9]])
        #expect(!fixture.isIdle)
        fixture.pass(.milliseconds(1))
        #expect(fixture.deliverAll().map(\.token) == [[1]])
        #expect(fixture.isIdle)
    }
}
