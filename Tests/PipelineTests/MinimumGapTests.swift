// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// Pushes without a payload to one token are at least `minimumGap` apart, whoever sends them.
@Suite struct `The minimum gap, kept by the owner of the token's partition` {
    private typealias Worker = GapWorker

    private let worker = Worker()

    @Test func `the first push goes at once, and the last of several when the gap is over`() {
        worker.pipeline.event("door")
        #expect(worker.deliver() == 1)
        for _ in 0..<3 {
            worker.pipeline.pass(.seconds(10))
            worker.pipeline.event("door")
            #expect(worker.deliver() == 0)
        }
        worker.pipeline.pass(.milliseconds(29_999))
        #expect(worker.deliver() == 0)
        worker.pipeline.pass(.milliseconds(1))
        #expect(worker.deliver() == 1, "one push tells of all three")
        worker.pipeline.pass(.seconds(60))
        #expect(worker.deliver() == 0)
        #expect(worker.latest.value == nil && worker.isDone)
        #expect(worker.pipeline.counters.accepted == 2)
    }

    @Test func `events do not wait for the gap`() {
        worker.pipeline.event("door")
        #expect(worker.deliver() == 1)
        worker.pipeline.event("door")
        #expect(worker.deliver() == 0)
        #expect(worker.pipeline.committableOffset == 2)
    }

    @Test func `a push is announced in Kafka before it is handed over`() throws {
        worker.deferPush()
        let announcement = worker.pipeline.takeRecords()
        #expect(announcement.count == 1 && announcement[0].value.contains("lastSentAt"))
        worker.pipeline.pass(.seconds(1))
        #expect(worker.pipeline.take().isEmpty)
        worker.pipeline.acknowledge(announcement)
        worker.pipeline.pass(.zero)
        #expect(worker.pipeline.take().count == 1)
    }

    @Test func `an announcement that Kafka refuses is written again, and nothing is sent before`() {
        worker.deferPush()
        let announcement = worker.pipeline.takeRecords()
        worker.pipeline.pipeline.refused(announcement[0].ticket)
        worker.pipeline.pass(.seconds(1))
        #expect(worker.pipeline.take().isEmpty)
        #expect(worker.deliver() == 1)
    }

    @Test func `an event that comes while the push is announced is told by that push`() {
        worker.deferPush()
        let announcement = worker.pipeline.takeRecords()
        worker.deferred.write(worker.deferred.log[0])
        worker.deferred.read()
        // The row has changed since: the announcement is not produced again.
        worker.pipeline.pipeline.refused(announcement[0].ticket)
        #expect(worker.deliver() == 1)
        worker.pipeline.pass(.seconds(61))
        #expect(worker.deliver() == 0)
        #expect(worker.isDone)
    }

    @Test func `after a crash with a push under way the next one keeps its distance`() {
        worker.pipeline.event("door")
        #expect(worker.run().count == 1)
        // APNs may have accepted it. Nobody knows.
        let next = Worker(at: worker.pipeline.now, log: worker.deferred.log)
        #expect(next.deliver() == 0)
        next.pipeline.pass(.seconds(60))
        #expect(next.deliver() == 0, "it may have been sent later than it was announced")
        next.pipeline.pass(.seconds(60))
        #expect(next.deliver() == 1, "it is not lost")
    }

    @Test func `the next owner knows when the push was sent, and that nothing is owed`() {
        worker.pipeline.event("door")
        #expect(worker.deliver() == 1)
        let second = Worker(at: worker.pipeline.now, log: worker.deferred.log)
        second.pipeline.pass(.seconds(20))
        second.pipeline.event("door")
        #expect(second.deliver() == 0)
        let third = Worker(at: second.pipeline.now, log: second.deferred.log)
        third.pipeline.pass(.milliseconds(39_990))
        #expect(third.deliver() == 0)
        third.pipeline.pass(.milliseconds(10))
        #expect(third.deliver() == 1)
        let fourth = Worker(at: third.pipeline.now, log: third.deferred.log)
        fourth.pipeline.pass(.seconds(61))
        #expect(fourth.deliver() == 0)
        #expect(fourth.latest.value == nil && fourth.isDone)
        #expect(fourth.pipeline.counters.expired == 0, "a row that owes nothing is no push")
    }

    @Test func `a further try of one push keeps no distance to the first`() {
        worker.pipeline.event("door")
        let sent = worker.run()
        worker.pipeline.answer(sent[0], 503, .serviceUnavailable)
        worker.pipeline.pass(.seconds(2))
        #expect(worker.deliver() == 1)
    }

