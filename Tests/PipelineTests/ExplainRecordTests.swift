// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

@Suite struct `What explain says of a record` {
    private typealias Cause = EventExplanation.Cause

    /// Two controls of kinds door and lamp, a widget, a device that hears changes and one that does
    /// not, all of which show `door`.
    private func fixture(
        apps: [String] = [PipelineFixture.app], bindings: [TopicBinding] = [.standard]
    ) -> PipelineFixture {
        let fixture = PipelineFixture(apps: apps, bindings: bindings) {
            $0.events.allowKindWide = true
        }
        fixture.registerControl("A", [1], shows: ["door"], kind: "door")
        fixture.registerControl("B", [2], shows: ["door"], kind: "lamp")
        fixture.registerControl("C", [3], shows: ["door"], environment: .development)
        fixture.register("D", [.device([4], shows: ["door"], hearsChanges: true)])
        fixture.register("E", [.device([5], shows: ["door"])])
        let voip = RegistrationDraft.Target(
            tokenClass: .voip, token: [6],
            shows: [RegistrationDraft.Show(kind: nil, subjects: ["door"])])
        fixture.register("F", [voip])
        return fixture
    }

    private func expect(
        _ explanation: EventExplanation, _ counts: [EventExplanation.Result: Int],
        sourceLocation: SourceLocation = #_sourceLocation
    ) {
        #expect(explanation.counts == counts, sourceLocation: sourceLocation)
        #expect(explanation.unreadable == nil, sourceLocation: sourceLocation)
    }

    @Test func `a record without a value reaches whoever hears changes`() {
        let fixture = fixture()
        let found = fixture.trial("door")
        expect(
            found,
            [
                .push(.controls): 3, .push(.background): 1,
                .passedOver(.changesUnwanted): 1, .passedOver(.noPushForChange): 1,
            ])
        #expect(found.event?.app == PipelineFixture.app)
        #expect(found.event?.subject == Array("door".utf8))
        let first = found.entries.first { $0.id == PipelineFixture.tokenID(of: [2]) }
        #expect(first?.kind == "lamp" && first?.result == .push(.controls))
        #expect(fixture.trial("dor").counts.isEmpty)
    }

    @Test(
        arguments: [
            (KeyFormat.int64, "42", "42"), (.int64, "-7000000000", "-7000000000"),
            (.int32, "-1", "-1"), (.int32, "7000000000", nil), (.int64, "door", nil),
            (.json, "42", "42"), (nil, "42", "42"),
        ] as [(KeyFormat?, String, String?)])
    func `a typed key is the number where keys are numbers`(
        format: KeyFormat?, key: String, subject: String?
    ) throws {
        var binding = TopicBinding(
            decode: .key, subject: try SubjectTemplate("{key}"), app: PipelineFixture.app)
        binding.keySchema = format
        let found = fixture(bindings: [binding]).trial(key)
        #expect(found.event.map { String(decoding: $0.subject, as: UTF8.self) } == subject)
        #expect((found.unreadable == nil) == (subject != nil))
    }

