// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel
internal import Testing

@testable internal import Pipeline

/// Background pushes keep a gap, so each of them goes through `deferred`; controls keep none.
@Suite struct `An absent topic deferred` {
    /// A worker that owns no partition of `deferred`. Of some partitions Kafka acknowledges nothing.
    private final class Worker {
        static let partitions = 4
        let pipeline: PipelineFixture
        var absent: Set<Int> = []
        /// Records of partitions that were absent when they were produced.
        private var stuck: [ProducedRecord] = []
        private(set) var written = 0
        private var next = 0

        init(adjust: (inout PipelineSettings) -> Void = { _ in }) {
            pipeline = PipelineFixture { settings in
                settings.slots = 1024
                settings.holdMax = .seconds(10)
                settings.registrationGrace = .zero
                settings.unacknowledgedMax = 400
                settings.minimumGaps[.background] = .seconds(1800)
                adjust(&settings)
            }
            pipeline.checksEachCall = false
            pipeline.pipeline.adopt(deferredPartitions: Self.partitions)
            for number in 0..<2000 as Range<UInt16> {
                pipeline.register(
                    "D\(number)",
                    [.device(Self.token(number), shows: ["d\(number)"], hearsChanges: true)])
            }
            pipeline.registerControl("C", [9], shows: ["c"])
        }

        static func token(_ number: UInt16) -> [UInt8] {
            [0, UInt8(number >> 8), UInt8(number & 255)]
        }

        static func partition(of record: ProducedRecord) -> Int {
            KeyPartition.of(Array(record.key.utf8), partitions: partitions)
        }

        /// Half a second with so many events of the next background tokens.
        /// - Returns: what was sent, and accepted, by type.
        func halfSecond(events: Int) -> [PushType: Int] {
            var sent: [PushType: Int] = [:]
            for step in 0..<10 {
                for _ in 0..<events / 10 {
                    pipeline.event("d\(next % 2000)")
                    next += 1
                }
                if step == 0 { pipeline.event("c") }
                pipeline.pass(.milliseconds(50))
                for push in pipeline.take(512) {
                    sent[push.type, default: 0] += 1
                    pipeline.answer(push, 200)
                }
                produce()
            }
            pipeline.pipeline.checkInvariants()
            return sent
        }

        func produce() {
            for record in pipeline.takeRecords() {
                if absent.contains(Self.partition(of: record)) {
                    stuck.append(record)
                } else {
                    written += 1
                    pipeline.acknowledge([record])
                }
            }
        }

        /// The partitions have a leader again.
        func restore() {
            absent = []
            pipeline.acknowledge(stuck)
            written += stuck.count
            stuck = []
        }

        var waiting: Int { pipeline.load.queued + pipeline.load.resting }
        var withoutGap: Int { pipeline.counters.pushesWithoutGap }
    }

    private let worker = Worker()

    @Test func `one absent partition of deferred takes no other's room`() {
        worker.absent = [0]
        for _ in 0..<9 {
            let before = worker.written
            let sent = worker.halfSecond(events: 200)
            #expect(sent[.controls] == 1)
            // Three quarters of the records are of other partitions.
            #expect(worker.written - before > 120)
            #expect(worker.waiting <= 1024 / 16)
        }
    }

    @Test
    func `where deferred acknowledges nothing for some seconds, plain pushes go without a gap`() {
        let worker = Worker { $0.unacknowledgedMax = 4000 }
        worker.absent = [0, 1, 2, 3]
        for _ in 0..<9 {
            let sent = worker.halfSecond(events: 50)
            #expect(sent == [.controls: 1], "Kafka may have no leader for a moment")
        }
        for _ in 0..<6 { _ = worker.halfSecond(events: 50) }
        let before = worker.withoutGap
        let sent = worker.halfSecond(events: 50)
        #expect(sent == [.controls: 1, .background: 50] && worker.withoutGap == before + 50)
        #expect(worker.waiting == 0)
    }

    @Test func `pushes that find no room in deferred hold a sixteenth of the slots`() {
        worker.absent = [0, 1, 2, 3]
        var most = 0
        for _ in 0..<30 {
            let sent = worker.halfSecond(events: 800)
            #expect(sent[.controls] == 1)
            most = max(most, worker.waiting)
        }
        #expect((1...1024 / 16).contains(most), "\(most)")
        #expect(worker.pipeline.pipeline.roomForEvents > 0)
        #expect(worker.withoutGap > 10_000)
    }

    @Test func `gaps are kept again when deferred is back`() {
        worker.absent = [0, 1, 2, 3]
        for _ in 0..<20 { _ = worker.halfSecond(events: 50) }
        #expect(worker.withoutGap > 0)
        worker.restore()
        _ = worker.halfSecond(events: 50)
        let (before, written) = (worker.withoutGap, worker.written)
        let sent = worker.halfSecond(events: 50)
        #expect(sent == [.controls: 1] && worker.withoutGap == before)
        #expect(worker.written == written + 50)
    }