    @Test func `a push that is given back to its row is announced anew, and keeps no distance`() {
        worker.pipeline.event("door")
        let sent = worker.run()
        worker.pipeline.answer(sent[0], 429, .tooManyRequests)
        var delivered = 0
        for _ in 0..<60 where delivered == 0 {
            worker.pipeline.pass(.seconds(1))
            delivered = worker.deliver()
        }
        #expect(delivered == 1)
    }

    @Test func `a partition that is given back in order announces nothing that was not sent`() {
        worker.deferPush()
        worker.deferred.produce()
        #expect(worker.latest.contains("lastSentAt"))
        worker.pipeline.pipeline.drain = .until(worker.pipeline.now.monotonic + .seconds(2))
        worker.pipeline.pass(.milliseconds(200))
        worker.deferred.produce()
        #expect(!worker.latest.contains("lastSentAt"))
        worker.deferred.revoke()
        let next = Worker(at: worker.pipeline.now, log: worker.deferred.log)
        #expect(next.deliver() == 1)
    }

    @Test func `a record read in a replay within a long gap is written again with the time`() {
        let worker = Worker(gap: .seconds(7200))
        worker.pipeline.event("door")
        #expect(worker.deliver() == 1)
        worker.pipeline.pass(.seconds(3000))
        // Another worker's record comes while nobody owns the partition.
        worker.deferred.revoke()
        worker.pipeline.event("door")
        #expect(worker.pipeline.take().isEmpty)
        worker.deferred.produce()
        let second = Worker(
            gap: .seconds(7200), at: worker.pipeline.now, log: worker.deferred.log)
        _ = second.run()
        let third = Worker(gap: .seconds(7200), at: second.pipeline.now, log: [second.latest])
        third.pipeline.pass(.seconds(4190))
        #expect(third.deliver() == 0)
        third.pipeline.pass(.seconds(10))
        #expect(third.deliver() == 1)
    }

    @Test func `a shorter gap takes effect for what waits already`() throws {
        worker.pipeline.event("door")
        #expect(worker.deliver() == 1)
        worker.pipeline.event("door")
        #expect(worker.deliver() == 0)
        var settings = worker.pipeline.pipeline.state.settings
        settings.minimumGaps = MinimumGaps()
        try worker.pipeline.pipeline.adopt(settings.live, bindings: [.standard])
        #expect(worker.deliver() == 1)
    }

    @Test func `a late try of a push is announced again`() {
        worker.pipeline.event("door")
        let sent = worker.run()
        worker.pipeline.answer(sent[0], 503, .serviceUnavailable, retryAfterSeconds: 600)
        worker.pipeline.pass(.seconds(650))
        #expect(worker.pipeline.take().isEmpty, "its record says that it was sent by then")
        let again = worker.run()
        #expect(again.count == 1)
        let next = Worker(at: worker.pipeline.now, log: worker.deferred.log)
        next.pipeline.pass(.seconds(60))
        #expect(next.deliver() == 0)
        next.pipeline.pass(.seconds(60))
        #expect(next.deliver() == 1)
    }

    @Test func `what waits keeps no distance to a push that APNs has refused`() {
        worker.pipeline.event("door")
        let sent = worker.run()
        worker.deferred.write(worker.deferred.log[0])
        worker.deferred.read()
        #expect(worker.run().isEmpty)
        worker.pipeline.answer(sent[0], 400, .payloadEmpty)
        #expect(worker.deliver() == 1)
    }

    @Test func `a push that an operator drops while it is announced is not sent`() {
        worker.deferPush()
        // The operator's tombstone comes before the announcement.
        worker.deferred.write(
            DeferredFixture.Record(
                key: worker.deferred.log[0].key, value: nil, endedOffset: 0, isDropped: true))
        worker.deferred.produce()
        worker.deferred.read()
        #expect(worker.deliver() == 0)
        worker.pipeline.pass(.seconds(200))
        #expect(worker.deliver() == 0)
        #expect(worker.pipeline.counters.dropped == 1)
        let next = Worker(at: worker.pipeline.now, log: worker.deferred.log)
        next.pipeline.pass(.seconds(200))
        #expect(next.deliver() == 0)
    }

