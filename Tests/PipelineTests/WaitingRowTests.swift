// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// A row that waits for the gap answers for later events of its token without a record of their own.
@Suite struct `Events that a waiting row answers for` {
    private let worker = GapWorker()

    /// One push is sent, and the next one waits for the gap.
    private func begin() {
        worker.pipeline.event("door")
        #expect(worker.deliver() == 1)
        worker.pipeline.event("door")
        #expect(worker.deliver() == 0)
        #expect(worker.pipeline.committableOffset == 2)
    }

    /// An event that asks for a mark.
    private func eventThatWaits() {
        worker.pipeline.event("door")
        #expect(worker.pipeline.take().isEmpty)
        #expect(worker.pipeline.committableOffset == 2, "it holds its offset")
    }

    private func pass() -> [SentPush] {
        worker.pipeline.pass(.milliseconds(100))
        return worker.pipeline.take()
    }

    /// The records that an event has written; those of the owner name the record that they are about.
    private func ofEvents(_ records: [DeferredFixture.Record]) -> Int {
        records.count { $0.value != nil && $0.endedOffset == nil }
    }

    @Test func `many events within the gap are one record for each push`() {
        let worker = GapWorker(gap: .seconds(600))
        worker.pipeline.checksEachCall = false
        for number in 2...20 as ClosedRange<UInt8> {
            worker.pipeline.registerControl("I\(number)", [number], shows: ["door"])
        }
        var sent = 0
        for _ in 0..<30 {
            worker.pipeline.event("door")
            for _ in 0..<4 {
                sent += worker.deliver()
                worker.pipeline.pass(.milliseconds(100))
            }
            worker.pipeline.pass(.seconds(10))
        }
        #expect(sent == 20 && worker.pipeline.committableOffset == 30)
        worker.pipeline.pass(.seconds(600))
        sent += worker.deliver()
        #expect(sent == 40, "the last change is told")
        let written = ofEvents(worker.deferred.log)
        #expect(Double(written) <= 1.2 * Double(sent), "\(written) records of events")
        // Beside them a mark of the partition for each event, and what each push needs.
        let all = worker.deferred.log.count
        #expect(all <= written + 30 + 2 * sent, "\(all) records")
    }

    @Test func `an event that joins a row holds its offset until a mark has been read`() {
        begin()
        eventThatWaits()
        let mark = worker.deferred.produce().deferred
        #expect(mark.count == 1 && mark[0].endedOffset != nil)
        #expect(pass().isEmpty && worker.pipeline.committableOffset == 2, "Kafka has it, unread")
        worker.deferred.read()
        worker.pipeline.pass(.milliseconds(100))
        #expect(worker.pipeline.take().isEmpty)
        #expect(worker.pipeline.committableOffset == 3 && worker.pipeline.takeRecords().isEmpty)
        worker.pipeline.pass(.seconds(60))
        #expect(worker.deliver() == 1)
    }

    @Test func `the next owner tells what has joined the row`() {
        begin()
        eventThatWaits()
        worker.deferred.produce()
        worker.deferred.read()
        #expect(pass().isEmpty && worker.pipeline.committableOffset == 3)
        let next = GapWorker(at: worker.pipeline.now, log: worker.deferred.log)
        next.pipeline.pass(.seconds(60))
        #expect(next.deliver() == 1)
    }

    @Test func `an event is owed though the row was dropped before it came`() {
        begin()
        worker.deferred.write(
            DeferredFixture.Record(
                key: worker.latest.key, value: nil, endedOffset: 3, isDropped: true))
        // The owner has not read the operator's record yet.
        eventThatWaits()
        worker.deferred.produce()
        worker.deferred.read()
        #expect(worker.pipeline.counters.dropped == 1)
        #expect(pass().isEmpty && worker.pipeline.committableOffset == 2)
        #expect(ofEvents(worker.deferred.produce().deferred) == 1)
        worker.deferred.read()
        #expect(worker.deliver() == 1)
    }

    @Test func `a drop ends what has joined the row before`() {
        begin()
        eventThatWaits()
        worker.deferred.produce()
        worker.deferred.read()
        #expect(pass().isEmpty && worker.pipeline.committableOffset == 3)
        worker.deferred.write(
            DeferredFixture.Record(
                key: worker.latest.key, value: nil, endedOffset: 3, isDropped: true))
        worker.deferred.read()
        #expect(worker.pipeline.counters.dropped == 1)
        worker.pipeline.pass(.seconds(60))
        #expect(worker.deliver() == 0)
    }

    @Test func `an event whose partition of deferred is lost gets a record`() {
        begin()
        eventThatWaits()
        worker.deferred.revoke()
        #expect(pass().isEmpty)
        #expect(ofEvents(worker.deferred.produce().deferred) == 1)
        #expect(worker.pipeline.committableOffset == 3)
    }

