// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// How pushes end, by app, push type, outcome and reason.
@Suite struct `The tally of pushes` {
    /// Controls 1, 2, … that show `door`.
    private func fixture(
        controls: Int = 1, adjust: (inout PipelineSettings) -> Void = { _ in }
    ) -> PipelineFixture {
        let fixture = PipelineFixture { settings in
            settings.registrationGrace = .zero
            adjust(&settings)
        }
        for number in 1...controls {
            fixture.registerControl("I\(number)", [UInt8(number)], shows: ["door"])
        }
        return fixture
    }

    @Test func `a push that is accepted is counted under its app and its type`() {
        let fixture = fixture(controls: 3)
        fixture.register("D", [.device([9], shows: ["score"])])
        fixture.event("door")
        fixture.event("score", #"{"payload":{"aps":{"alert":"1:0"}}}"#)
        #expect(fixture.deliverAll().count == 4)
        #expect(
            fixture.ended == [
                "com.example.Home controls accepted": 3, "com.example.Home alert accepted": 1,
            ])
    }

    @Test func `pushes of several apps are counted apart`() {
        let fixture = PipelineFixture(apps: ["com.example.One", "com.example.Two"])
        for (number, app) in ["com.example.One", "com.example.Two"].enumerated() {
            fixture.register("A", [.control([UInt8(number)], shows: ["door"])], app: app)
            for _ in 0...number {
                fixture.event("door", #"{"app":"\#(app)"}"#)
                _ = fixture.deliverAll()
            }
        }
        #expect(
            fixture.ended == [
                "com.example.One controls accepted": 1, "com.example.Two controls accepted": 2,
            ])
    }

    @Test(arguments: [
        (400, APNSReason.badMessageId, "rejected BadMessageId"), (400, .none, "rejected"),
        (400, .unknown, "rejected other"), (413, .payloadTooLarge, "rejected PayloadTooLarge"),
        (410, .unregistered, "unregistered Unregistered"),
        (410, .expiredToken, "unregistered ExpiredToken"),
    ])
    func `an answer that ends a push is counted under its reason, or as other`(
        status: UInt16, reason: APNSReason, outcome: String
    ) {
        let fixture = fixture()
        fixture.event("door")
        let push = fixture.take()[0]
        if reason == .unknown { fixture.slab.keepReason("Bewitched", of: push.slot) }
        fixture.answer(push, status, reason)
        #expect(fixture.ended == ["com.example.Home controls \(outcome)": 1])
    }

