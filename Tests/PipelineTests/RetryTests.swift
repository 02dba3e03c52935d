// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import Pipeline
internal import PushModel
internal import RecordFormats
internal import Testing

@Suite struct `Retries in the pipeline` {
    let token: [UInt8] = [1, 2, 3]

    private func oneInFlight(
        adjust: (inout PipelineSettings) -> Void = { _ in }
    ) -> (PipelineFixture, SentPush) {
        let fixture = PipelineFixture(adjust: adjust)
        fixture.registerControl("A", token, shows: ["door"])
        fixture.event("door")
        return (fixture, fixture.take()[0])
    }

    @Test(
        arguments: [
            (500, APNSReason.internalServerError, 100, 1000), (503, .serviceUnavailable, 100, 1000),
            (599, .none, 100, 1000), (429, .tooManyRequests, 1000, 10_000),
            (503, .shutdown, 5, 50), (400, .idleTimeout, 5, 50),
        ] as [(UInt16, APNSReason, Int, Int)])
    func `an answer that blames the moment is retried after its own delay`(
        status: UInt16, reason: APNSReason, least: Int, most: Int
    ) {
        let (fixture, push) = oneInFlight()
        fixture.answer(push, status, reason)
        fixture.pass(.milliseconds(least) - .nanoseconds(1))
        #expect(fixture.take().isEmpty)
        fixture.pass(.milliseconds(most - least) + .nanoseconds(1))
        let again = fixture.take()
        #expect(again.map(\.apnsID) == [push.apnsID])
        fixture.answer(again[0], 200)
        fixture.pass(.seconds(3))
        #expect(fixture.committableOffset == 1)
    }

    @Test(
        arguments: AnswerTable.rows.filter {
            if case .reject = $0.push { true } else { false }
        }.map { ($0.status, $0.reason) } + [(400, .none), (404, .none), (400, .unknown)])
    func `an answer that blames the push ends it in a dead letter`(
        status: UInt16, reason: APNSReason
    ) {
        let (fixture, push) = oneInFlight()
        fixture.answer(push, status, reason)
        fixture.pass(.seconds(1))
        #expect(fixture.take().isEmpty)
        let records = fixture.takeRecords()
        #expect(records.map(\.topic) == [.deadLetters])
        #expect(records.first?.key == "door")
        #expect(records.first?.value.contains(#""status":\#(status)"#) == true)
        fixture.pass(.seconds(3))
        #expect(fixture.committableOffset == 0, "held until the letter is acknowledged")
        fixture.acknowledge(records)
        #expect(fixture.committableOffset == 1)
    }

    @Test func `what was provably not processed costs no attempt`() {
        let (fixture, first) = oneInFlight { $0.attemptsMax = 2 }
        var push = first
        for _ in 0..<20 {
            fixture.end(push, .unprocessed)
            fixture.pass(.seconds(30))
            let again = fixture.take()
            #expect(again.count == 1)
            guard again.count == 1 else { return }
            push = again[0]
        }
        fixture.answer(push, 200)
        #expect(fixture.isIdle)
    }

    @Test func `a silent connection costs an attempt, and the attempts are bounded`() {
        let (fixture, first) = oneInFlight { $0.attemptsMax = 3 }
        fixture.end(first, .unknown)
        for _ in 0..<2 {
            fixture.pass(.seconds(1))
            let again = fixture.take()
            #expect(again.count == 1)
            guard again.count == 1 else { return }
            fixture.end(again[0], .unknown)
        }
        fixture.pass(.seconds(1000))
        #expect(fixture.take().isEmpty)
        let records = fixture.takeRecords()
        #expect(records.map(\.topic) == [.deadLetters])
        #expect(records.first?.value.contains(#""reason":"AttemptsExhausted""#) == true)
    }

    /// With one token no circuit breaker opens: the fault may be the token's.
    @Test func `an outage spends no last attempt, however few pushes there are`() throws {
        let (fixture, first) = oneInFlight { $0.attemptsMax = 6 }
        fixture.registerControl("B", [9], shows: ["lamp"])
        var push = first
        for _ in 0..<30 {
            fixture.answer(push, 503, .serviceUnavailable)
            fixture.pass(.seconds(300))
            fixture.acknowledge(fixture.takeRecords())
            push = try #require(fixture.take().first)
        }
        #expect(fixture.ended.isEmpty)
        // Another's acceptance shows that it is the token's own.
        fixture.event("lamp")
        let other = try #require(fixture.take().first)
        fixture.answer(other, 200)
        fixture.answer(push, 503, .serviceUnavailable)
        fixture.pass(.seconds(1))
        #expect(fixture.ended.keys.contains { $0.contains("AttemptsExhausted") })
    }

