// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// A worker whose clock is ahead ends nothing that Kafka's records do not call expired.
@Suite struct `A worker whose clock is ahead` {
    private static let key = "production/com.example.Home.push-type.controls/01"

    /// A control that shows `door`, whose registration has the true time, read by a worker whose clock
    /// is so far ahead.
    private static func owner(ahead: Duration) -> DeferredFixture {
        let pipeline = PipelineFixture { $0.registrationGrace = .zero }
        pipeline.registerControl("A", [1], shows: ["door"])
        pipeline.now.wall = pipeline.now.wall + ahead
        pipeline.pass(.zero)
        return DeferredFixture(pipeline)
    }

    /// A push that is due at once by the true time, and expires in an hour.
    private static func write(_ deferred: DeferredFixture, ahead: Duration) {
        let trueTime = deferred.pipeline.now.wall + (.zero - ahead)
        deferred.write(
            DeferredFixture.Record(
                key: key,
                value: #"{"v":1,"notBefore":"\#(trueTime.rfc3339)","#
                    + #""expiresAt":"\#((trueTime + .seconds(3600)).rfc3339)","class":"control","#
                    + #""sourceAt":"\#(trueTime.rfc3339)","attempts":0}"#))
    }

    @Test func `a clock that is a day ahead ends no deferred push, and sends none`() {
        let day = Duration.seconds(86_400)
        let deferred = Self.owner(ahead: day)
        let pipeline = deferred.pipeline
        Self.write(deferred, ahead: day)
        deferred.assign()
        for _ in 0..<100 { pipeline.pass(.seconds(20)) }
        #expect(pipeline.take().isEmpty && pipeline.counters.expired == 0)
        #expect(pipeline.pipeline.load.heldBack == 1)
        #expect(deferred.produce().deferred.isEmpty)
        let lead = pipeline.pipeline.clockLead(now: pipeline.now)
        #expect(lead == day)

        // Somebody sets the clock, and the worker reads the topic again.
        pipeline.now.wall = pipeline.now.wall + (.zero - day)
        pipeline.pass(.seconds(31))
        let isSetBack = pipeline.pipeline.isClockSetBack(now: pipeline.now)
        #expect(isSetBack)
        #expect(pipeline.counters.expired == 0, "its times are those of the wrong clock")
        deferred.revoke()
        deferred.assign()
        let isStillSetBack = pipeline.pipeline.isClockSetBack(now: pipeline.now)
        #expect(!isStillSetBack)
        pipeline.pass(.zero)
        #expect(pipeline.deliverAll().count == 1 && pipeline.pipeline.load.heldBack == 0)
    }

    @Test func `what is held back has expired at last by the records' times too`() {
        let deferred = Self.owner(ahead: .seconds(86_400))
        Self.write(deferred, ahead: .seconds(86_400))
        deferred.assign()
        deferred.pipeline.pass(.seconds(3500))
        #expect(deferred.pipeline.counters.expired == 0)
        deferred.pipeline.pass(.seconds(101))
        #expect(deferred.pipeline.counters.expired == 1)
        #expect(deferred.produce().deferred.count == 1)
    }

    @Test func `a newer record confirms that it has expired`() {
        let deferred = Self.owner(ahead: .seconds(86_400))
        Self.write(deferred, ahead: .seconds(86_400))
        deferred.assign()
        deferred.pipeline.pass(.seconds(60))
        #expect(deferred.pipeline.counters.expired == 0)
        // It has the time of this worker's clock, which was right: nothing was written for a day.
        deferred.pipeline.registerControl("B", [2], shows: ["x"])
        deferred.pipeline.pass(.seconds(31))
        #expect(deferred.pipeline.counters.expired == 1)
    }

    @Test func `a route that may not be sent to ends nothing by a wrong clock either`() {
        let deferred = Self.owner(ahead: .seconds(86_400))
        let pipeline = deferred.pipeline
        pipeline.restrict(.pushes(app: PipelineFixture.app, tokenClass: nil), .pause)
        pipeline.pass(.zero)
        Self.write(deferred, ahead: .seconds(86_400))
        deferred.assign()
        for _ in 0..<20 { pipeline.pass(.seconds(1)) }
        #expect(pipeline.counters.expired == 0 && pipeline.pipeline.load.heldBack == 1)
        #expect(deferred.produce().deferred.isEmpty)
    }
}