    @Test func `the room of a large audience is not a small one's, and it goes on in deferred`() {
        // More than `deferred` takes at once.
        for number in 0..<2000 as Range<UInt16> {
            worker.pipeline.register(
                "D\(number)",
                [
                    .device(
                        Worker.token(number), shows: ["d\(number)", "news"], hearsChanges: true)
                ])
        }
        worker.pipeline.event("news")
        for _ in 0..<6 { _ = worker.halfSecond(events: 0) }
        #expect(worker.withoutGap == 0 && worker.written == 2000)
    }

    @Test func `an alert that waits for another reason keeps waiting, and is sent`() {
        worker.absent = [0, 1, 2, 3]
        for _ in 0..<14 { _ = worker.halfSecond(events: 200) }
        let offset = worker.pipeline.event("d7", EventValue.alert("Look"))
        let push = worker.pipeline.take().first { $0.type == .alert }
        worker.pipeline.answer(push!, 429, .tooManyRequests, retryAfterSeconds: 60)
        for _ in 0..<100 { _ = worker.halfSecond(events: 0) }
        #expect(worker.pipeline.committableOffset <= offset)
        worker.pipeline.pass(.seconds(20))
        let again = worker.pipeline.take().filter { $0.type == .alert }
        #expect(again.count == 1 && again[0].apnsID == push!.apnsID)
    }
}

/// The worker owns two partitions of `deferred`, and Kafka takes nothing of one of them.
@Suite struct `An absent partition of deferred and the rows of the others` {
    private let pipeline = PipelineFixture { settings in
        settings.slots = 256
        settings.holdMax = .seconds(10)
        settings.registrationGrace = .zero
        settings.minimumGaps[.controls] = .seconds(60)
    }

    @Test func `rows that cannot be announced do not keep those of other partitions`() {
        pipeline.pipeline.adopt(deferredPartitions: 2)
        let absent = DeferredFixture(pipeline, partition: 0)
        let present = DeferredFixture(pipeline, partition: 1)
        absent.assign()
        present.assign()
        pipeline.checksEachCall = false
        var numbers = [0, 0]
        for number in 0..<200 as Range<UInt8> {
            pipeline.registerControl("I\(number)", [number], shows: ["s\(number)"])
            let hex = Hexadecimal.encode([number])
            let key = "production/com.example.Home.push-type.controls/\(hex)"
            let partition = KeyPartition.of(Array(key.utf8), partitions: 2)
            let (notBefore, expiresAt) = (pipeline.now.wall, pipeline.now.wall + .seconds(3600))
            numbers[partition] += 1
            let owner = partition == 0 ? absent : present
            owner.write(
                DeferredFixture.Record(
                    key: key,
                    value: #"{"v":1,"notBefore":"\#(notBefore.rfc3339)","#
                        + #""expiresAt":"\#(expiresAt.rfc3339)","class":"control","attempts":0}"#))
            owner.read()
        }
        var sent = 0
        for _ in 0..<300 {
            pipeline.pass(.milliseconds(100))
            for push in pipeline.take() {
                sent += 1
                pipeline.answer(push, 200)
            }
            let records = pipeline.takeRecords()
            pipeline.acknowledge(records.filter { $0.partition == 1 })
            #expect(pipeline.load.queued + pipeline.load.resting == 0)
        }
        #expect(sent == numbers[1] && numbers[0] > 64)
        #expect(pipeline.load.deferred == numbers[0], "these are owed")
        pipeline.pipeline.checkInvariants()
    }

    @Test func `rows that end there write no more records than have room`() {
        let pipeline = PipelineFixture { settings in
            settings.registrationGrace = .zero
            settings.unacknowledgedMax = 32
        }
        pipeline.pipeline.adopt(deferredPartitions: 2)
        let absent = DeferredFixture(pipeline, partition: 0)
        absent.assign()
        pipeline.checksEachCall = false
        // Nobody is registered, so all of them end, half of them as expired.
        for number in 0..<200 as Range<UInt8> {
            let (now, life) = (pipeline.now.wall, Duration.seconds(number % 2 == 0 ? 20 : 7200))
            absent.write(
                DeferredFixture.Record(
                    key: "production/com.example.Home.push-type.controls/"
                        + Hexadecimal.encode([number]),
                    value: #"{"v":1,"notBefore":"\#(now.rfc3339)","#
                        + #""expiresAt":"\#((now + life).rfc3339)","class":"control","attempts":0}"#
                ))
        }
        absent.read()
        var stuck = pipeline.takeRecords()
        for _ in 0..<1000 {
            pipeline.pass(.milliseconds(100))
            stuck += pipeline.takeRecords()
        }
        #expect((1...17).contains(stuck.count), "a share of 16")
        #expect(pipeline.load.deferred > 100)
        for _ in 0..<1000 where pipeline.load.deferred > 0 {
            pipeline.acknowledge(stuck)
            pipeline.pass(.seconds(2))
            stuck = pipeline.takeRecords()
        }
        #expect(pipeline.load.deferred == 0, "its leader is back")
    }
}
