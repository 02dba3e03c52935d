// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// Events that name kinds.
@Suite struct `Kinds in the pipeline` {
    private static let otherApp = "com.example.Mail"

    @Test func `an app that uses up its kinds takes none from another, and is named`() {
        let fixture = PipelineFixture(apps: [PipelineFixture.app, Self.otherApp])
        fixture.checksEachCall = false
        let each = 8_000
        for first in stride(from: 0, through: Audience.kindsMax, by: each) {
            let shows = (first..<first + each).map { number in
                RegistrationDraft.Show(kind: "kind-\(number)", subjects: ["s"])
            }
            let target = RegistrationDraft.Target(
                tokenClass: .control, token: [1], shows: shows)
            fixture.register("A\(first)", [target])
        }
        let refused = 9 * each - Audience.kindsMax
        #expect(fixture.counters.registrationRowsWithoutKind == refused)
        let full = fixture.appsOutOfKinds
        #expect(full.map(\.app) == [PipelineFixture.app] && full.map(\.rows) == [refused])

        fixture.register(
            "B", [.control([2], shows: ["inbox"], kind: "mailbox")], app: Self.otherApp)
        fixture.event("inbox", #"{"v":1,"app":"\#(Self.otherApp)","kinds":["mailbox"]}"#)
        #expect(fixture.deliverAll().map(\.token) == [[2]])
        #expect(fixture.counters.registrationRowsWithoutKind == refused)
    }

    @Test func `an event of kinds that nobody shows is counted as passed over`() {
        let fixture = PipelineFixture()
        fixture.registerControl("I", [1], shows: ["door"], kind: "lock")
        fixture.event("door", #"{"v":1,"kinds":["lamp","window"]}"#)
        #expect(fixture.counters.eventsPassedOver == 1)
        #expect(fixture.deliverAll().isEmpty && fixture.isIdle)
        fixture.event("door", #"{"v":1,"kinds":["lamp","lock"]}"#)
        #expect(fixture.counters.eventsPassedOver == 1)
        #expect(fixture.deliverAll().map(\.token) == [[1]])
    }

    @Test
    func `a kind that goes leaves its number to no other while an event is fanned out with it`() {
        let fixture = PipelineFixture { settings in
            settings.slots = 16
            settings.immediateFanOutMax = 2
            settings.registrationGrace = .zero
        }
        for number in 0..<40 {
            fixture.registerControl("I\(number)", [UInt8(number)], shows: ["hot"], kind: "door")
        }
        fixture.event("hot", #"{"v":1,"kinds":["door"]}"#)
        fixture.pass(.milliseconds(1))
        #expect(fixture.load.fanOuts == 1)
        for number in 0..<40 { fixture.unregister("I\(number)") }
        fixture.registerControl("L", [99], shows: ["hot"], kind: "lamp")
        var sent: [SentPush] = []
        for _ in 0..<10 {
            sent += fixture.deliverAll()
            fixture.pass(.milliseconds(1))
        }
        #expect(!sent.contains { $0.token == [99] })
        #expect(fixture.isIdle)
        // With the fan-out, the number has become free.
        fixture.registerControl("M", [98], shows: ["hot"], kind: "window")
        #expect(fixture.kindsKnown == 2)
    }

    @Test func `an event for a whole app reaches each control and widget of it once`() {
        let fixture = PipelineFixture(apps: [PipelineFixture.app, Self.otherApp]) { settings in
            settings.events.allowKindWide = true
        }
        fixture.registerControl("I", [1], shows: ["s"], kind: "door")
        fixture.registerControl("L", [2], shows: ["t"], kind: "lamp")
        fixture.register("W", [.widget([3], shows: ["s", "t"], kind: "lamp")])
        fixture.register("D", [.device([4], shows: ["s"], hearsChanges: true)])
        fixture.register(
            "M", [.control([5], shows: ["inbox"], kind: "mailbox")], app: Self.otherApp)
        fixture.event(nil, #"{"v":1,"app":"\#(PipelineFixture.app)","all":true}"#)
        #expect(fixture.deliverAll().map(\.token).inOrder == [[1], [2], [3]])
        fixture.event(
            nil, #"{"v":1,"app":"\#(PipelineFixture.app)","all":true,"classes":["control"]}"#)
        #expect(Set(fixture.deliverAll().map(\.token)) == [[1], [2]])
        fixture.event(
            nil, #"{"v":1,"app":"\#(PipelineFixture.app)","kinds":["lamp"]}"#)
        #expect(Set(fixture.deliverAll().map(\.token)) == [[2], [3]])
    }

    @Test func `a record about several subjects reaches each token once and holds its offset`() {
        var binding = TopicBinding(decode: .json, subject: try! SubjectTemplate("a-{/a}"))
        binding.subjects = [try! SubjectTemplate("b-{/b}")]
        let fixture = PipelineFixture(bindings: [binding])
        fixture.register("W", [.widget([1], shows: ["a-1", "b-2"])])
        fixture.registerControl("C", [2], shows: ["b-2"])
        fixture.event(nil, #"{"a":1,"b":2}"#)
        #expect(Set(fixture.deliverAll().map(\.token)) == [[1], [2]])
        fixture.event(nil, #"{"a":1,"b":3}"#)
        #expect(fixture.deliverAll().map(\.token) == [[1]])
        #expect(fixture.isIdle)
    }

    @Test func `a token that goes from one kind of an event to another of them is still owed it`() {
        let fixture = PipelineFixture(apps: [PipelineFixture.app, Self.otherApp]) { settings in
            settings.slots = 16
            settings.immediateFanOutMax = 2
            settings.registrationGrace = .zero
            settings.events.allowKindWide = true
        }
        for number in 0..<20 {
            fixture.registerControl("I\(number)", [UInt8(number)], shows: ["s"], kind: "door")
        }
        fixture.registerControl("L", [99], shows: ["s"], kind: "lamp")
        fixture.event(nil, #"{"v":1,"app":"\#(PipelineFixture.app)","kinds":["door","lamp"]}"#)
        fixture.pass(.milliseconds(1))
        #expect(fixture.load.fanOuts == 1)
        // The fan-out has not come to these doors, and none goes through the lamps.
        fixture.registerControl("I0", [0], shows: ["s"], kind: "lamp")
        fixture.registerControl("I1", [1], shows: ["s"], kind: "window")
        // The first kind of each app has the same number.
        fixture.register(
            "M", [.control([98], shows: ["inbox"], kind: "mailbox")], app: Self.otherApp)
        var sent: [SentPush] = []
        for _ in 0..<10 {
            sent += fixture.deliverAll()
            fixture.pass(.milliseconds(1))
        }
        // What takes the place of a token that goes may be met twice.
        #expect(sent.count { $0.token == [0] } == 1)
        #expect(!sent.contains { $0.token == [1] || $0.token == [98] })
        #expect(Set(sent.map(\.token)).count == 20 && fixture.isIdle)
    }

    @Test(arguments: [nil, "s"])
    func `a token that is the first of a kind that an event under way names is owed it`(
        subject: String?
    ) {
        let fixture = PipelineFixture(apps: [PipelineFixture.app, Self.otherApp]) { settings in
            settings.slots = 16
            settings.immediateFanOutMax = 2
            settings.registrationGrace = .zero
            settings.events.allowKindWide = true
        }
        for number in 0..<20 {
            fixture.registerControl("I\(number)", [UInt8(number)], shows: ["s"], kind: "door")
        }
        // No registration shows the second kind of either.
        for kind in ["lamp", "window"] {
            fixture.event(
                subject, #"{"v":1,"app":"\#(PipelineFixture.app)","kinds":["door","\#(kind)"]}"#)
        }
        fixture.pass(.milliseconds(1))
        // One does not answer for the other: they are for different tokens.
        #expect(fixture.load.fanOuts == 2)
        // The fan-outs have not come to these doors.
        for (number, kind) in [(0, "lamp"), (1, "window"), (2, "blind"), (3, "lam"), (4, nil)] {
            fixture.registerControl("I\(number)", [UInt8(number)], shows: ["s"], kind: kind)
        }
        fixture.register("M", [.control([98], shows: ["s"], kind: "lamp")], app: Self.otherApp)
        var sent: [SentPush] = []
        for _ in 0..<10 {
            sent += fixture.deliverAll()
            fixture.pass(.milliseconds(1))
        }
        let others = UInt8(5)..<20
        #expect(Set(sent.map(\.token)) == Set(([0, 1] + others).map { [$0] }))
        #expect(fixture.isIdle)
    }
}
