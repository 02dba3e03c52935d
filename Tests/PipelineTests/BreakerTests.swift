// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import Pipeline
internal import PushModel
internal import RecordFormats
internal import Testing

@Suite struct `Breakers in the pipeline` {
    /// Ten controls, each with an event waiting.
    private func tenQueued(
        adjust: (inout PipelineSettings) -> Void = { _ in }
    ) -> PipelineFixture {
        let fixture = PipelineFixture(adjust: adjust)
        for number in 0..<10 as Range<UInt8> {
            fixture.registerControl("I\(number)", [number + 1], shows: ["s\(number)"])
            fixture.event("s\(number)")
        }
        return fixture
    }

    @Test func `a probe goes although what stood before it has expired`() {
        let fixture = PipelineFixture()
        for (number, subject) in ["lamp", "door", "hall"].enumerated() {
            fixture.registerControl("I\(number)", [UInt8(number)], shows: [subject])
        }
        fixture.event("lamp")
        fixture.answer(fixture.take()[0], 403, .invalidProviderToken)
        fixture.event("door", #"{"ttlSeconds":1}"#)
        fixture.event("hall")
        for _ in 0..<20 where fixture.counters.expired == 0 {
            fixture.pass(.seconds(1))
            let probe = fixture.take()
            if probe.isEmpty { #expect(fixture.counters.expired == 0, "waits for the breaker") }
            for push in probe { fixture.answer(push, 403, .invalidProviderToken) }
        }
        #expect(fixture.counters.expired == 1)
    }

    @Test func `faults of one connection open no breaker, and those of a probe do`() {
        let fixture = PipelineFixture()
        for number in 0..<60 as Range<UInt8> {
            fixture.registerControl("I\(number)", [number], shows: ["s"])
        }
        fixture.event("s")
        for push in fixture.take() {
            var outcome = PushOutcome(
                slot: push.slot, kind: .answered, status: 500, reason: .internalServerError)
            outcome.isOutlier = true
            fixture.outcome(outcome)
        }
        #expect(fixture.counters.poolBreakersOpened == 0 && fixture.counters.retried == 60)
        fixture.pass(.seconds(2))
        for push in fixture.take() { fixture.answer(push, 500, .internalServerError) }
        #expect(fixture.counters.poolBreakersOpened == 1)
        fixture.pass(.seconds(900))
        let probe = fixture.take()
        #expect(probe.count == 1)
        var outcome = PushOutcome(slot: probe[0].slot, kind: .unknown)
        outcome.isOutlier = true
        fixture.outcome(outcome)
        #expect(fixture.take().isEmpty)
    }

    @Test func `a batch of one is filled although the first has expired`() {
        let fixture = PipelineFixture()
        fixture.registerControl("I", [1], shows: ["door"])
        fixture.registerControl("J", [2], shows: ["hall"])
        fixture.event("door", #"{"ttlSeconds":1}"#)
        fixture.event("hall")
        fixture.pass(.seconds(2))
        #expect(fixture.take(1).map(\.token) == [[2]])
        #expect(fixture.counters.expired == 1)
    }

    @Test func `the first InvalidProviderToken stops the pool, then one probe goes at a time`() {
        let fixture = tenQueued()
        fixture.answer(fixture.take(1)[0], 403, .invalidProviderToken)
        #expect(fixture.take().isEmpty)
        #expect(fixture.counters.poolBreakersOpened == 1)
        var probes: [[UInt8]] = []
        for _ in 0..<4 {
            fixture.pass(.seconds(900))
            let probe = fixture.take()
            #expect(probe.count == 1)
            guard probe.count == 1 else { return }
            #expect(fixture.take().isEmpty, "one probe at a time")
            probes.append(probe[0].token)
            fixture.answer(probe[0], 403, .invalidProviderToken)
            #expect(fixture.take().isEmpty)
        }
        #expect(Set(probes).count == 4, "a different push each time")
        #expect(!probes.contains([1]))
    }

    @Test func `an accepted probe opens the pool with a slow start`() {
        let fixture = tenQueued()
        fixture.answer(fixture.take(1)[0], 403, .invalidProviderToken)
        fixture.pass(.seconds(1))
        fixture.answer(fixture.take()[0], 200)
        #expect(fixture.take().count == 8)
    }

    @Test func `nothing ends and no attempt is spent while a credential is refused`() {
        let fixture = tenQueued { $0.attemptsMax = 2 }
        for _ in 0..<20 {
            fixture.pass(.seconds(900))
            for push in fixture.take() { fixture.answer(push, 403, .invalidProviderToken) }
        }
        #expect(fixture.takeRecords().isEmpty)
        #expect(fixture.committableOffset == 0)
        fixture.pass(.seconds(900))
        #expect(fixture.deliverAll().count == 10)
    }

    /// After how many seconds each of so many probes goes, of which all are answered so.
    private static func waits(
        _ count: Int, on fixture: PipelineFixture, _ status: UInt16, _ reason: APNSReason
    ) -> [Int] {
        (0..<count).map { _ in
            var seconds = 0
            var probe: [SentPush] = []
            while probe.isEmpty, seconds < 1000 {
                fixture.pass(.seconds(1))
                seconds += 1
                probe = fixture.take()
            }
            #expect(probe.count == 1)
            for push in probe { fixture.answer(push, status, reason) }
            return seconds
        }
    }

    /// What Apple measures in tens of minutes.
    private static let slowlyCured: [(UInt16, APNSReason)] = [
        (429, .tooManyProviderTokenUpdates), (403, .expiredProviderToken),
        (403, .unrelatedKeyIdInToken),
    ]

    @Test(arguments: slowlyCured)
    func `a refused provider token opens the breaker for 20 s, and for longer each time`(
        status: UInt16, reason: APNSReason
    ) {
        let fixture = tenQueued {
            $0.attemptsMax = 2
            $0.breakerBackoff = Backoff(least: .milliseconds(100), most: .seconds(900))
        }
        for push in fixture.take(5) { fixture.answer(push, status, reason) }
        let waits = Self.waits(8, on: fixture, status, reason)
        #expect(waits.allSatisfy { (20...901).contains($0) }, "\(waits)")
        #expect(waits.reduce(0, +) > 8 * 60, "\(waits)")
        #expect(fixture.counters.poolBreakersOpened == 1)
        #expect(fixture.takeRecords().isEmpty, "no dead letter")
        fixture.pass(.seconds(901))
        #expect(fixture.deliverAll().count == 10)
    }

    /// An operator mends it, at any time.
    @Test(
        arguments: [
            (403, .invalidProviderToken), (403, .badEnvironmentKeyIdInToken),
            (400, .topicDisallowed),
        ] as [(UInt16, APNSReason)])
    func `what was mended is noticed within 90 s, however long it was refused`(
        status: UInt16, reason: APNSReason
    ) {
        let fixture = tenQueued {
            $0.breakerBackoff = Backoff(least: .milliseconds(100), most: .seconds(900))
        }
        for push in fixture.take() { fixture.answer(push, status, reason) }
        let waits = Self.waits(20, on: fixture, status, reason)
        #expect(waits.allSatisfy { $0 <= 90 }, "\(waits)")
        // Not much more often than is of use.
        #expect(waits.suffix(8).reduce(0, +) > 8 * 20, "\(waits)")
    }

    @Test func `the breaker keeps the word of a refusal that is new`() throws {
        let fixture = tenQueued()
        func words() -> [String?] {
            fixture.pipeline.trippedBreakers(now: fixture.now).map(\.unknownReason)
        }
        let pushes = fixture.take(2)
        fixture.slab.keepReason("KeyTooNew", of: pushes[0].slot)
        fixture.answer(pushes[0], 403, .unknown)
        #expect(words() == ["KeyTooNew"])
        fixture.answer(pushes[1], 403, .invalidProviderToken)
        #expect(words() == [nil])
    }

    @Test func `a new key is tried at once, however long the old one has been refused`() {
        let fixture = tenQueued()
        for _ in 0..<20 {
            fixture.pass(.seconds(901))
            for push in fixture.take() { fixture.answer(push, 403, .invalidProviderToken) }
        }
        fixture.pass(.seconds(1))
        #expect(fixture.take().isEmpty)
        fixture.pipeline.keyChanged(of: PoolID(rawValue: 0), now: fixture.now)
        #expect(fixture.take().count == 1)
    }

    @Test func `a probe that fails with a 5xx is not an attempt`() {
        let fixture = PipelineFixture { $0.attemptsMax = 3 }
        fixture.registerControl("A", [1], shows: ["door"])
        fixture.event("door")
        fixture.answer(fixture.take()[0], 403, .invalidProviderToken)
        for _ in 0..<10 {
            fixture.pass(.seconds(1800))
            for push in fixture.take() { fixture.answer(push, 503, .serviceUnavailable) }
        }
        fixture.pass(.seconds(1800))
        #expect(fixture.takeRecords().isEmpty)
        #expect(fixture.deliverAll().count == 1)
    }

    @Test(
        arguments: [
            (APNSReason.badTopic, 400), (.topicDisallowed, 400), (.invalidPushType, 400),
        ] as [(APNSReason, UInt16)])
    func `a refused topic stops its route alone, and is asked again later`(
        reason: APNSReason, status: UInt16
    ) {
        let fixture = PipelineFixture()
        fixture.registerControl("A", [1], shows: ["door"])
        fixture.register("B", [.device([2], shows: ["door"], hearsChanges: true)])
        fixture.event("door")
        let sent = fixture.take()
        #expect(sent.count == 2)
        for push in sent {
            if push.token == [1] {
                fixture.answer(push, status, reason)
            } else {
                fixture.answer(push, 200)
            }
        }
        fixture.event("door")
        #expect(fixture.deliverAll().map(\.token) == [[2]])
        fixture.pass(.seconds(1))
        #expect(fixture.deliverAll().map(\.token) == [[1]])
        fixture.event("door")
        #expect(fixture.deliverAll().count == 2)
    }

    @Test func `when half of fifty answers are 5xx the pool parks`() {
        // So many that none is deferred while the breaker is open.
        let fixture = PipelineFixture { $0.slots = 1024 }
        for number in 0..<60 as Range<UInt8> {
            fixture.registerControl("I\(number)", [number], shows: ["s\(number)"])
            fixture.event("s\(number)")
        }
        let sent = fixture.take(50)
        for (number, push) in sent.enumerated() {
            if number % 2 == 0 {
                fixture.answer(push, 200)
            } else {
                fixture.answer(push, 500, .internalServerError)
            }
        }
        #expect(fixture.counters.poolBreakersOpened == 1)
        #expect(fixture.take().isEmpty)
        fixture.pass(.seconds(1))
        #expect(fixture.take().count == 1)
    }

    @Test func `ten seconds of silence park the pool`() {
        let fixture = tenQueued()
        let sent = fixture.take(2)
        fixture.pass(.seconds(1))
        fixture.pass(.seconds(9))
        #expect(fixture.counters.poolBreakersOpened == 0)
        fixture.pass(.seconds(1))
        #expect(fixture.counters.poolBreakersOpened == 1)
        #expect(fixture.take().isEmpty)
        fixture.answer(sent[0], 200)
        #expect(fixture.take().count > 0, "an answer un-parks it")
    }

    /// As after a key that was refused for a moment, if APNs then reads requests and forgets them.
    @Test func `what fills a slow start and is never answered holds the pool until it times out`() {
        let fixture = PipelineFixture { $0.holdMax = .seconds(600) }
        for number in 0..<20 as Range<UInt8> {
            fixture.registerControl("I\(number)", [number], shows: ["all"])
        }
        fixture.event("all")
        fixture.answer(fixture.take(1)[0], 403, .invalidProviderToken)
        fixture.pass(.seconds(60))
        for probe in fixture.take() { fixture.answer(probe, 200) }
        let forgotten = fixture.take()
        #expect(forgotten.count == 8)
        for _ in 0..<14 {
            fixture.pass(.seconds(1))
            #expect(fixture.take().isEmpty)
        }
        #expect(fixture.counters.poolBreakersOpened == 2)
        // Delivery waits for an answer for fifteen seconds.
        for push in forgotten { fixture.end(push, .unknown) }
        var probes: [SentPush] = []
        for _ in 0..<60 where probes.isEmpty {
            fixture.pass(.seconds(1))
            probes = fixture.take()
        }
        #expect(probes.count == 1)
        for probe in probes { fixture.answer(probe, 200) }
        var sent = probes
        for _ in 0..<300 {
            fixture.pass(.seconds(1))
            sent += fixture.deliverAll()
        }
        let tokens = Set(sent.map(\.token))
        #expect(tokens.isSuperset(of: forgotten.map(\.token)), "\(tokens.count): \(fixture.load)")
    }

    @Test func `one credential's breaker leaves the other environment alone`() {
        let fixture = PipelineFixture()
        fixture.registerControl("A", [1], shows: ["door"])
        fixture.registerControl("B", [2], shows: ["door"], environment: .development)
        fixture.event("door")
        fixture.answer(fixture.take(pool: 0)[0], 403, .badEnvironmentKeyIdInToken)
        fixture.event("door")
        #expect(fixture.take(pool: 0).isEmpty)
        #expect(fixture.deliverAll(pool: 1).map(\.token) == [[2]])
    }
}