    @Test(arguments: [2, 200])
    func `a push that APNs calls to a bad token is rejected, believed or not`(window: Int) {
        let fixture = fixture {
            $0.tokenGuard.window = window
            $0.tokenGuard.badShareMax = 1
        }
        fixture.event("door")
        fixture.answer(fixture.take()[0], 200)
        fixture.event("door")
        fixture.answer(fixture.take()[0], 400, .badDeviceToken)
        let isBelieved = fixture.takeRecords().map(\.topic) == [.suppressions]
        #expect(isBelieved == (window == 2))
        #expect(
            fixture.ended == [
                "com.example.Home controls accepted": 1,
                "com.example.Home controls rejected BadDeviceToken": 1,
            ])
    }

    @Test func `a death that is not believed is counted as unconfirmed`() {
        let fixture = fixture { $0.tokenGuard.suppressionsPerMinuteMax = 0 }
        fixture.event("door")
        fixture.answer(fixture.take()[0], 410, .unregistered)
        #expect(fixture.ended == ["com.example.Home controls dead_unconfirmed Unregistered": 1])
    }

    @Test func `a push that was tried too often is rejected for that`() {
        let fixture = fixture { $0.attemptsMax = 2 }
        fixture.event("door")
        for _ in 0..<2 {
            fixture.answer(fixture.take()[0], 503, .serviceUnavailable)
            fixture.pass(.seconds(3600))
        }
        #expect(fixture.ended == ["com.example.Home controls rejected AttemptsExhausted": 1])
    }

    @Test func `a push whose deferral Kafka never takes is rejected for that`() {
        let fixture = fixture { $0.holdMax = .seconds(10) }
        fixture.event("door")
        fixture.answer(fixture.take()[0], 503, .serviceUnavailable, retryAfterSeconds: 60)
        fixture.pipeline.tooLarge(fixture.takeRecords()[0].ticket)
        #expect(fixture.ended == ["com.example.Home controls rejected DeferralTooLarge": 1])
    }

    @Test func `a push that is not sent is counted as expired, suppressed or unregistered`() {
        let fixture = fixture(controls: 2)
        fixture.event("door", #"{"ttlSeconds":1}"#)
        fixture.pass(.seconds(2))
        #expect(fixture.take().isEmpty)
        #expect(fixture.ended == ["com.example.Home controls expired": 2])

        fixture.event("door")
        let sent = fixture.take()
        fixture.event("door")
        fixture.answer(sent[0], 410, .unregistered)
        fixture.unregister(sent[1].token == [1] ? "I1" : "I2")
        fixture.event("door")
        fixture.end(sent[1], .unknown)
        #expect(
            fixture.ended == [
                "com.example.Home controls expired": 2,
                "com.example.Home controls unregistered Unregistered": 1,
                // The follow-up of the dead token's push, and the last event's push to it.
                "com.example.Home controls suppressed": 2,
                // The push to the token that is gone, and its follow-up.
                "com.example.Home controls unregistered": 2,
            ])
        let counters = fixture.counters
        #expect(counters.pushesQueued == 4 && counters.pushesFollowedUp == 0)
        #expect(counters.pushesUnqueued == 3, "both follow-ups, and the last event's push")
    }

    @Test func `a deferred push that comes back is not one that an event asked for`() {
        let owner = DeferredOwner()
        let fixture = owner.pipeline
        owner.write(1)
        fixture.pass(.milliseconds(10))
        #expect(fixture.deliverAll().count == 1)
        #expect(fixture.counters.pushesQueued == 0 && fixture.counters.deferredSent == 1)
        // It joins the push that its token has by now.
        fixture.event("s2")
        owner.write(2)
        fixture.pass(.milliseconds(10))
        #expect(fixture.deliverAll().count == 1)
        let counters = fixture.counters
        #expect(counters.pushesQueued == 1 && counters.pushesCoalesced == 1)
        #expect(counters.deferredSent == 1 && counters.accepted == 2)
    }

    @Test func `a payload that a newer one has overtaken is superseded`() {
        let fixture = PipelineFixture { settings in
            settings.holdMax = .seconds(10)
            settings.registrationGrace = .zero
        }
        let deferred = DeferredFixture(fixture)
        deferred.assign()
        fixture.register("D", [.device([9], shows: ["score"])])
        func score(_ text: String) {
            fixture.event(
                "score", #"{"collapseID":"game","payload":{"aps":{"alert":"\#(text)"}}}"#)
        }
        score("old")
        fixture.answer(fixture.take()[0], 429, .tooManyRequests, retryAfterSeconds: 60)
        deferred.produce()
        deferred.read()
        score("new")
        #expect(fixture.deliverAll().count == 1)
        #expect(
            fixture.ended == [
                "com.example.Home alert accepted": 1, "com.example.Home alert superseded": 1,
            ])
    }

    @Test func `the counters are the sums of the tally, and nothing else counts ends`() {
        let fixture = fixture(controls: 60)
        let answers: [(UInt16, APNSReason)] = [
            (200, .none), (400, .badMessageId), (410, .unregistered), (503, .serviceUnavailable),
        ]
        for round in 0..<4 {
            fixture.event("door")
            for (number, push) in fixture.take().enumerated() {
                let (status, reason) = answers[(number + round) % answers.count]
                fixture.answer(push, status, reason)
            }
            fixture.pass(.seconds(3))
        }
        fixture.event("door", #"{"ttlSeconds":1}"#)
        fixture.pass(.seconds(2))
        for push in fixture.take() { fixture.answer(push, 200) }
        for number in 1...60 { fixture.unregister("I\(number)") }
        fixture.pass(.seconds(1))
        fixture.acknowledge(fixture.takeRecords())
        let counters = fixture.counters
        var sums: [String: Int] = [:]
        for ended in fixture.tallied { sums[ended.outcome, default: 0] += ended.count }
        #expect(
            sums == [
                "accepted": counters.accepted, "rejected": counters.rejected,
                "expired": counters.expired, "suppressed": counters.suppressed,
                "unregistered": counters.unregistered,
            ])
        #expect(sums.values.allSatisfy { $0 > 0 } && counters.deadUnconfirmed == 0)
        #expect(fixture.isIdle && counters.pushesFollowedUp == 0)
        #expect(
            sums.values.reduce(0, +) == counters.pushesQueued + counters.pushesUnqueued,
            "what was queued, and pushes to suppressed tokens")
    }
}

extension PipelineFixture {
    var tallied: [PushTally.Count] { pipeline.pushTally.counts }

    /// How many pushes have ended, by app, push type, outcome and reason.
    var ended: [String: Int] {
        var ended: [String: Int] = [:]
        for push in tallied {
            let words = [push.app, push.type, push.outcome, push.reason]
            ended[words.filter { !$0.isEmpty }.joined(separator: " ")] = push.count
        }
        return ended
    }
}