    @Test func `an event that waits for a mark gets a record in a drain`() {
        begin()
        eventThatWaits()
        worker.pipeline.pipeline.drain = .until(worker.pipeline.now.monotonic + .seconds(2))
        #expect(pass().isEmpty)
        #expect(ofEvents(worker.deferred.produce().deferred) == 1)
    }

    @Test func `where a mark takes long, events get records`() {
        begin()
        eventThatWaits()
        var written = 0
        for _ in 0..<40 where written == 0 {
            #expect(pass().isEmpty)
            written = ofEvents(
                worker.pipeline.takeRecords().map { record in
                    DeferredFixture.Record(
                        key: record.key, value: record.value, endedOffset: record.endedOffset)
                })
        }
        #expect(written == 1)
    }

    @Test func `a row of an earlier owner answers for nothing`() {
        begin()
        let next = GapWorker(at: worker.pipeline.now, log: worker.deferred.log)
        next.pipeline.event("door")
        #expect(next.pipeline.take().isEmpty)
        let written = ofEvents(next.deferred.produce().deferred)
        #expect(written == 1, "the owner before may have sent what waits")
    }

    @Test func `an event that has waited in memory for long gets a record`() {
        let later = TopicBinding(decode: .json, delay: .seconds(70))
        let pipeline = PipelineFixture(bindings: [.standard, later]) { settings in
            settings.holdMax = .seconds(200)
            settings.registrationGrace = .zero
            settings.minimumGaps[.controls] = .seconds(600)
        }
        pipeline.registerControl("A", [1], shows: ["door"])
        let deferred = DeferredFixture(pipeline)
        deferred.assign()
        func run() {
            for _ in 0..<8 {
                pipeline.pass(.zero)
                for push in pipeline.take() { pipeline.answer(push, 200) }
                deferred.produce()
                deferred.read()
            }
        }
        for _ in 0..<2 {
            pipeline.event("door")
            run()
        }
        pipeline.pass(.seconds(500))
        pipeline.event("door", binding: 1)
        pipeline.pass(.seconds(70))
        #expect(pipeline.take().isEmpty)
        #expect(ofEvents(deferred.produce().deferred) == 1)
    }

    @Test func `an event that expires much later than the row gets a record`() {
        worker.pipeline.event("door")
        #expect(worker.deliver() == 1)
        func event(expiresAfter life: Duration) -> Int {
            let time = worker.pipeline.now.wall + life
            worker.pipeline.event("door", #"{"v":1,"expiresAt":"\#(time.rfc3339)"}"#)
            #expect(worker.pipeline.take().isEmpty)
            let written = ofEvents(worker.deferred.produce().deferred)
            worker.deferred.read()
            #expect(worker.deliver() == 0 && pass().isEmpty)
            return written
        }
        #expect(event(expiresAfter: .seconds(400)) == 1)
        #expect(event(expiresAfter: .seconds(500)) == 0)
        #expect(event(expiresAfter: .seconds(900)) == 1)
        #expect(event(expiresAfter: .seconds(800)) == 0)
    }

    @Test func `what has joined a row is told until it expires itself`() {
        worker.pipeline.event("door")
        #expect(worker.deliver() == 1)
        for life in [400, 500] {
            let time = worker.pipeline.now.wall + .seconds(life)
            worker.pipeline.event("door", #"{"v":1,"expiresAt":"\#(time.rfc3339)"}"#)
            #expect(worker.deliver() == 0 && pass().isEmpty)
        }
        #expect(worker.pipeline.committableOffset == 3)
        let scope = Restriction.Scope.pushes(app: PipelineFixture.app, tokenClass: nil)
        worker.pipeline.restrict(scope, .pause)
        worker.pipeline.pass(.seconds(450))
        #expect(worker.deliver() == 0)
        worker.pipeline.restrict(scope, nil)
        #expect(worker.deliver() == 1)
    }

    @Test func `an event that waits for a mark goes at once when the gap is taken away`() throws {
        begin()
        eventThatWaits()
        var settings = worker.pipeline.pipeline.state.settings
        settings.minimumGaps = MinimumGaps()
        try worker.pipeline.pipeline.adopt(settings.live, bindings: [.standard])
        #expect(pass().count == 1)
    }

    @Test func `a row whose time comes takes the event with it`() {
        begin()
        worker.pipeline.pass(.milliseconds(59_950))
        eventThatWaits()
        worker.deferred.produce()
        var sent = 0
        for _ in 0..<4 {
            worker.pipeline.pass(.milliseconds(50))
            sent += worker.deliver()
        }
        #expect(sent == 1 && worker.pipeline.committableOffset == 3)
        worker.pipeline.pass(.seconds(60))
        #expect(worker.deliver() == 0 && worker.isDone)
    }
}
