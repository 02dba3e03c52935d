// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// What operators pause, drop and limit.
@Suite struct `Restrictions` {
    private static let home = Restriction.Scope.pushes(app: PipelineFixture.app, tokenClass: nil)
    private static let controls = Restriction.Scope.pushes(app: nil, tokenClass: .control)
    private static let ofHome = Restriction.Scope.pushes(
        app: PipelineFixture.app, tokenClass: .control)
    private static let topic = Restriction.Scope.topic("events-0")

    private func fixture(
        controls: Int = 1, adjust: (inout PipelineSettings) -> Void = { _ in }
    ) -> PipelineFixture {
        let fixture = PipelineFixture { settings in
            settings.registrationGrace = .zero
            adjust(&settings)
        }
        for number in 0..<controls {
            fixture.registerControl("I\(number)", [UInt8(number)], shows: ["s\(number)", "all"])
        }
        fixture.register("W", [.widget([200], shows: ["all"])])
        return fixture
    }

    // MARK: Pause

    /// An app is paused for so long that its push waits in `deferred`, which has been read.
    private func pausedUntilDeferred() -> (PipelineFixture, DeferredFixture) {
        let fixture = fixture { $0.holdMax = .seconds(10) }
        let deferred = DeferredFixture(fixture)
        deferred.assign()
        fixture.restrict(Self.home, .pause)
        fixture.event("s0")
        fixture.pass(.seconds(10))
        fixture.pass(.seconds(1))
        #expect(deferred.produce().deferred.count == 1)
        deferred.read()
        return (fixture, deferred)
    }

    @Test(arguments: [home, controls, ofHome])
    func `a paused push waits, and goes when it is resumed`(scope: Restriction.Scope) {
        let fixture = fixture()
        fixture.restrict(scope, .pause)
        fixture.event("s0")
        fixture.pass(.seconds(60))
        #expect(fixture.take().isEmpty)
        fixture.restrict(scope, nil)
        #expect(fixture.deliverAll().count == 1)
    }

    @Test func `a class is paused and the others go on`() {
        let fixture = fixture()
        fixture.restrict(Self.controls, .pause)
        fixture.event("all")
        #expect(fixture.deliverAll().map(\.token) == [[200]])
    }

    @Test func `what is paused for long is deferred, and its offset goes on`() {
        let (fixture, _) = pausedUntilDeferred()
        fixture.pass(.seconds(60))
        #expect(fixture.take().isEmpty && fixture.load.deferred == 1)
        #expect(fixture.committableOffset == 1)
        fixture.restrict(Self.home, nil)
        fixture.pass(.milliseconds(10))
        #expect(fixture.deliverAll().count == 1)
    }

    @Test func `a pause ends by itself at its time`() {
        let fixture = fixture()
        fixture.restrict(Self.home, .pause, for: .seconds(30))
        fixture.event("s0")
        fixture.pass(.seconds(29))
        #expect(fixture.take().isEmpty && fixture.pipeline.restrictions.inForce.count == 1)
        fixture.pass(.seconds(2))
        #expect(fixture.deliverAll().count == 1 && fixture.pipeline.restrictions.inForce.isEmpty)
    }

    @Test func `a paused topic is named to whoever reads it`() {
        let fixture = fixture()
        fixture.restrict(Self.topic, .pause)
        #expect(fixture.pipeline.restrictions.pausedTopics == [true])
        fixture.restrict(Self.topic, nil)
        #expect(fixture.pipeline.restrictions.pausedTopics == [false])
    }

    // MARK: Drop

