// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Pipeline
internal import PushModel
internal import RecordFormats
internal import Testing

/// Records that say what is no longer so.
@Suite struct `A refused record that is out of date` {
    private let pipeline: PipelineFixture

    init() {
        pipeline = PipelineFixture { settings in
            settings.holdMax = .seconds(10)
            settings.registrationGrace = .zero
        }
        pipeline.registerControl("A", [1], shows: ["door"])
    }

    private func die() {
        pipeline.event("door")
        pipeline.answer(pipeline.take()[0], 410, .unregistered)
    }

    /// The index knows of it at once. A file of the index is to say no more than the topics.
    @Test func `a suppression keeps the index from being written until Kafka has it`() {
        #expect(pipeline.indexFault() == nil)
        die()
        let waiting = "Kafka has not acknowledged 1 suppression, of which the index knows"
        let produced = pipeline.takeRecords()
        #expect(pipeline.indexFault() == waiting)
        pipeline.pipeline.refused(produced[0].ticket)
        #expect(pipeline.indexFault() == waiting)
        pipeline.acknowledge(pipeline.takeRecords())
        #expect(pipeline.indexFault() == nil)
    }

    @Test func `a suppression that Kafka will never take keeps the index from being written`() {
        die()
        pipeline.pipeline.tooLarge(pipeline.takeRecords()[0].ticket)
        #expect(pipeline.takeRecords().isEmpty)
        #expect(
            pipeline.indexFault()
                == "Kafka has refused 1 suppression for good, of which the index knows")
    }

    @Test func `a refused suppression is not produced again behind a later one of its token`() {
        die()
        let older = pipeline.takeRecords()
        pipeline.pass(.seconds(5))
        pipeline.registerControl("A", [1], shows: ["door"])
        die()
        let newer = pipeline.takeRecords()
        #expect(older.map(\.topic) == [.suppressions] && newer.map(\.topic) == [.suppressions])
        pipeline.pipeline.refused(older[0].ticket)
        #expect(pipeline.takeRecords().isEmpty)
        pipeline.pipeline.refused(newer[0].ticket)
        #expect(pipeline.takeRecords().map(\.value) == newer.map(\.value))
        #expect(pipeline.committableOffset == 1)
        pipeline.acknowledge(newer)
        #expect(pipeline.committableOffset == 2)
    }

    @Test func `a deferred push that the operator has ended does not wait again`() {
        let deferred = DeferredFixture(pipeline)
        deferred.assign()
        let (now, end) = (pipeline.now.wall, pipeline.now.wall + .seconds(3600))
        let key = "production/com.example.Home.push-type.controls/01"
        deferred.write(
            DeferredFixture.Record(
                key: key,
                value: #"{"v":1,"notBefore":"\#(now.rfc3339)","#
                    + #""expiresAt":"\#(end.rfc3339)","class":"control","attempts":0}"#))
        deferred.read()
        pipeline.pass(.milliseconds(100))
        deferred.write(DeferredFixture.Record(key: key, value: nil, endedOffset: nil))
        deferred.read()
        #expect(pipeline.load.queued == 1, "it is a push by now")
        let offset = pipeline.event("door")
        pipeline.pass(.seconds(9))
        pipeline.pass(.zero)
        #expect(pipeline.load.deferred == 0)
        let written = deferred.produce().deferred
        #expect(written.count == 1 && written[0].value != nil, "the event's, and no tombstone")
        #expect(pipeline.committableOffset == offset + 1)
    }
}
