// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// Somebody has given `deferred` more partitions: keys lead elsewhere than where their records stand.
@Suite struct `Added partitions of deferred` {
    private let pipeline: PipelineFixture
    private let old: DeferredFixture
    private let new: DeferredFixture

    init() {
        pipeline = PipelineFixture { settings in
            settings.holdMax = .seconds(10)
            settings.registrationGrace = .zero
        }
        pipeline.registerControl("A", [1], shows: ["door"])
        old = DeferredFixture(pipeline, partition: 3)
        new = DeferredFixture(pipeline, partition: 12)
        old.assign()
        new.assign()
    }

    private static let key = "production/com.example.Home.push-type.controls/01"

    private func record(
        after delay: Duration = .zero, ttl: Duration = .seconds(3600)
    ) -> DeferredFixture.Record {
        let (notBefore, expiresAt) = (pipeline.now.wall + delay, pipeline.now.wall + ttl)
        return DeferredFixture.Record(
            key: Self.key,
            value: #"{"v":1,"notBefore":"\#(notBefore.rfc3339)","#
                + #""expiresAt":"\#(expiresAt.rfc3339)","class":"control","attempts":0}"#)
    }

    private func write(_ record: DeferredFixture.Record, to partition: DeferredFixture) {
        partition.write(record)
        partition.read()
    }

    @Test func `a tombstone goes to the partition in which the record stands`() {
        write(record(), to: old)
        pipeline.pass(.milliseconds(10))
        pipeline.answer(pipeline.take()[0], 200)
        pipeline.pass(.zero)
        let ended = pipeline.takeRecords()
        #expect(ended.map(\.partition) == [3])
        // So does one that Kafka has refused.
        pipeline.pipeline.refused(ended[0].ticket)
        #expect(pipeline.takeRecords().map(\.partition) == [3])
    }

    @Test func `what is written again goes to the record's partition too`() {
        write(record(after: .seconds(60), ttl: .seconds(3600)), to: old)
        write(record(after: .seconds(60), ttl: .seconds(90)), to: old)
        let again = pipeline.takeRecords()
        #expect(again.map(\.partition) == [3] && again.map(\.endedOffset) == [1])
    }

    @Test func `a deferral goes where its key leads`() {
        pipeline.event("door")
        pipeline.pass(.seconds(9))
        let deferral = pipeline.takeRecords()
        #expect(deferral.map(\.topic) == [.deferred] && deferral.map(\.partition) == [nil])
    }

    @Test func `a record in the new partition is not taken for an older one of the old`() {
        for _ in 0..<5 { write(record(after: .seconds(5)), to: old) }
        // Its offset is lower than what is known of the key.
        write(record(after: .seconds(30)), to: new)
        #expect(pipeline.load.deferred == 2)
        pipeline.pass(.seconds(6))
        #expect(pipeline.deliverAll().count == 1)
        pipeline.pass(.zero)
        #expect(old.produce().deferred.map(\.partition) == [3])
        old.read()
        pipeline.pass(.seconds(30))
        #expect(pipeline.deliverAll().count == 1, "each of them was owed")
        pipeline.pass(.zero)
        #expect(new.produce().deferred.map(\.partition) == [12])
        #expect(pipeline.load.deferred == 0)
    }
}