    @Test func `a push that expires when it is announced leaves no gap behind`() {
        let soon = worker.pipeline.now.wall + .seconds(5)
        worker.deferPush(#"{"v":1,"expiresAt":"\#(soon.rfc3339)"}"#)
        let announcement = worker.pipeline.takeRecords()
        worker.pipeline.pass(.seconds(6))
        worker.pipeline.acknowledge(announcement)
        #expect(worker.deliver() == 0)
        #expect(worker.pipeline.counters.expired == 1)
        #expect(worker.isDone && worker.latest.value == nil, "no time is kept, as none was sent")
        worker.pipeline.event("door")
        #expect(worker.deliver() == 1)
    }

    @Test func `where too many tokens are within their gap, further ones have none`() {
        let worker = Worker { $0.deferredMax = 1 }
        worker.pipeline.registerControl("B", [2], shows: ["window"])
        for subject in ["door", "window"] {
            worker.pipeline.event(subject)
            #expect(worker.deliver() == 1)
        }
        #expect(worker.pipeline.counters.gapsForgotten == 1)
        for (subject, count) in [("window", 1), ("door", 0)] {
            worker.pipeline.event(subject)
            #expect(worker.deliver() == count)
        }
    }

    @Test func `tokens within their gap do not keep what is owed from being read`() {
        for number in 2...4 as ClosedRange<UInt8> {
            worker.pipeline.registerControl("\(number)", [number], shows: ["s\(number)"])
            worker.pipeline.event("s\(number)")
            #expect(worker.deliver() == 1)
        }
        let next = Worker(at: worker.pipeline.now, log: worker.deferred.log) { $0.deferredMax = 1 }
        #expect(next.pipeline.load.tokensWithinGap == 1)
        #expect(next.pipeline.counters.gapsForgotten == 2)
        worker.pipeline.event("door")
        #expect(worker.pipeline.take().isEmpty)
        next.deferred.write(worker.deferred.produce().deferred[0])
        next.deferred.read()
        #expect(next.deliver() == 1)
    }

    @Test func `where many tokens are within their gap, a push that was asked for later is owed`() {
        for number in 2...3 as ClosedRange<UInt8> {
            worker.pipeline.registerControl("\(number)", [number], shows: ["s\(number)"])
            worker.pipeline.event("s\(number)")
            #expect(worker.deliver() == 1)
        }
        // Of the second token: what is owed, its announcement, and that it was sent.
        var log = worker.deferred.log
        #expect(log.count == 6 && log[5].contains("\"sent\":true"))
        log.insert(log[3], at: 5)
        let next = Worker(at: worker.pipeline.now, log: log) { $0.deferredMax = 1 }
        #expect(next.pipeline.load.deferred == 1 && next.pipeline.counters.gapsForgotten == 0)
    }

    @Test func `a gap does not make a push wait for the delay of its follow-up`() {
        let bindings: [TopicBinding] = [
            .standard, TopicBinding(decode: .json, delay: .seconds(600)),
        ]
        let pipeline = PipelineFixture(bindings: bindings) { settings in
            settings.holdMax = .seconds(10)
            settings.registrationGrace = .zero
            settings.minimumGaps[.controls] = .seconds(2)
        }
        pipeline.registerControl("A", [1], shows: ["door"])
        pipeline.event("door")
        #expect(pipeline.deliverAll().count == 1)
        pipeline.event("door")
        pipeline.event("door", binding: 1)
        #expect(pipeline.deliverAll().isEmpty)
        pipeline.pass(.milliseconds(2010))
        #expect(pipeline.deliverAll().count == 1)
        pipeline.pass(.seconds(1))
        #expect(pipeline.deliverAll().isEmpty && !pipeline.isIdle, "the delayed one waits")
    }

    @Test func `a changed gap does not end what waits for its token's registration`() throws {
        worker.pipeline.event("door")
        #expect(worker.pipeline.take().isEmpty)
        var record = worker.deferred.produce().deferred[0]
        record.key = record.key.replacing("/01", with: "/09")
        worker.deferred.write(record)
        worker.deferred.read()
        #expect(worker.deliver() == 1)
        worker.pipeline.pass(.seconds(1))
        var settings = worker.pipeline.pipeline.state.settings
        settings.minimumGaps[.controls] = .seconds(90)
        try worker.pipeline.pipeline.adopt(settings.live, bindings: [.standard])
        #expect(worker.deliver() == 0)
        worker.pipeline.registerControl("Z", [9], shows: ["window"])
        worker.pipeline.pass(.seconds(30))
        #expect(worker.deliver() == 1)
    }

    /// The announced push of one token must wait, and no push has been sent.
    @Test func `a push that was announced and not sent keeps no distance to itself`() {
        worker.pipeline.event("door")
        let sent = worker.run()
        worker.pipeline.answer(sent[0], 500, .internalServerError)
        worker.pipeline.pass(.seconds(1))
        #expect(worker.deliver() == 1)
        worker.pipeline.pass(.seconds(60))
        worker.deferPush()
        // While the announcement is on its way to Kafka the worker gives up all it can.
        worker.deferred.produce()
        worker.deferred.write(worker.deferred.log[0])
        worker.deferred.read()
        #expect(worker.deliver() == 1)
    }

    @Test func `no more pushes are announced than may be made`() {
        let pipeline = PipelineFixture { settings in
            settings.holdMax = .seconds(10)
            settings.registrationGrace = .zero
            settings.minimumGaps[.controls] = .seconds(60)
        }
        pipeline.checksEachCall = false
        let deferred = DeferredFixture(pipeline)
        deferred.assign()
        for number in 0..<200 {
            let token = [1, UInt8(number)]
            pipeline.registerControl("A\(number)", token, shows: ["door"])
            let now = pipeline.now.wall
            deferred.write(
                DeferredFixture.Record(
                    key: "production/com.example.Home.push-type.controls/"
                        + Hexadecimal.encode(token),
                    value: #"{"v":1,"notBefore":"\#(now.rfc3339)","expiresAt":""#
                        + #"\#((now + .seconds(3600)).rfc3339)","class":"control","attempts":0}"#))
        }
        deferred.read()
        pipeline.pass(.zero)
        let slots = pipeline.pipeline.state.settings.sizes.deferredSlots
        #expect(pipeline.takeRecords().count == slots - slots / 4)
    }

    @Test func `what one turn defers is bounded, and the next turn is at once`() {
        let pipeline = PipelineFixture { settings in
            settings.slots = 4096
            settings.immediateFanOutMax = 2000
            settings.holdMax = .seconds(10)
            settings.minimumGaps[.controls] = .seconds(60)
        }
        pipeline.checksEachCall = false
        for number in 0..<1100 {
            let token = [2, UInt8(number / 256), UInt8(number % 256)]
            pipeline.registerControl("A\(number)", token, shows: ["door"])
        }
        pipeline.event("door")
        #expect(pipeline.take().isEmpty)
        let first = pipeline.takeRecords().count
        #expect(first < 1100 && first >= 1024)
        #expect(pipeline.pipeline.nextDue(now: pipeline.now) <= pipeline.now.monotonic)
        pipeline.pass(.zero)
        #expect(pipeline.take().isEmpty)
        #expect(pipeline.takeRecords().count == 1100 - first)
        #expect(pipeline.pipeline.nextDue(now: pipeline.now) > pipeline.now.monotonic)
    }

    @Test func `an event that comes while the push is in flight is told when the gap is over`() {
        worker.pipeline.event("door")
        let sent = worker.run()
        worker.pipeline.event("door")
        #expect(worker.run().isEmpty)
        worker.pipeline.pass(.seconds(5))
        worker.pipeline.answer(sent[0], 200)
        #expect(worker.deliver() == 0)
        worker.pipeline.pass(.milliseconds(59_990))
        #expect(worker.deliver() == 0)
        worker.pipeline.pass(.milliseconds(10))
        #expect(worker.deliver() == 1)
        worker.pipeline.pass(.seconds(60))
        #expect(worker.deliver() == 0)
        #expect(worker.isDone)
    }

    @Test func `a record of another worker that comes while the push is in flight is told later`() {
        worker.pipeline.event("door")
        let sent = worker.run()
        worker.deferred.write(worker.deferred.log[0])
        worker.deferred.read()
        #expect(worker.run().isEmpty)
        worker.pipeline.answer(sent[0], 200)
        #expect(worker.deliver() == 0)
        worker.pipeline.pass(.seconds(60))
        #expect(worker.deliver() == 1)
        worker.pipeline.pass(.seconds(60))
        #expect(worker.deliver() == 0)
        #expect(worker.isDone)
    }

    @Test func `a row whose push is the follow-up of one in flight is owed another one`() {
        worker.pipeline.event("door")
        let sent = worker.run()
        // The partition goes and comes back while APNs is silent, and the event is read once more.
        worker.deferred.revoke()
        worker.deferred.assign()
        worker.deferred.write(worker.deferred.log[0])
        worker.pipeline.pass(.seconds(130))
        #expect(worker.run().isEmpty)
        worker.pipeline.answer(sent[0], 200)
        #expect(worker.deliver() == 0)
        worker.pipeline.pass(.seconds(60))
        #expect(worker.deliver() == 1)
        worker.pipeline.pass(.seconds(60))
        #expect(worker.deliver() == 0)
        #expect(worker.isDone)
    }

    @Test func `a record that the note of a push hides is written again`() {
        worker.pipeline.event("door")
        let sent = worker.run()
        // Another worker's record is in Kafka before the note, and is read after it was written.
        worker.deferred.write(worker.deferred.log[0])
        worker.pipeline.answer(sent[0], 200)
        worker.deferred.produce()
        #expect(worker.latest.contains("\"sent\":true"))
        worker.deferred.read()
        #expect(worker.deliver() == 0)
        #expect(!worker.latest.contains("\"sent\":true"), "Kafka's latest record owes the push")
        let next = Worker(at: worker.pipeline.now, log: [worker.latest])
        next.pipeline.pass(.seconds(60))
        #expect(next.deliver() == 1)
    }

    @Test func `what expires within the gap is counted, and the gap is kept`() {
        worker.pipeline.event("door")
        #expect(worker.deliver() == 1)
        let soon = worker.pipeline.now.wall + .seconds(20)
        worker.pipeline.event("door", #"{"v":1,"expiresAt":"\#(soon.rfc3339)"}"#)
        #expect(worker.deliver() == 0)
        worker.pipeline.pass(.seconds(30))
        #expect(worker.deliver() == 0)
        #expect(worker.pipeline.counters.expired == 1)
        worker.pipeline.event("door")
        #expect(worker.deliver() == 0)
        worker.pipeline.pass(.seconds(30))
        #expect(worker.deliver() == 1)
    }

    @Test func `a record within a long gap is written again with the time of the last push`() {
        let worker = Worker(gap: .seconds(7200))
        worker.pipeline.event("door")
        #expect(worker.deliver() == 1)
        worker.pipeline.pass(.seconds(3000))
        worker.pipeline.event("door")
        #expect(worker.deliver() == 0)
        // Compaction may have left nothing but this.
        let next = Worker(gap: .seconds(7200), at: worker.pipeline.now, log: [worker.latest])
        next.pipeline.pass(.seconds(4190))
        #expect(next.deliver() == 0)
        next.pipeline.pass(.seconds(10))
        #expect(next.deliver() == 1)
    }

    @Test func `another configuration takes effect at once`() throws {
        worker.pipeline.event("door")
        #expect(worker.deliver() == 1)
        worker.pipeline.event("door")
        #expect(worker.deliver() == 0)
        var settings = PipelineSettings()
        settings.holdMax = .seconds(10)
        try worker.pipeline.pipeline.adopt(settings.live, bindings: [.standard])
        worker.pipeline.event("door")
        #expect(worker.deliver() == 1, "no gap is configured any more")
    }
}

@Suite struct `The minimum gap in memory` {
    private let pipeline = PipelineFixture { settings in
        settings.holdMax = .seconds(10)
        settings.registrationGrace = .zero
        settings.minimumGaps[.controls] = .seconds(5)
        settings.minimumGaps[.background] = .seconds(5)
        settings.minimumGaps.apps["com.example.Other"] = MinimumGaps.OfApp(
            [.controls: .seconds(60)])
    }

    init() { pipeline.registerControl("A", [1], shows: ["door"]) }

    @Test func `a gap that may be held is kept without a record`() {
        pipeline.event("door")
        #expect(pipeline.deliverAll().count == 1)
        for _ in 0..<4 {
            pipeline.event("door")
            #expect(pipeline.deliverAll().isEmpty)
            pipeline.pass(.milliseconds(1249))
        }
        #expect(pipeline.deliverAll().isEmpty)
        pipeline.pass(.milliseconds(5))
        #expect(pipeline.deliverAll().count == 1)
        #expect(pipeline.takeRecords().isEmpty)
        #expect(pipeline.counters.pushesHeldByGap == 1)
    }

    @Test func `it counts from the answer, not from the hand-over`() {
        pipeline.event("door")
        let sent = pipeline.take()
        pipeline.event("door")
        pipeline.pass(.seconds(2))
        pipeline.answer(sent[0], 200)
        pipeline.pass(.milliseconds(4990))
        #expect(pipeline.deliverAll().isEmpty)
        pipeline.pass(.milliseconds(12))
        #expect(pipeline.deliverAll().count == 1)
    }

    @Test func `a payload keeps no distance, and none is kept to it`() {
        pipeline.register("D", [.device([9], shows: ["score"], hearsChanges: true)])
        for value in [EventValue.alert("a"), EventValue.alert("b"), nil] {
            pipeline.event("score", value)
            #expect(pipeline.deliverAll().count == 1)
        }
        pipeline.event("score")
        #expect(pipeline.deliverAll().isEmpty)
    }

    @Test func `each token has a gap of its own`() {
        pipeline.registerControl("B", [2], shows: ["window"])
        pipeline.event("door")
        #expect(pipeline.deliverAll().count == 1)
        pipeline.event("window")
        #expect(pipeline.deliverAll().count == 1)
    }
}
