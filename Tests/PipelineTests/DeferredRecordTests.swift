// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import Pipeline
internal import PushModel
internal import RecordFormats
internal import Testing

/// What the owner of a partition of `deferred` makes of records that contradict each other.
@Suite struct `Deferred pushes and their records` {
    private let pipeline: PipelineFixture
    private let deferred: DeferredFixture

    init() {
        pipeline = PipelineFixture { settings in
            settings.holdMax = .seconds(10)
            settings.registrationGrace = .zero
        }
        pipeline.registerControl("A", [1], shows: ["door"])
        pipeline.register("D", [.device([9], shows: ["door"])])
        deferred = DeferredFixture(pipeline)
    }

    private static let control = "production/com.example.Home.push-type.controls/01"
    private static let device = "production/com.example.Home/09/00000000000000"

    /// A record as another worker would write it.
    private func record(
        after delay: Duration = .zero, ttl: Duration = .seconds(3600), attempts: Int = 0,
        more: String = "", key: String = Self.control, endedOffset: Int64? = nil
    ) -> DeferredFixture.Record {
        let (notBefore, expiresAt) = (pipeline.now.wall + delay, pipeline.now.wall + ttl)
        let word = key.contains("push-type") ? "control" : "device"
        return DeferredFixture.Record(
            key: key,
            value: #"{"v":1,"notBefore":"\#(notBefore.rfc3339)","#
                + #""expiresAt":"\#(expiresAt.rfc3339)","class":"\#(word)","#
                + #""attempts":\#(attempts)\#(more)}"#,
            endedOffset: endedOffset)
    }

