// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Pipeline
internal import PushModel
internal import RecordFormats
internal import Testing

/// While partitions are given up nothing holds their offsets back that can wait in Kafka as well.
@Suite struct `A drain` {
    private let pipeline: PipelineFixture
    private let deferred: DeferredFixture

    init() {
        pipeline = PipelineFixture { settings in
            settings.registrationGrace = .zero
            // With its jitter 5 s at least.
            settings.retryBackoff = Backoff(least: .seconds(50), most: .seconds(50))
        }
        deferred = DeferredFixture(pipeline)
        for number in 0..<4 as Range<UInt8> {
            pipeline.registerControl("I\(number)", [number], shows: ["s\(number)"])
        }
    }

    private func drain(for duration: Duration) {
        pipeline.pipeline.drain = .until(pipeline.now.monotonic + duration)
        pipeline.pass(.milliseconds(10))
    }

    @Test func `a drain defers at once what waits behind an open breaker`() {
        for number in 0..<4 { pipeline.event("s\(number)") }
        pipeline.answer(pipeline.take(1)[0], 403, .invalidProviderToken)
        pipeline.pass(.milliseconds(10))
        #expect(deferred.produce().deferred.isEmpty && pipeline.committableOffset == 0)
        drain(for: .seconds(2))
        #expect(deferred.produce().deferred.count == 4)
        #expect(pipeline.committableOffset == 4 && pipeline.load.queued == 0)
    }

    @Test func `a drain defers at once what rests for longer than it lasts, and nothing else`() {
        let rests = pipeline.event("s0")
        pipeline.answer(pipeline.take()[0], 503, .serviceUnavailable)
        pipeline.event("s1")
        drain(for: .seconds(60))
        #expect(deferred.produce().deferred.isEmpty, "both can be sent in time")
        #expect(pipeline.committableOffset == rests)
        drain(for: .seconds(2))
        #expect(deferred.produce().deferred.map { $0.key.suffix(3) } == ["/00"])
        #expect(pipeline.deliverAll().map(\.token) == [[1]])
        #expect(pipeline.committableOffset == 2)
    }

    @Test func `a drain puts a deferred push that waits for a probe back where it waited`() {
        deferred.assign()
        pipeline.event("s0")
        pipeline.answer(pipeline.take()[0], 503, .serviceUnavailable)
        drain(for: .seconds(2))
        deferred.produce()
        pipeline.pipeline.drain = nil
        deferred.read()
        // Its time comes while APNs refuses the key.
        pipeline.event("s1")
        pipeline.answer(pipeline.take()[0], 403, .invalidProviderToken)
        pipeline.pass(.seconds(60))
        #expect(pipeline.load.queued == 2)
        drain(for: .seconds(2))
        deferred.produce()
        #expect(pipeline.load.queued == 0 && pipeline.load.deferred >= 1)
        #expect(pipeline.committableOffset == 2)
    }

    @Test func `a drain defers whatever waits when nothing is handed over any more`() {
        pipeline.event("s0")
        pipeline.pipeline.drain = .ending
        pipeline.pass(.milliseconds(10))
        #expect(deferred.produce().deferred.count == 1)
        #expect(pipeline.committableOffset == 1)
    }

    @Test func `a drain does not count a record that Kafka refuses among those that it waits for`()
    {
        pipeline.event("s0", "{")
        let letter = pipeline.takeRecords()
        #expect(pipeline.load.unacknowledged == 1 && pipeline.load.refused == 0)
        for _ in 0..<2 { pipeline.pipeline.refused(letter[0].ticket) }
        #expect(pipeline.load.unacknowledged == 1 && pipeline.load.refused == 1)
        pipeline.acknowledge(letter)
        #expect(pipeline.load.unacknowledged == 0 && pipeline.load.refused == 0)
    }
}