    @Test func `an event that joins a push at rest does not send it sooner`() {
        let (fixture, push) = oneInFlight()
        fixture.answer(push, 503, .serviceUnavailable)
        fixture.event("door")
        #expect(fixture.take().isEmpty)
        fixture.pass(.seconds(1))
        #expect(fixture.deliverAll().count == 1)
    }

    @Test func `a push that has expired is never sent`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"])
        fixture.event("door", #"{"v":1,"ttlSeconds":10}"#)
        fixture.pass(.seconds(10))
        #expect(fixture.take().isEmpty)
        #expect(fixture.counters.expired == 1)
        #expect(fixture.committableOffset == 1)
    }

    @Test func `expiry is looked at before each try`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"])
        fixture.event("door", #"{"v":1,"ttlSeconds":5}"#)
        for _ in 0..<5 {
            guard let push = fixture.take().first else { break }
            fixture.answer(push, 500, .internalServerError)
            fixture.pass(.seconds(4))
        }
        #expect(fixture.counters.handedOver == 2)
        #expect(fixture.counters.expired == 1)
    }

    @Test func `an event that has expired when it is read asks for nothing`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"])
        fixture.event("door", #"{"v":1,"expiresAt":"2020-01-01T00:00:00Z"}"#)
        #expect(fixture.take().isEmpty)
        #expect(fixture.counters.eventsExpired == 1)
    }

    @Test func `a joined push takes the latest expiry`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"])
        fixture.event("door", #"{"v":1,"ttlSeconds":10}"#)
        fixture.event("door", #"{"v":1,"ttlSeconds":100}"#)
        fixture.event("door", #"{"v":1,"ttlSeconds":20}"#)
        fixture.pass(.seconds(99))
        #expect(fixture.deliverAll().count == 1)
    }

    @Test func `an event that joins a push in flight outlives that push's own expiry`() {
        let fixture = PipelineFixture { $0.immediateFanOutMax = 1 }
        fixture.registerControl("A", token, shows: ["own", "hot"])
        fixture.registerControl("B", [9], shows: ["hot"])
        fixture.event("own", #"{"v":1,"ttlSeconds":10}"#)
        fixture.event("hot")
        let push = fixture.take()[0]
        fixture.pass(.seconds(11))
        fixture.end(push, .expired)
        #expect(fixture.deliverAll().map(\.token).contains(token))
    }

    @Test func `a push whose token is gone ends, and one in flight is not sent again`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"])
        fixture.registerControl("B", [9], shows: ["lamp"])
        fixture.event("door")
        let push = fixture.take()[0]
        fixture.event("door")
        fixture.event("lamp")
        fixture.unregister("A")
        fixture.unregister("B")
        #expect(fixture.take().isEmpty)
        fixture.answer(push, 503, .serviceUnavailable)
        fixture.pass(.seconds(900))
        #expect(fixture.take().isEmpty)
        #expect(fixture.isIdle)
        #expect(fixture.committableOffset == 3)
    }

    @Test func `an orphaned push disturbs nothing of the token's next life`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", token, shows: ["door"])
        fixture.event("door")
        let old = fixture.take()[0]
        fixture.unregister("A")
        fixture.registerControl("A", token, shows: ["door"])
        fixture.pass(.seconds(5))
        fixture.event("door")
        let new = fixture.take()
        fixture.answer(old, 410, .unregistered)
        #expect(fixture.takeRecords().isEmpty)
        for push in new { fixture.answer(push, 200) }
        fixture.event("door")
        #expect(fixture.deliverAll().count == 1)
    }

    @Test func `retry-after lengthens a back-off and shortens none`() {
        let fixture = PipelineFixture { settings in
            settings.retryBackoff = Backoff(least: .seconds(10), most: .seconds(10))
        }
        fixture.registerControl("A", [1], shows: ["door"])
        for (asked, early, late) in [(30, 29, 1), (0, 0, 10)] as [(UInt16, Int64, Int64)] {
            fixture.event("door")
            fixture.answer(
                fixture.take()[0], 503, .serviceUnavailable, retryAfterSeconds: asked)
            fixture.pass(.seconds(early))
            #expect(fixture.take().isEmpty)
            fixture.pass(.seconds(late))
            #expect(fixture.deliverAll().count == 1)
        }
    }
}
