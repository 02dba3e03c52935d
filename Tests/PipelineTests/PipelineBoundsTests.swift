// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// Each bound of the pipeline keeps out what would pass it, and no more.
@Suite struct `Bounds of the pipeline` {
    private func fixture(
        controls: Int = 1, adjust: (inout PipelineSettings) -> Void = { _ in }
    ) -> PipelineFixture {
        let fixture = PipelineFixture { settings in
            settings.registrationGrace = .zero
            adjust(&settings)
        }
        for number in 0..<controls {
            fixture.registerControl("I\(number)", [UInt8(number)], shows: ["door"])
        }
        return fixture
    }

    private func hasRoom(_ fixture: PipelineFixture) -> [Bool] {
        [fixture.pipeline.hasRoomForEvents, fixture.pipeline.roomForRegistrations > 0]
    }

    @Test func `events wait while as many are fanned out as may be`() {
        let fixture = fixture(controls: 3) { settings in
            settings.fanOutsMax = 1
            settings.immediateFanOutMax = 2
        }
        #expect(hasRoom(fixture) == [true, true] && fixture.roomForEvents == 1)
        fixture.event("door")
        #expect(hasRoom(fixture) == [false, true] && fixture.roomForEvents == 0)
        #expect(!fixture.isIdle)
    }

    @Test func `events wait for letters that Kafka takes, and for none that it does not`() {
        let fixture = fixture {
            $0.deadLetterBytesMax = 4096
            $0.deadLetterEventBytesMax = 0
            $0.immediateFanOutMax = 1
        }
        #expect(fixture.roomForEvents == 2048 / TicketTable.overhead)
        fixture.event("door", "{")
        fixture.event("door", "{")
        fixture.pass(.milliseconds(100))
        #expect(hasRoom(fixture) == [false, true], "registrations write no letters")
        fixture.pass(.milliseconds(500))
        #expect(hasRoom(fixture) == [true, true] && fixture.roomForEvents > 4)
        fixture.acknowledge(fixture.takeRecords())
        fixture.pass(.zero)
        #expect(hasRoom(fixture)[1] && fixture.roomForEvents == 2048 / TicketTable.overhead)
    }

    @Test func `a failing token counts from its failure on, not from its letter on`() {
        let fixture = fixture()
        fixture.event("door")
        fixture.answer(fixture.take()[0], 400, .badMessageId)
        let letters = fixture.pipeline.waiting(for: .deadLetters)
        #expect(letters.records == 1 && letters.bytes > 0 && !fixture.isIdle)
        fixture.pass(.seconds(1))
        #expect(fixture.load.unacknowledged == 1 && !fixture.isIdle)
        fixture.acknowledge(fixture.takeRecords())
        let left = fixture.pipeline.waiting(for: .deadLetters)
        #expect(left.records == 0 && left.bytes == 0 && fixture.isIdle)
    }

    @Test func `nothing is deferred while deferrals of as many bytes as may wait for Kafka`() {
        let fixture = fixture(controls: 3) {
            $0.holdMax = .seconds(10)
            $0.deferralBytesMax = 1
        }
        fixture.event("door")
        for _ in 0..<3 {
            fixture.pass(.seconds(9))
            let records = fixture.takeRecords()
            #expect(records.map(\.topic) == [.deferred])
            fixture.pass(.seconds(1))
            #expect(fixture.takeRecords().isEmpty)
            fixture.acknowledge(records)
        }
        #expect(fixture.isIdle)
    }

    @Test func `events wait while payloads take up their share of memory`() {
        let fixture = fixture { $0.payloadBytesMax = 10 }
        fixture.register("D", [.device([9], shows: ["score"])])
        fixture.event("score", EventValue.alert("a"))
        #expect(hasRoom(fixture) == [false, true])
        #expect(fixture.deliverAll().count == 1)
        fixture.pass(.seconds(1))
        #expect(hasRoom(fixture) == [true, true] && fixture.load.payloadBytes == 0)
    }

    @Test func `registrations come one by one while half of the slots are taken`() {
        let fixture = fixture(controls: 20) { $0.slots = 32 }
        #expect(fixture.roomForRegistrations == .max)
        fixture.event("door")
        #expect(fixture.roomForRegistrations == 1)
    }

    private func write(
        _ deferred: DeferredFixture, _ fixture: PipelineFixture, _ key: String, _ word: String,
        _ more: String = "", after delay: Duration = .zero
    ) {
        let (from, to) = (fixture.now.wall + delay, fixture.now.wall + .seconds(7200))
        deferred.write(
            DeferredFixture.Record(
                key: "production/" + key,
                value: #"{"v":1,"notBefore":"\#(from.rfc3339)","expiresAt":"\#(to.rfc3339)""#
                    + #","class":"\#(word)","attempts":0\#(more)}"#))
        deferred.read()
    }

    @Test(arguments: [true, false])
    func `an open breaker has four deferred pushes to probe with`(isRoute: Bool) {
        let fixture = fixture(controls: 30) {
            $0.breakerBackoff = Backoff(least: .seconds(60), most: .seconds(60))
        }
        fixture.registerControl("S", [99], shows: ["single"])
        fixture.event("single")
        let (status, reason) =
            isRoute ? (400, APNSReason.badTopic) : (403, .invalidProviderToken)
        fixture.answer(fixture.take()[0], UInt16(status), reason)
        let deferred = DeferredFixture(fixture)
        deferred.assign()
        for number in 10..<30 {
            let token = String(number, radix: 16)
            let digits = String(repeating: "0", count: 2 - token.count) + token
            write(deferred, fixture, "com.example.Home.push-type.controls/\(digits)", "control")
        }
        fixture.pass(.milliseconds(100))
        #expect(fixture.load.queued == 1, "nothing goes before the probe's time")
        fixture.pass(.seconds(61))
        #expect(fixture.take().count == 1)
        fixture.pass(.milliseconds(100))
        #expect(fixture.load.queued == 4)
    }

    // MARK: The next thing to do

    @Test func `the owner is woken for a push that rests, and for the probe of an open breaker`() {
        let cases: [(UInt16, APNSReason)] = [
            (503, .serviceUnavailable), (400, .badTopic), (403, .invalidProviderToken),
        ]
        for (status, reason) in cases {
            let fixture = fixture()
            let idle = fixture.nextDue
            #expect(idle == .distantFuture)
            fixture.event("door")
            fixture.answer(fixture.take()[0], status, reason)
            let due = fixture.nextDue
            #expect(due > fixture.now.monotonic && due <= fixture.now.monotonic + .seconds(1))
            fixture.pass(.seconds(2))
            let over = fixture.nextDue
            #expect(over == .distantFuture, "delivery's room is an event")
        }
    }

    @Test func `the owner is woken for a letter and for a deferred push`() {
        let fixture = fixture()
        fixture.event("door")
        fixture.answer(fixture.take()[0], 400, .badMessageId)
        var due = fixture.nextDue
        #expect(due == fixture.now.monotonic + .milliseconds(200))
        fixture.pass(.milliseconds(200))
        #expect(fixture.takeRecords().count == 1)
        let deferred = DeferredFixture(fixture)
        deferred.assign()
        write(
            deferred, fixture, "com.example.Home.push-type.controls/01", "control",
            after: .seconds(30))
        due = fixture.nextDue
        #expect(due == fixture.now.monotonic + .seconds(30))
    }
}

extension PipelineFixture {
    fileprivate var roomForEvents: Int { pipeline.roomForEvents }
    fileprivate var roomForRegistrations: Int { pipeline.roomForRegistrations }
    fileprivate var nextDue: MonotonicTime { pipeline.nextDue(now: now) }
}