    /// A payload that was read so long ago.
    private func payload(
        _ text: String, age: Duration?, key: String = "01", after delay: Duration = .zero
    ) -> DeferredFixture.Record {
        let readAt = age.map { (pipeline.now.wall + (.zero - $0)).rfc3339 }
        return record(
            after: delay,
            more: #","payload":{"aps":{"alert":"\#(text)"}}"#
                + (readAt.map { #","payloadAt":"\#($0)""# } ?? ""),
            key: Self.device + key)
    }

    private func write(_ records: DeferredFixture.Record...) {
        for record in records { deferred.write(record) }
        deferred.read()
    }

    /// What the owner writes when everything is sent; it reads its own records.
    private func deliverAndRead(for duration: Duration = .seconds(1)) -> [SentPush] {
        pipeline.pass(duration)
        var sent: [SentPush] = []
        for _ in 0..<4 {
            sent += pipeline.deliverAll()
            pipeline.pass(.milliseconds(100))
            deferred.produce()
            deferred.read()
        }
        return sent
    }

    // MARK: A later record

    @Test(arguments: [(500, 0), (30_000, 1)])
    func `a promise that is a clock's error shorter is not put right`(
        milliseconds: Int, written: Int
    ) {
        deferred.assign()
        write(
            record(after: .seconds(600), ttl: .seconds(3600)),
            record(after: .seconds(600), ttl: .seconds(3600) - .milliseconds(milliseconds)))
        #expect(deferred.produce().deferred.count == written)
    }

    @Test func `a later deferred record says when, also if that is later`() {
        deferred.assign()
        write(record(after: .seconds(10)), record(after: .seconds(30)))
        #expect(deliverAndRead(for: .seconds(20)).isEmpty)
        #expect(deliverAndRead(for: .seconds(10)).count == 1)
    }

    @Test func `a later record does not bring back an older payload, nor leave it in Kafka`() {
        deferred.assign()
        write(
            payload("newer", age: .seconds(10), after: .seconds(60)),
            payload("older", age: .seconds(20), after: .seconds(60)),
            payload("nobody knows when", age: nil, after: .seconds(60)))
        let written = deferred.produce().deferred
        #expect(written.count == 2 && written.allSatisfy { $0.contains("newer") })
        deferred.read()
        #expect(deferred.produce().deferred.isEmpty, "what is put right needs no second time")
        #expect(deliverAndRead(for: .seconds(61)).map(\.body) == [#"{"aps":{"alert":"newer"}}"#])
    }

    @Test func `of payloads of one instant the later record's is sent, and nothing put right`() {
        deferred.assign()
        write(payload("first", age: .zero, after: .seconds(60)))
        write(payload("second", age: .zero, after: .seconds(60)))
        #expect(deferred.produce().deferred.isEmpty)
        #expect(deliverAndRead(for: .seconds(61)).map(\.body) == [#"{"aps":{"alert":"second"}}"#])
    }

    @Test func `what the owner wrote again is no second push, though the first is under way`() {
        deferred.assign()
        write(record(ttl: .seconds(3600)), record(ttl: .seconds(90)))
        deferred.produce()
        pipeline.pass(.milliseconds(10))
        let push = pipeline.take()
        #expect(push.count == 1)
        deferred.read()
        pipeline.answer(push[0], 200)
        #expect(deliverAndRead(for: .seconds(5)).isEmpty)
        #expect(deferred.log.last?.value == nil && pipeline.load.deferred == 0)
    }

    @Test func `what was written again says all that was owed, and less is put right once more`() {
        deferred.assign()
        write(record(after: .seconds(120), ttl: .seconds(90)))
        write(record(after: .seconds(120), ttl: .seconds(3600), endedOffset: 0))
        #expect(deferred.produce().deferred.isEmpty)
        write(record(after: .seconds(120), ttl: .seconds(90), endedOffset: 0))
        #expect(deferred.produce().deferred.count == 1)
        deferred.read()
        #expect(deliverAndRead(for: .seconds(121)).count == 1)
    }

    @Test func `a replay puts right what promises less, when it is over`() {
        for ttl in [3600, 90] { deferred.write(record(after: .seconds(60), ttl: .seconds(ttl))) }
        deferred.assign()
        #expect(deferred.produce().deferred.count == 1)
    }

    @Test func `a replay of what is right writes nothing`() {
        for ttl in [3600, 90] { deferred.write(record(after: .seconds(60), ttl: .seconds(ttl))) }
        deferred.write(record(after: .seconds(60), ttl: .seconds(3600), endedOffset: 1))
        deferred.write(record(after: .seconds(60), key: String(Self.control.dropLast()) + "2"))
        deferred.assign()
        #expect(deferred.produce().deferred.isEmpty)
    }

    @Test func `a header that speaks of offsets to come does not hide what comes`() {
        deferred.assign()
        write(record(after: .seconds(600), endedOffset: 1000))
        write(record(after: .seconds(5)))
        #expect(deliverAndRead(for: .seconds(6)).count == 1)
    }

    @Test func `a tombstone that names a payload also ends a push without one`() {
        deferred.assign()
        write(record(after: .seconds(60)))
        write(
            DeferredFixture.Record(
                key: Self.control, value: nil, endedPayloadAt: pipeline.now.wall))
        #expect(pipeline.load.deferred == 0 && deliverAndRead(for: .seconds(61)).isEmpty)
    }

    // MARK: An operator's tombstone

    private func drop(upTo offset: Int64) {
        write(
            DeferredFixture.Record(
                key: Self.control, value: nil, endedOffset: offset, isDropped: true))
    }

    @Test func `what an operator drops is never sent, and counted once`() {
        deferred.assign()
        write(record(after: .seconds(60)))
        drop(upTo: 0)
        drop(upTo: 0)
        #expect(pipeline.load.deferred == 0 && deliverAndRead(for: .seconds(61)).isEmpty)
        #expect(pipeline.ended == ["com.example.Home controls dropped": 1])
        deferred.revoke()
        deferred.assign()
        #expect(pipeline.counters.dropped == 1, "a replay is no second time")
    }

    @Test func `what is deferred while an operator drops waits on`() {
        deferred.assign()
        write(record(after: .seconds(30)), record(after: .seconds(60)))
        drop(upTo: 0)
        #expect(pipeline.counters.dropped == 0)
        deferred.produce()
        deferred.read()
        #expect(deliverAndRead(for: .seconds(61)).count == 1)
    }

    @Test func `what an operator drops while it is being sent is counted as what it was`() {
        deferred.assign()
        write(record())
        pipeline.pass(.milliseconds(10))
        let push = pipeline.take()
        drop(upTo: 0)
        pipeline.answer(push[0], 200)
        pipeline.pass(.milliseconds(10))
        #expect(pipeline.ended == ["com.example.Home controls accepted": 1])
        #expect(pipeline.load.deferred == 0)
    }

    @Test func `a record after an operator's tombstone is sent and ended like any other`() {
        deferred.assign()
        write(record())
        pipeline.pass(.milliseconds(10))
        let push = pipeline.take()
        write(DeferredFixture.Record(key: Self.control, value: nil), record())
        pipeline.answer(push[0], 200)
        #expect(deliverAndRead().count == 1)
        #expect(deferred.log.last?.value == nil && deferred.log.last?.endedOffset == 2)
        #expect(pipeline.load.deferred == 0)
    }

    @Test func `a rewritten record that follows an operator's tombstone is ended`() {
        deferred.assign()
        write(record(ttl: .seconds(3600)), record(ttl: .seconds(90)))
        pipeline.pass(.milliseconds(10))
        let push = pipeline.take()
        // The tombstone overtakes the rewritten record on the way to Kafka.
        write(DeferredFixture.Record(key: Self.control, value: nil))
        deferred.produce()
        deferred.read()
        pipeline.answer(push[0], 200)
        _ = deliverAndRead()
        #expect(deferred.log.last?.value == nil)
        #expect(pipeline.load.deferred == 0)
    }

    // MARK: What a record says

    @Test func `a deferred push has its record's priority and expiration`() {
        deferred.assign()
        write(
            record(
                more: #","priority":5,"apnsExpiration":"none","payload":{"aps":{"alert":"a"}}"#,
                key: Self.device + "01"))
        let sent = deliverAndRead()
        #expect(sent.map(\.priority) == [5] && sent.map(\.expiration) == [-1])
    }

    @Test func `payloads of one token are sent each, and leave nothing behind`() {
        deferred.assign()
        write(payload("a", age: .zero), payload("b", age: .zero, key: "02"))
        #expect(deliverAndRead().count == 2)
        #expect(pipeline.load.payloadBytes == 0)
    }

    @Test func `a payload for a token that is sent none is skipped`() {
        deferred.assign()
        let key = Self.control + "/0000000000000001"
        let alert = record(more: #","payload":{"aps":{"alert":"a"}}"#, key: key)
        #expect(deferred.refusal(of: alert) != nil)
    }

    @Test func `a dead letter has the first try and the attempts that its record brought`() throws {
        deferred.assign()
        let firstAt = (pipeline.now.wall + .seconds(-600)).rfc3339
        write(record(attempts: 1_000_000, more: #","firstAt":"\#(firstAt)""#))
        pipeline.pass(.milliseconds(10))
        pipeline.answer(pipeline.take()[0], 503, .serviceUnavailable)
        pipeline.pass(.seconds(1))
        let letter = try #require(deferred.produce().others.first).value
        #expect(letter.contains("AttemptsExhausted"))
        #expect(letter.contains(#""firstAt":"\#(firstAt)""#))
    }

    // MARK: Owners

    @Test func `what has ended when its partition is lost is ended for the next owner too`() {
        deferred.assign()
        write(record())
        pipeline.pass(.milliseconds(10))
        pipeline.answer(pipeline.take()[0], 200)
        deferred.revoke()
        #expect(deferred.produce().deferred.map(\.value) == [nil])
    }

    @Test func `the end of an earlier assignment says nothing of the next one`() throws {
        deferred.beginAssignment()
        let first = try #require(deferred.assignment)
        deferred.revoke()
        deferred.beginAssignment()
        let problem = deferred.refusal(of: record())
        #expect(problem == nil)
        pipeline.pipeline.deferredReplayed(first, now: pipeline.now)
        pipeline.pipeline.unassigned([first])
        pipeline.pass(.seconds(5))
        #expect(pipeline.take().isEmpty)
        deferred.finishReplay()
        pipeline.pass(.milliseconds(10))
        #expect(pipeline.deliverAll().count == 1)
    }

    @Test func `a second assignment waits for its own replay`() {
        deferred.assign()
        deferred.revoke()
        deferred.beginAssignment()
        let problem = deferred.refusal(of: record())
        #expect(problem == nil)
        // Another partition is replayed to its end meanwhile.
        DeferredFixture(pipeline, partition: 1).assign()
        pipeline.pass(.seconds(5))
        #expect(pipeline.take().isEmpty)
        deferred.finishReplay()
        pipeline.pass(.milliseconds(10))
        #expect(pipeline.deliverAll().count == 1)
    }

    @Test func `a worker about to stop leaves what waits where it is`() {
        deferred.assign()
        write(record())
        pipeline.pipeline.drain = .until(pipeline.now.monotonic)
        #expect(deliverAndRead().isEmpty)
        #expect(pipeline.load.deferred == 1 && deferred.log.count == 1)
    }

    // MARK: Kafka's answers

    @Test func `a refused tombstone is produced again with the same header`() {
        deferred.assign()
        write(record())
        pipeline.pass(.milliseconds(10))
        pipeline.answer(pipeline.take()[0], 200)
        pipeline.pass(.milliseconds(10))
        let tombstones = pipeline.takeRecords()
        #expect(tombstones.map(\.endedOffset) == [0])
        pipeline.pipeline.refused(tombstones[0].ticket)
        let again = pipeline.takeRecords()
        #expect(again.map(\.endedOffset) == [0] && again.map(\.ticket) == tombstones.map(\.ticket))
        pipeline.pipeline.tooLarge(tombstones[0].ticket)
        #expect(pipeline.counters.recordsAbandoned == 1)
    }

    @Test func `what is written again is produced until Kafka has it`() {
        deferred.assign()
        write(record(after: .seconds(60), ttl: .seconds(3600)))
        write(record(after: .seconds(60), ttl: .seconds(90)))
        let written = pipeline.takeRecords()
        #expect(written.map(\.endedOffset) == [1])
        pipeline.pipeline.refused(written[0].ticket)
        let again = pipeline.takeRecords()
        #expect(again.map(\.endedOffset) == [1] && again.map(\.value) == written.map(\.value))
        #expect(pipeline.counters.recordsRefused == 1)
    }

    @Test(arguments: [true, false])
    func `what is written again is not produced behind its row's end`(isLost: Bool) {
        deferred.assign()
        write(record(after: .seconds(60), ttl: .seconds(3600)))
        write(record(after: .seconds(60), ttl: .seconds(90)))
        let written = pipeline.takeRecords()
        if isLost {
            deferred.revoke()
        } else {
            pipeline.pass(.seconds(61))
            #expect(pipeline.deliverAll().count == 1)
            pipeline.pass(.milliseconds(10))
            #expect(deferred.produce().deferred.map(\.value) == [nil])
        }
        pipeline.pipeline.refused(written[0].ticket)
        #expect(pipeline.takeRecords().isEmpty && pipeline.isIdle)
    }
}
