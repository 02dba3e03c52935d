// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import Pipeline
internal import PushModel
internal import RecordFormats
internal import Testing

@Suite struct `Attempts in the pipeline` {
    /// Controls 0, 1, … that show one subject each, `s0`, `s1`, …, and all of them `hot`.
    private func controls(
        _ count: Int, adjust: (inout PipelineSettings) -> Void = { _ in }
    ) -> PipelineFixture {
        let fixture = PipelineFixture(adjust: adjust)
        for number in 0..<count {
            fixture.registerControl(
                "I\(number)", [UInt8(number)], shows: ["s\(number)", "hot"])
        }
        return fixture
    }

    @Test(
        arguments: [(503, APNSReason.shutdown), (429, .tooManyRequests), (500, .none)]
            as [(UInt16, APNSReason)])
    func `each try that APNs answered is counted`(status: UInt16, reason: APNSReason) {
        let fixture = controls(1) { $0.attemptsMax = 2 }
        fixture.event("hot")
        for _ in 0..<2 {
            fixture.pass(.seconds(30))
            for push in fixture.take() { fixture.answer(push, status, reason) }
        }
        fixture.pass(.seconds(1))
        let letters = fixture.takeRecords()
        #expect(letters.map(\.topic) == [.deadLetters])
        #expect(letters.first?.value.contains(#""attempts":2"#) == true)
        #expect(letters.first?.value.contains(#""status""#) == false, "no answer ended it")
        let counters = fixture.counters
        #expect(
            counters.retried + counters.resent + counters.cooledDown == 1,
            "the last try is not followed by another")
    }

    @Test func `the only try allowed may be repeated if it was not processed`() {
        let fixture = controls(1) { $0.attemptsMax = 1 }
        fixture.event("hot")
        fixture.end(fixture.take()[0], .unprocessed)
        fixture.pass(.seconds(30))
        #expect(fixture.deliverAll().count == 1)
    }

    @Test func `a push that is given up does not take its follow-up with it`() {
        let fixture = controls(1) { $0.attemptsMax = 1 }
        fixture.event("hot")
        let push = fixture.take()[0]
        fixture.event("hot")
        fixture.answer(push, 500, .internalServerError)
        #expect(fixture.deliverAll().count == 1)
    }

    @Test func `the first delay is within a second, the seventh is not`() {
        let fixture = controls(64) { settings in
            settings.registrationGrace = .zero
            settings.coolDownBackoff = Backoff(least: .seconds(1), most: .seconds(900))
        }
        fixture.event("hot")
        for round in 0..<7 {
            let pushes = fixture.take()
            #expect(pushes.count == 64, "round \(round)")
            for push in pushes {
                // No fault of the pool's, or it would park.
                fixture.answer(push, 429, .tooManyRequests)
            }
            if round == 0 {
                fixture.pass(.seconds(1))
            } else if round < 6 {
                fixture.pass(.seconds(64))
            }
        }
        // A tenth of its ceiling is 6.4 s.
        fixture.pass(.seconds(6))
        #expect(fixture.take().isEmpty)
    }

    @Test func `a dead letter says when its push was first tried, not last`() throws {
        let fixture = controls(1)
        fixture.event("hot")
        let began = fixture.now.wall.rfc3339
        fixture.answer(fixture.take()[0], 503, .serviceUnavailable)
        fixture.pass(.seconds(2))
        fixture.answer(fixture.take()[0], 400, .badMessageId)
        fixture.pass(.seconds(1))
        let letter = try #require(fixture.takeRecords().first).value
        #expect(letter.contains(#""firstAt":"\#(began)""#))
    }

    @Test func `delivery is told until when a push is worth sending`() {
        let fixture = controls(1)
        fixture.event("hot", #"{"v":1,"ttlSeconds":30}"#)
        let slot = fixture.take()[0].slot
        let expiresAt = fixture.slab.push(slot).pointee.expiresAt
        #expect(expiresAt == fixture.now.monotonic + .seconds(30))
    }

    @Test func `pushes of one event have an apns-id each`() {
        let fixture = controls(8)
        fixture.event("hot")
        #expect(Set(fixture.take().map(\.apnsID)).count == 8)
    }

    // MARK: Breakers

    @Test(arguments: [APNSReason.badTopic, .topicDisallowed])
    func `a route opens with its probe, slowly`(reason: APNSReason) {
        let fixture = controls(40)
        fixture.event("s0")
        fixture.answer(fixture.take()[0], 400, reason)
        fixture.event("hot")
        fixture.pass(.seconds(2))
        let probe = fixture.take()
        #expect(probe.count == 1)
        fixture.answer(probe[0], 200)
        #expect(fixture.take().count == 8)
    }

    @Test func `a fault of Apple's does not open a route`() {
        let fixture = controls(40)
        fixture.event("s0")
        fixture.answer(fixture.take()[0], 400, .badTopic)
        fixture.event("hot")
        fixture.pass(.seconds(2))
        fixture.answer(fixture.take()[0], 503, .serviceUnavailable)
        #expect(fixture.take().count == 1, "another probe")
    }

    @Test(arguments: [true, false])
    func `a route's probe that fails is not an attempt`(isAnswered: Bool) {
        let fixture = controls(1) { $0.attemptsMax = 1 }
        fixture.event("hot")
        fixture.answer(fixture.take()[0], 400, .badTopic)
        fixture.pass(.seconds(2))
        let probe = fixture.take()[0]
        if isAnswered {
            fixture.answer(probe, 503, .serviceUnavailable)
        } else {
            fixture.end(probe, .unknown)
        }
        fixture.pass(.seconds(30))
        #expect(fixture.takeRecords().isEmpty)
        #expect(fixture.deliverAll().count == 1)
    }

    @Test func `what a breaker sends back has all its attempts left`() {
        let fixture = controls(1) { $0.attemptsMax = 3 }
        fixture.event("hot")
        for _ in 0..<5 {
            fixture.pass(.seconds(1000))
            fixture.answer(fixture.take()[0], 403, .invalidProviderToken)
        }
        fixture.pass(.seconds(1000))
        fixture.answer(fixture.take()[0], 429, .tooManyRequests)
        fixture.pass(.seconds(1000))
        #expect(fixture.deliverAll().count == 1)
    }

    @Test func `a pool that was parked is not parked again by what was before`() {
        let fixture = controls(60) { $0.registrationGrace = .zero }
        fixture.event("hot")
        for push in fixture.take(50) { fixture.answer(push, 503, .serviceUnavailable) }
        #expect(fixture.counters.poolBreakersOpened == 1)
        fixture.pass(.seconds(2))
        fixture.answer(fixture.take()[0], 200)
        let next = fixture.take()
        fixture.answer(next[0], 400, .badMessageId)
        #expect(fixture.counters.poolBreakersOpened == 1)
        #expect(!fixture.take().isEmpty)
    }
}