    @Test func `a record's filters pass over other kinds, environments and classes`() {
        let fixture = fixture()
        expect(
            fixture.trial("door", #"{"kinds":["door"]}"#),
            [.push(.controls): 2, .passedOver(.otherKind): 4])
        expect(
            fixture.trial("door", #"{"kinds":["nobody's"]}"#), [.passedOver(.otherKind): 6])
        expect(
            fixture.trial("door", #"{"environment":"development"}"#),
            [.push(.controls): 1, .passedOver(.otherEnvironment): 5])
        expect(
            fixture.trial("door", #"{"classes":["device"]}"#),
            [
                .push(.background): 1, .passedOver(.changesUnwanted): 1,
                .passedOver(.otherClass): 4,
            ])
    }

    @Test func `a record's payload goes to device tokens alone`() {
        let found = fixture().trial("door", #"{"payload":{"aps":{"alert":"a"}}}"#)
        expect(found, [.push(.alert): 2, .passedOver(.otherPushType): 4])
        #expect(found.event?.payload == .alert)
    }

    @Test func `a record reaches no suppressed token, and nobody once it has expired`() {
        let fixture = fixture()
        fixture.event("door", #"{"kinds":["lamp"]}"#)
        fixture.answer(fixture.take()[0], 410, .unregistered)
        expect(
            fixture.trial("door", #"{"kinds":["lamp"]}"#),
            [.passedOver(.suppressed): 1, .passedOver(.otherKind): 5])
        let late = fixture.trial(
            "door", #"{"kinds":["door"],"expiresAt":"2020-01-01T00:00:00Z"}"#)
        expect(late, [.passedOver(.expired): 2, .passedOver(.otherKind): 4])
        #expect(late.event?.isExpired == true)
    }

    @Test func `a record for a kind reaches each control of it`() {
        expect(fixture().trial(nil, #"{"kinds":["door"]}"#), [.push(.controls): 2])
    }

    @Test func `a record names the other apps in which its subject is shown`() {
        let mail = "com.example.Mail"
        let fixture = fixture(apps: [PipelineFixture.app, mail])
        fixture.register("M", [.control([9], shows: ["inbox"])], app: mail)
        let found = fixture.trial("inbox", #"{"app":"\#(PipelineFixture.app)"}"#)
        #expect(found.counts.isEmpty)
        #expect(found.otherApps.map(\.app) == [mail] && found.otherApps.map(\.entries) == [1])
    }

    @Test func `a record that cannot be read has the reason of its dead letter`() {
        let fixture = fixture()
        #expect(fixture.trial("door", "{").unreadable?.code == "invalidJSON")
        #expect(fixture.trial("door", #"{"v":2}"#).unreadable?.code == "unknownVersion")
        #expect(fixture.trial(nil).unreadable?.code == "missingSubject")
        #expect(fixture.trial(nil).event == nil)
    }

    @Test func `a record's headers are read as those of a CloudEvent`() {
        let fixture = fixture(bindings: [.standard, TopicBinding(decode: .cloudevents)])
        let headers = [
            ("ce_specversion", "1.0"), ("ce_id", "1"), ("ce_source", "/s"), ("ce_type", "t"),
            ("ce_subject", "door"), ("ce_pushkinds", "lamp"),
        ].map { (name: $0.0, value: Array($0.1.utf8)) }
        expect(
            fixture.trial("x", headers: headers, binding: 1),
            [.push(.controls): 1, .passedOver(.otherKind): 5])
    }

    @Test func `a record's pushes that would wait for a circuit breaker say so`() {
        let fixture = fixture()
        fixture.event("door", #"{"kinds":["lamp"]}"#)
        fixture.answer(fixture.take()[0], 403, .invalidProviderToken)
        #expect(
            fixture.trial("door").breakers.map(\.name) == ["credential team in production"])
        let elsewhere = fixture.trial("door", #"{"environment":"development"}"#)
        #expect(elsewhere.breakers.isEmpty)
    }

    @Test func `a record that is tried has no effect`() {
        let fixture = fixture()
        let (counters, offset) = (fixture.counters, fixture.committableOffset)
        for value in [nil, "{", #"{"payload":{"aps":{"alert":"a"}}}"#] as [String?] {
            _ = fixture.trial("door", value)
        }
        #expect(fixture.counters == counters && fixture.committableOffset == offset)
        #expect(fixture.isIdle && fixture.take().isEmpty && fixture.takeRecords().isEmpty)
    }

    @Test func `a record of a large audience is tried in parts, with entries of each result`() {
        let fixture = PipelineFixture()
        fixture.checksEachCall = false
        for number in 0..<1000 {
            fixture.registerControl(
                "I\(number)", [UInt8(number & 255), UInt8(number >> 8)], shows: ["door"],
                kind: number % 2 == 0 ? "door" : "lamp")
        }
        let found = fixture.trial("door", #"{"kinds":["lamp"]}"#)
        expect(found, [.push(.controls): 500, .passedOver(.otherKind): 500])
        let named = Dictionary(grouping: found.entries, by: \.result).mapValues(\.count)
        #expect(named == [.push(.controls): 100, .passedOver(.otherKind): 20])
    }

    /// Records of many sorts, each tried and then read: both must reach the same tokens.
    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `a record that is tried reaches whom it reaches when it is read`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        func pick<Element>(_ all: [Element]) -> Element {
            all[Int(random.next() % UInt64(all.count))]
        }
        let fixture = PipelineFixture { $0.registrationGrace = .zero }
        for number in 1...30 as ClosedRange<UInt8> {
            let tokenClass = pick([TokenClass.control, .control, .widget, .device, .voip])
            var target = RegistrationDraft.Target(
                tokenClass: tokenClass, token: [number],
                shows: [
                    RegistrationDraft.Show(
                        kind: pick(["door", "lamp", nil]), subjects: [pick(["s", "t"])])
                ])
            target.hearsChanges = tokenClass == .device && pick([true, false])
            fixture.register(
                "I\(number)", [target], environment: pick(PushEnvironment.allCases))
        }
        fixture.event("s")
        for push in fixture.take() + fixture.take(pool: 1) {
            if pick([true, false, false]) {
                fixture.answer(push, 410, .unregistered)
            } else {
                fixture.answer(push, 200)
            }
        }
        for _ in 0..<20 {
            var members = [#""v":1"#]
            if pick([true, false]) { members.append(#""kinds":["\#(pick(["door", "new"]))"]"#) }
            if pick([true, false, false]) {
                members.append(#""environment":"\#(pick(PushEnvironment.allCases).name)""#)
            }
            if pick([true, false, false]) {
                members.append(#""classes":["\#(pick(["control", "device", "widget"]))"]"#)
            }
            if pick([true, false, false]) { members.append(#""payload":{"aps":{"alert":"a"}}"#) }
            if pick([true, false, false, false]) { members.append(#""ttlSeconds":1"#) }
            let value = "{\(members.joined(separator: ","))}"
            let tried = fixture.trial("s", value)
            fixture.event("s", value)
            let sent = fixture.deliverAll() + fixture.deliverAll(pool: 1)
            let expected = tried.entries.filter { entry in
                if case .push = entry.result { true } else { false }
            }
            #expect(
                Set(sent.map { PipelineFixture.tokenID(of: $0.token) })
                    == Set(expected.map(\.id)), "\(value)")
        }
    }
}
