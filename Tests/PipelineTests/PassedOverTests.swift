// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// The subject is shown, but by no token that the event is for.
@Suite struct `Events that are passed over` {
    private static let voip = #"{"v":1,"payload":{"room":1},"pushType":"voip"}"#

    private func fixture(
        bindings: [TopicBinding] = [.standard],
        _ adjust: (inout PipelineSettings) -> Void = { _ in }
    ) -> PipelineFixture {
        PipelineFixture(bindings: bindings) { settings in
            settings.events.allowKindWide = true
            settings.registrationGrace = .zero
            adjust(&settings)
        }
    }

    private func counts(_ fixture: PipelineFixture) -> [String: Int] {
        var counts: [String: Int] = [:]
        for outcome in EventTally.Outcome.allCases {
            counts["\(outcome)"] = fixture.pipeline.eventTally.count(outcome, topic: 0)
        }
        return counts.filter { $0.value > 0 }
    }

    private func sample(
        _ outcome: EventTally.SampledOutcome, of fixture: PipelineFixture
    ) -> [String] {
        fixture.pipeline.eventTally.sample(outcome, topic: 0).map(\.subject)
    }

    @Test(arguments: [
        EventValue.alert("Open"), Self.voip, #"{"v":1,"classes":["widget"]}"#,
        #"{"v":1,"environment":"development"}"#, #"{"v":1,"kinds":["lamp"]}"#,
        #"{"v":1,"kinds":["unknown"]}"#,
    ])
    func `an event for no token of its subject is counted and kept as an example`(value: String) {
        let fixture = fixture()
        fixture.registerControl("C", [1], shows: ["door"], kind: "lock")
        fixture.registerControl("L", [2], shows: ["other"], kind: "lamp")
        fixture.event("door", value)
        #expect(fixture.deliverAll().isEmpty && fixture.isIdle)
        #expect(counts(fixture) == ["passedOver": 1])
        #expect(sample(.passedOver, of: fixture) == ["door"])
        #expect(sample(.unmatched, of: fixture).isEmpty)
        #expect(fixture.counters.eventsPassedOver == 1)
    }

    @Test func `an event without a payload is passed over where only payloads are asked for`() {
        let fixture = fixture()
        fixture.register("D", [.device([1], shows: ["door"])])
        fixture.event("door")
        #expect(counts(fixture) == ["passedOver": 1])
    }

    @Test func `an event whose tokens are suppressed, or have a push already, is matched`() {
        let fixture = fixture()
        fixture.registerControl("C", [1], shows: ["door"])
        for _ in 0..<2 { fixture.event("door") }
        for push in fixture.take() { fixture.answer(push, 410, .unregistered) }
        fixture.event("door")
        #expect(counts(fixture) == ["matched": 3])
    }

    @Test func `an event of several subjects or kinds is passed over if none has a token for it`() {
        var binding = TopicBinding(decode: .json, subject: try! SubjectTemplate("a-{/a}"))
        binding.subjects = [try! SubjectTemplate("b-{/b}")]
        binding.classes = TokenClassSet(.widget)
        let several = fixture(bindings: [binding])
        several.register("W", [.widget([1], shows: ["b-1"])])
        several.registerControl("C", [2], shows: ["a-1", "b-2"])
        for number in 1...3 { several.event(nil, #"{"a":\#(number),"b":\#(number)}"#) }
        several.event(nil, #"{"a":1,"b":3}"#)
        #expect(counts(several) == ["matched": 1, "passedOver": 2, "unmatched": 1])

        let kinds = fixture()
        kinds.registerControl("C", [1], shows: ["door"], kind: "lock")
        kinds.event(nil, #"{"v":1,"kinds":["none","lock"],"classes":["widget"]}"#)
        kinds.event(nil, #"{"v":1,"kinds":["lock","none"]}"#)
        #expect(counts(kinds) == ["matched": 1, "passedOver": 1])
        #expect(sample(.passedOver, of: kinds).isEmpty, "it names no subject")
    }

    // MARK: Large audiences

    private func fannedOut(_ values: String?..., widget: Bool = false) -> PipelineFixture {
        let fixture = fixture { settings in
            settings.slots = 16
            settings.immediateFanOutMax = 2
        }
        // A fan-out begins with the last.
        if widget { fixture.register("W", [.widget([200], shows: ["hot"])]) }
        for number in 0..<40 {
            fixture.registerControl("I\(number)", [UInt8(number)], shows: ["hot"])
        }
        for value in values { fixture.event("hot", value) }
        return fixture
    }

    @Test func `an event of a large audience is passed over if a fan-out has met no token for it`()
    {
        let classes = #"{"v":1,"classes":["widget"]}"#
        let fixture = fannedOut(classes, Self.voip, classes)
        #expect(fixture.counters.events == 3, "it is read before its outcome is known")
        #expect(counts(fixture).isEmpty)
        for _ in 0..<10 { fixture.pass(.milliseconds(1)) }
        #expect(fixture.isIdle)
        #expect(counts(fixture) == ["passedOver": 3])
        #expect(sample(.passedOver, of: fixture) == ["hot"])
        #expect(fixture.counters.events == 3)
    }

    @Test func `an event of a large audience is matched as soon as a fan-out meets a token for it`()
    {
        let classes = #"{"v":1,"classes":["widget"]}"#
        let fixture = fannedOut(classes, classes, nil, widget: true)
        for _ in 0..<10 {
            fixture.pass(.milliseconds(1))
            _ = fixture.deliverAll()
        }
        #expect(counts(fixture) == ["matched": 3])
        #expect(fixture.counters.events == 3 && fixture.isIdle)
    }

    @Test func `a fan-out whose last token went away leaves no event without an outcome`() {
        let fixture = fannedOut(#"{"v":1,"classes":["widget"]}"#)
        for number in 0..<40 { fixture.unregister("I\(number)") }
        fixture.pass(.milliseconds(1))
        #expect(counts(fixture) == ["passedOver": 1] && fixture.counters.events == 1)
    }

    @Test func `a shard is passed over only if no other shard has a token for the event either`() {
        func splitting(_ value: String?) -> PipelineFixture {
            let fixture = fixture { settings in
                settings.splitAbove = 2
                settings.shards = ShardTopic(binding: 0, partitions: 4)
            }
            for number in 1...3 {
                fixture.registerControl("I\(number)", [UInt8(number)], shows: ["door"])
            }
            fixture.register("W", [.widget([9], shows: ["door"])])
            fixture.event("door", value)
            for shard in fixture.takeRecords() { fixture.pipeline.refused(shard.ticket) }
            for _ in 0..<10 { fixture.pass(.milliseconds(1)) }
            return fixture
        }
        #expect(
            counts(splitting(#"{"v":1,"classes":["widget"]}"#)) == ["split": 1, "matched": 4])
        #expect(counts(splitting(Self.voip)) == ["split": 1, "passedOver": 4])
    }
}
