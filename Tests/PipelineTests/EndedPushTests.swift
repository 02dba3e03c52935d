// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// Which pushes the topic of outcomes tells of, and what it says of them.
@Suite struct `Pushes that have ended` {
    /// Controls 1, 2, … that all show `door`, and an event about it.
    private func fixture(
        controls: Int = 1, share: Double = 1, adjust: (inout PipelineSettings) -> Void = { _ in }
    ) -> PipelineFixture {
        let fixture = PipelineFixture { settings in
            settings.registrationGrace = .zero
            settings.notesEnds = true
            settings.outcomeSample = OutcomeSample(share: share)
            settings.slots = max(256, controls * 2)
            adjust(&settings)
        }
        fixture.checksEachCall = controls < 100
        for number in 1...controls {
            fixture.registerControl(
                "I\(number)", [UInt8(number & 255), UInt8(number >> 8)], shows: ["door"])
        }
        fixture.event("door", #"{"id":"e-1"}"#)
        if controls > 1 { fixture.pass(.milliseconds(1)) }
        return fixture
    }

    private func ends(_ fixture: PipelineFixture) -> [EndedPush] {
        fixture.pipeline.takeEnded().pushes
    }

    @Test func `an outcome has the word of its counter`() {
        for word in OutcomeRecord.Word.allCases { #expect(word.rawValue == word.outcome.name) }
    }

    // MARK: Failures

    @Test(
        arguments: [
            (400, APNSReason.badMessageId, OutcomeRecord.Word.rejected, "BadMessageId"),
            (400, .unknown, .rejected, "Bewitched"),
            (410, .unregistered, .unregistered, "Unregistered"),
        ] as [(UInt16, APNSReason, OutcomeRecord.Word, String)])
    func `a push that APNs refuses for good is told of with its answer`(
        status: UInt16, reason: APNSReason, word: OutcomeRecord.Word, text: String
    ) throws {
        // None of the accepted is wanted.
        let fixture = fixture(share: 0)
        let push = fixture.take()[0]
        if reason == .unknown { fixture.slab.keepReason("Bewitched", of: push.slot) }
        fixture.pass(.seconds(2))
        fixture.answer(push, status, reason)
        let end = try #require(ends(fixture).first)
        #expect(end.outcome == word && end.status == status && end.reason == text)
        #expect(end.attempts == 1)
        #expect(end.writtenAt == fixture.now.wall + .seconds(-2))
        #expect(end.push.token == [1, 0] && end.push.apnsID == push.apnsID)
        #expect(end.push.app == PipelineFixture.app && end.push.type == .controls)
        #expect(end.push.subject == Array("door".utf8) && end.push.eventID == "e-1")
        #expect(end.push.event == .init(topic: "events-0", partition: 0, offset: 0))
        #expect(ends(fixture).isEmpty, "it is told once")
    }

    @Test func `a push is told of once it is given up, and not while it is tried again`() {
        let fixture = fixture(share: 0) { $0.attemptsMax = 2 }
        fixture.answer(fixture.take()[0], 429, .tooManyRequests)
        #expect(ends(fixture).isEmpty)
        fixture.pass(.seconds(1000))
        fixture.answer(fixture.take()[0], 429, .tooManyRequests)
        let end = ends(fixture)
        #expect(end.map(\.outcome) == [.rejected] && end.map(\.reason) == ["AttemptsExhausted"])
        #expect(end.map(\.attempts) == [2] && end.map(\.status) == [429])
    }

    @Test(
        arguments: [
            (410, APNSReason.unregistered, 410, "Unregistered"),
            (500, .internalServerError, nil, ""),
        ] as [(UInt16, APNSReason, UInt16?, String)])
    func `a push whose token is gone meanwhile has the answer that calls it dead, and no other`(
        status: UInt16, reason: APNSReason, told: UInt16?, text: String
    ) {
        let fixture = fixture(share: 0)
        let push = fixture.take()[0]
        fixture.unregister("I1")
        fixture.answer(push, status, reason)
        let end = ends(fixture)
        #expect(end.map(\.outcome) == [.unregistered])
        #expect(end.map(\.status) == [told] && end.map(\.reason) == [text])
    }

    @Test func `a push that is not sent is told of, without an answer`() {
        let expired = fixture(share: 0) { $0.events.changeTTL = .seconds(60) }
        expired.pass(.seconds(61))
        #expect(expired.take().isEmpty)
        let gone = fixture(share: 0)
        gone.unregister("I1")
        let dropped = fixture(share: 0)
        dropped.restrict(.pushes(app: PipelineFixture.app, tokenClass: nil), .drop)
        #expect(dropped.take().isEmpty)
        for (fixture, word) in [
            (expired, OutcomeRecord.Word.expired), (gone, .unregistered), (dropped, .dropped),
        ] {
            let end = ends(fixture)
            #expect(end.map(\.outcome) == [word])
            #expect(end.map(\.push.token) == [[1, 0]] && end.map(\.attempts) == [0])
            #expect(end.allSatisfy { $0.status == nil && $0.reason.isEmpty })
        }
    }

    @Test func `a deferred push that nobody sent in time is told of`() {
        let fixture = fixture(share: 0) { $0.holdMax = .seconds(10) }
        let deferred = DeferredFixture(fixture)
        deferred.assign()
        let now = fixture.now.wall
        let (due, end) = ((now + .seconds(30)).rfc3339, (now + .seconds(60)).rfc3339)
        deferred.write(
            .init(
                key: "production/com.example.Home.push-type.controls/0100",
                value: #"{"v":1,"notBefore":"\#(due)","expiresAt":"\#(end)","#
                    + #""class":"control","attempts":3}"#))
        deferred.read()
        _ = fixture.deliverAll()
        #expect(ends(fixture).isEmpty)
        fixture.pass(.seconds(3600))
        // By then the times of Kafka's records say so, too.
        fixture.event("lamp")
        fixture.pass(.seconds(60))
        let ended = ends(fixture)
        #expect(ended.map(\.outcome) == [.expired] && ended.map(\.attempts) == [3])
        #expect(ended.map(\.push.token) == [[1, 0]])
    }

    // MARK: Acceptances

    /// As the planner does with the outcomes of a batch.
    private func acceptAll(_ fixture: PipelineFixture) {
        while true {
            let pushes = fixture.take(1024)
            if pushes.isEmpty { return }
            let outcomes = pushes.map { PushOutcome(slot: $0.slot, kind: .answered, status: 200) }
            outcomes.withUnsafeBufferPointer { fixture.pipeline.noteAcceptances($0) }
            for push in pushes { fixture.answer(push, 200) }
        }
    }

    @Test func `of accepted pushes the sample is told of, which every worker chooses alike`() {
        var chosen: [Set<[UInt8]>] = []
        for seed: UInt64 in 1...2 {
            let fixture = fixture(controls: 2000, share: 0.25) { $0.seed = seed }
            acceptAll(fixture)
            let end = ends(fixture)
            #expect(end.allSatisfy { $0.outcome == .accepted && $0.status == 200 })
            #expect(end.allSatisfy { $0.attempts == 1 && $0.reason.isEmpty })
            // Five standard deviations, 97 pushes, beside 500.
            #expect((400...600).contains(end.count))
            // The rule of the documentation: the first twelve digits.
            let bound = UInt64(0.25 * Double(1 << 48))
            #expect(
                end.allSatisfy {
                    UInt64($0.push.apnsID.text.replacing("-", with: "").prefix(12), radix: 16)!
                        < bound
                })
            chosen.append(Set(end.map(\.push.token)))
        }
        #expect(chosen[0] == chosen[1])
    }

    @Test(arguments: [(0.0, 0), (1.0, 100)])
    func `a share of 0 tells of no accepted push, and one of 1 of all`(share: Double, count: Int) {
        let fixture = fixture(controls: 100, share: share)
        acceptAll(fixture)
        #expect(ends(fixture).count == count)
        let sample = OutcomeSample(share: share)
        for id in [APNSID(high: 0, low: 0), APNSID(high: .max, low: .max)] {
            #expect(sample.includes(id) == (share == 1))
        }
    }

    // MARK: Bounds

    @Test func `nothing is noted where no outcomes are wanted`() {
        let fixture = fixture { $0.notesEnds = false }
        fixture.answer(fixture.take()[0], 400, .badMessageId)
        #expect(!fixture.notesEnds && !fixture.hasEnded && ends(fixture).isEmpty)
    }

    @Test func `ends that nobody takes are counted above the bound`() {
        let count = EndedPushes.countMax + 10
        let fixture = fixture(controls: count)
        acceptAll(fixture)
        let (pushes, dropped) = fixture.pipeline.takeEnded()
        #expect(pushes.count == EndedPushes.countMax && dropped == 10)
        #expect(!fixture.hasEnded)
        #expect(fixture.counters.accepted == count, "pushes go on")
    }
}

extension PipelineFixture {
    fileprivate var notesEnds: Bool { pipeline.notesEnds }
    fileprivate var hasEnded: Bool { pipeline.hasEnded }
}
