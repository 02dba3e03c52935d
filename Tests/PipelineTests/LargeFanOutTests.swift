// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// What changes under a fan-out, and what its pushes say of those before them.
@Suite struct `Large fan-outs of events` {
    /// Controls 0, 1, … that all show `hot`; fan-outs stand still when 14 slots are taken.
    private func fixture(controls: Int, immediate: Int = 2) -> PipelineFixture {
        let fixture = PipelineFixture { settings in
            settings.slots = 16
            settings.immediateFanOutMax = immediate
            settings.registrationGrace = .zero
        }
        for number in 0..<controls {
            fixture.registerControl("I\(number)", [UInt8(number)], shows: ["hot"])
        }
        return fixture
    }

    @Test func `what takes the place of a token that goes is not skipped by a later event`() {
        let fixture = fixture(controls: 40)
        fixture.event("hot")
        fixture.pass(.milliseconds(1))
        // From 39 down to 26; the second event begins there, and comes to 39 last.
        #expect(fixture.deliverAll().contains { $0.token == [39] })
        fixture.event("hot")
        fixture.pass(.milliseconds(1))
        _ = fixture.deliverAll()
        // The last of the list goes where the second event has been already.
        fixture.unregister("I20")
        var sent: [SentPush] = []
        for _ in 0..<10 {
            sent += fixture.deliverAll()
            fixture.pass(.milliseconds(1))
        }
        #expect(sent.contains { $0.token == [39] })
        #expect(fixture.isIdle)
    }

    @Test
    func `a fan-out that has met all else waits for a token that moved when no slot was free`() {
        let fixture = fixture(controls: 12)
        fixture.event("hot")
        fixture.pass(.milliseconds(1))
        // It has met all but the token 0. Events of one token take the three slots that it leaves.
        for number in 100..<103 as Range<UInt8> {
            fixture.registerControl("I\(number)", [number], shows: ["own\(number)"])
            fixture.event("own\(number)")
        }
        fixture.registerControl("new", [0], shows: ["hot"])
        fixture.registerControl("other", [200], shows: ["hot"])
        fixture.unregister("I0")
        let first = fixture.deliverAll()
        #expect(first.count == 14 && first.allSatisfy { $0.token != [0] })
        // The fan-out goes on before what waits for slots is looked at.
        _ = fixture.pipeline.advanceFanOuts(steps: 100, now: fixture.now)
        fixture.pass(.milliseconds(1))
        #expect(fixture.deliverAll().contains { $0.token == [0] })
        #expect(fixture.isIdle)
    }

    @Test
    func `an event of more tokens than are free without the deferred share is fanned out in turns`()
    {
        let fixture = fixture(controls: 15, immediate: 64)
        fixture.event("hot")
        #expect(fixture.load.fanOuts == 1)
        fixture.pass(.milliseconds(1))
        #expect(fixture.load.queued == 16 - 16 / 8 - 16 / 4)
    }

    @Test func `a subject that is fanned out to no more is forgotten with its last token`() {
        let fixture = fixture(controls: 3)
        fixture.event("hot")
        fixture.pass(.milliseconds(1))
        #expect(fixture.deliverAll().count == 3)
        fixture.pass(.milliseconds(1))
        for number in 0..<3 { fixture.unregister("I\(number)") }
        #expect(!fixture.knows("hot"))
    }

    @Test func `a push handed over after the event was read needs no second for it`() {
        let fixture = fixture(controls: 3)
        fixture.registerControl("T", [9], shows: ["hot", "own"])
        fixture.event("own")
        fixture.event("hot")
        // The fan-out has not come to its token yet.
        let first = fixture.take()
        #expect(first.map(\.token) == [[9]])
        fixture.pass(.milliseconds(1))
        for push in first { fixture.answer(push, 200) }
        #expect(fixture.deliverAll().map(\.token).allSatisfy { $0 != [9] })
    }

    @Test func `a clock that is put back does not make the newer payload the older`() {
        let fixture = fixture(controls: 1)
        fixture.register("D", [.device([9], shows: ["score"])])
        fixture.event("score", EventValue.alert("first", collapseID: "game"))
        fixture.now.wall = fixture.now.wall + .seconds(-10)
        fixture.event("score", EventValue.alert("second", collapseID: "game"))
        #expect(fixture.deliverAll().map(\.body) == [#"{"aps":{"alert":"second"}}"#])
    }

    @Test func `the end of one payload leaves the token's others to be replaced`() {
        let fixture = fixture(controls: 1)
        fixture.register("D", [.device([9], shows: ["score"])])
        fixture.event("score", EventValue.alert("goal", collapseID: "goal"))
        fixture.event("score", EventValue.alert("1", collapseID: "game"))
        for push in fixture.take(1) { fixture.answer(push, 200) }
        fixture.event("score", EventValue.alert("2", collapseID: "game"))
        #expect(fixture.deliverAll().map(\.body) == [#"{"aps":{"alert":"2"}}"#])
    }

    @Test(arguments: [(0, 1), (1, 0)])
    func `an event that expires as it is read is late`(milliseconds: Int64, expired: Int) {
        let fixture = fixture(controls: 1)
        let instant = fixture.now.wall + .milliseconds(milliseconds)
        fixture.event("hot", #"{"v":1,"expiresAt":"\#(instant.rfc3339)"}"#)
        #expect(fixture.counters.eventsExpired == expired)
        #expect(fixture.load.queued == 1 - expired)
    }
}

extension PipelineFixture {
    /// Whether the index has this subject.
    fileprivate func knows(_ subject: String) -> Bool {
        let app = pipeline.routing.app(named: Self.app)!
        return Array(subject.utf8).withUnsafeBytes { pipeline.audience.subject(app, $0) != nil }
    }
}