    @Test func `a dropped push is counted, also one that waited`() {
        let fixture = fixture()
        fixture.event("s0")
        fixture.restrict(Self.home, .drop)
        fixture.event("all")
        #expect(fixture.deliverAll().isEmpty)
        #expect(
            fixture.ended == [
                "com.example.Home controls dropped": 1, "com.example.Home widgets dropped": 1,
            ])
        #expect(fixture.pipeline.isIdle && fixture.counters.dropped == 2)
    }

    @Test func `what waits in Kafka is dropped when its time comes, and is not sent later`() {
        let (fixture, deferred) = pausedUntilDeferred()
        fixture.restrict(Self.home, .drop)
        fixture.pass(.seconds(60))
        #expect(deferred.produce().deferred.map(\.value) == [nil], "a tombstone")
        deferred.read()
        fixture.restrict(Self.home, nil)
        fixture.pass(.seconds(60))
        #expect(fixture.take().isEmpty && fixture.counters.dropped == 1 && fixture.isIdle)
    }

    @Test func `what waits behind an open breaker is dropped, not deferred until after the drop`() {
        let fixture = fixture(controls: 2) { $0.holdMax = .seconds(10) }
        fixture.event("s0")
        fixture.answer(fixture.take()[0], 403, .invalidProviderToken)
        fixture.restrict(Self.home, .drop)
        fixture.event("s1")
        for _ in 0..<12 { fixture.pass(.seconds(1)) }
        #expect(fixture.counters.dropped == 2 && fixture.takeRecords().isEmpty)
        fixture.restrict(Self.home, nil)
        fixture.pass(.seconds(600))
        #expect(fixture.take().isEmpty && fixture.isIdle && fixture.committableOffset == 2)
    }

    @Test func `what would be tried again after the drop is dropped`() {
        let fixture = fixture { $0.holdMax = .seconds(10) }
        fixture.event("s0")
        let push = fixture.take()[0]
        fixture.restrict(Self.home, .drop)
        fixture.answer(push, 429, .tooManyRequests, retryAfterSeconds: 60)
        #expect(fixture.counters.dropped == 1 && fixture.isIdle)
    }

    @Test func `a follow-up that is dropped with its push is counted, too`() {
        let later = TopicBinding(decode: .key, delay: .seconds(60))
        let fixture = PipelineFixture(bindings: [.standard, later]) { settings in
            settings.registrationGrace = .zero
            settings.holdMax = .seconds(10)
        }
        fixture.registerControl("I", [1], shows: ["s"])
        fixture.event("s")
        fixture.answer(fixture.take()[0], 403, .invalidProviderToken)
        fixture.event("s", binding: 1)
        fixture.restrict(Self.home, .drop)
        for _ in 0..<12 { fixture.pass(.seconds(1)) }
        #expect(fixture.counters.dropped == 2 && fixture.isIdle)
    }

    @Test func `a paused app's failure costs an attempt as any other`() {
        let fixture = fixture { $0.attemptsMax = 1 }
        fixture.event("s0")
        let push = fixture.take()[0]
        fixture.restrict(Self.home, .pause)
        fixture.answer(push, 429, .tooManyRequests)
        #expect(fixture.counters.rejected == 1)
    }

    @Test func `a restriction that is over comes back with the clock`() {
        let fixture = fixture()
        fixture.restrict(Self.home, .pause, for: .seconds(60))
        fixture.now.wall = fixture.now.wall + .seconds(3600)
        fixture.pass(.seconds(1))
        #expect(fixture.pipeline.restrictions.inForce.isEmpty)
        fixture.now.wall = fixture.now.wall + .seconds(-3600)
        fixture.pass(.seconds(1))
        #expect(fixture.pipeline.restrictions.inForce[Self.home] != nil)
    }

    @Test func `of a pause and a drop the drop counts`() {
        let fixture = fixture()
        fixture.restrict(Self.home, .pause)
        fixture.restrict(Self.ofHome, .drop)
        fixture.event("s0")
        #expect(fixture.deliverAll().isEmpty && fixture.counters.dropped == 1)
    }

    @Test func `the events of a dropped topic make no pushes, and are counted`() {
        let fixture = fixture()
        fixture.restrict(Self.topic, .drop)
        fixture.event("s0")
        fixture.event("s0", "{")
        #expect(fixture.take().isEmpty && fixture.counters.eventsDropped == 2)
        #expect(fixture.takeRecords().isEmpty, "nor dead letters")
        fixture.restrict(Self.topic, nil)
        fixture.event("s0")
        #expect(fixture.deliverAll().count == 1)
    }

    @Test func `the events of a dropped subject make no pushes, nor for who registers next`() {
        let fixture = fixture(controls: 2) { $0.registrationGrace = .seconds(2) }
        fixture.restrict(.subject(Array("s0".utf8), app: PipelineFixture.app), .drop)
        fixture.event("s0")
        fixture.event("s1")
        fixture.registerControl("I9", [9], shows: ["s0"])
        fixture.pass(.milliseconds(10))
        #expect(fixture.deliverAll().map(\.token) == [[1]])
        #expect(fixture.counters.eventsDropped == 1)
    }

    @Test func `a drop of a subject is for who registers after it, too`() {
        let fixture = fixture { $0.registrationGrace = .seconds(60) }
        fixture.event("s0")
        #expect(fixture.deliverAll().count == 1)
        fixture.restrict(.subject(Array("s0".utf8), app: PipelineFixture.app), .drop)
        fixture.registerControl("I9", [9], shows: ["s0"])
        fixture.pass(.milliseconds(10))
        #expect(fixture.deliverAll().isEmpty)
    }

    @Test func `of an event of several subjects the dropped one is counted, and the rest goes on`()
        throws
    {
        var binding = TopicBinding(decode: .json, subject: try SubjectTemplate("{/a}"))
        binding.subjects = [try SubjectTemplate("{/b}")]
        let fixture = PipelineFixture(bindings: [binding]) { $0.registrationGrace = .zero }
        for number in 0..<2 as Range<UInt8> {
            fixture.registerControl("I\(number)", [number], shows: ["s\(number)"])
        }
        fixture.restrict(.subject(Array("s0".utf8), app: PipelineFixture.app), .drop)
        fixture.event(nil, #"{"a":"s0","b":"s1"}"#)
        #expect(fixture.deliverAll().map(\.token) == [[1]])
        #expect(fixture.counters.eventsDropped == 0 && fixture.counters.subjectsDropped == 1)
    }

    // MARK: Limits

    /// What goes in so many seconds, looked at a hundred times a second.
    private func sent(_ fixture: PipelineFixture, seconds: Int) -> Int {
        var sent = 0
        for _ in 0..<seconds * 100 {
            fixture.pass(.milliseconds(10))
            sent += fixture.deliverAll().count
        }
        return sent
    }

    @Test func `a limit is kept, and what waits goes later`() {
        // With few slots the rest would be deferred.
        let fixture = fixture(controls: 200) { $0.slots = 8192 }
        fixture.checksEachCall = false
        fixture.restrict(Self.home, .limit(perSecond: 20))
        fixture.event("all")
        #expect((39...43).contains(sent(fixture, seconds: 2)))
        #expect((99...101).contains(sent(fixture, seconds: 5)))
        #expect(sent(fixture, seconds: 5) < 80 && fixture.pipeline.isIdle)
    }

    @Test func `a worker has its share of a limit`() {
        let fixture = fixture(controls: 200)
        fixture.checksEachCall = false
        fixture.restrict(Self.home, .limit(perSecond: 100))
        fixture.pipeline.adopt(shareOfLimits: 0.25)
        fixture.event("all")
        #expect((47...56).contains(sent(fixture, seconds: 2)))
    }

    @Test func `of several limits the narrowest counts`() {
        let fixture = fixture(controls: 200)
        fixture.checksEachCall = false
        fixture.restrict(Self.home, .limit(perSecond: 5))
        fixture.restrict(Self.controls, .limit(perSecond: 5))
        fixture.restrict(Self.ofHome, .limit(perSecond: 20))
        fixture.event("all")
        // One more for the widget.
        #expect((39...45).contains(sent(fixture, seconds: 2)))
    }

    @Test func `the next push of a limit is known in advance`() {
        let fixture = fixture(controls: 8)
        fixture.restrict(Self.home, .limit(perSecond: 1))
        fixture.event("all")
        _ = fixture.deliverAll()
        let due = fixture.pipeline.nextDue(now: fixture.now)
        #expect(due > fixture.now.monotonic && due <= fixture.now.monotonic + .seconds(1))
    }

    // MARK: Records

    @Test func `an unreadable restriction is counted, and the others stay`() {
        let fixture = fixture()
        fixture.restrict(Self.home, .pause)
        let problem = Array("app/a b".utf8).withUnsafeBytes {
            fixture.pipeline.restrictionRecord(key: $0, value: nil)
        }
        #expect(problem?.code == "invalidKey")
        #expect(fixture.pipeline.setAside[.restrictions].map(\.count) == [1])
        #expect(fixture.pipeline.restrictions.inForce.count == 1)
    }

    @Test func `restrictions of what this worker does not serve change nothing`() {
        let fixture = fixture()
        fixture.restrict(.pushes(app: "com.example.Other", tokenClass: nil), .pause)
        fixture.restrict(.topic("elsewhere"), .pause)
        fixture.restrict(.subject([1], app: "com.example.Other"), .drop)
        fixture.event("s0")
        #expect(fixture.deliverAll().count == 1)
    }
}
