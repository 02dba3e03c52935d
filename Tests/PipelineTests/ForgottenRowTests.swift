// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Deferral
internal import Delivery
internal import Intake
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

/// Rows of `deferred` for which there is no room are left in Kafka, and read again.
@Suite struct `Forgotten rows` {
    /// The owner of a partition that has rows of controls, which are paused at times, and of widgets.
    private final class Owner {
        let pipeline: PipelineFixture
        let deferred: DeferredFixture
        /// How far the reading with this number has come.
        private var reading = (number: 0, position: 0)
        var readingsMade: Int { pipeline.counters.deferredReadings }

        init(at now: Now? = nil, log: [DeferredFixture.Record] = [], rowsMax: Int = 8) {
            pipeline = PipelineFixture { settings in
                settings.holdMax = .seconds(10)
                settings.registrationGrace = .zero
                settings.deferredMax = rowsMax
            }
            if let now { pipeline.now = now }
            for n in 1...60 as ClosedRange<UInt8> {
                pipeline.register(
                    "I\(n)",
                    [.control([n, 1], shows: ["s\(n)"]), .widget([n, 2], shows: ["s\(n)"])])
            }
            deferred = DeferredFixture(pipeline)
            deferred.log = log
        }

        func pause() { pipeline.restrict(.pushes(app: nil, tokenClass: .control), .pause) }
        func resume() { pipeline.restrict(.pushes(app: nil, tokenClass: .control), nil) }

        func key(_ n: UInt8, isWidget: Bool = false) -> String {
            let (suffix, number) = isWidget ? ("widgets", UInt8(2)) : ("controls", 1)
            return "production/com.example.Home.push-type.\(suffix)/"
                + Hexadecimal.encode([n, number])
        }

        func write(_ n: UInt8, isWidget: Bool = false) {
            let now = pipeline.now.wall
            deferred.write(
                DeferredFixture.Record(
                    key: key(n, isWidget: isWidget),
                    value: #"{"v":1,"notBefore":"\#(now.rfc3339)","#
                        + #""expiresAt":"\#((now + .seconds(7200)).rfc3339)","#
                        + #""class":"\#(isWidget ? "widget" : "control")","attempts":0}"#))
        }

        /// Somebody ends what waits for this control, up to an offset.
        func end(_ n: UInt8, upTo offset: Int64, isDropped: Bool = false) {
            deferred.write(
                DeferredFixture.Record(
                    key: key(n), value: nil, endedOffset: offset, isDropped: isDropped))
        }

        /// Reads up to `limit` records again, as far as that is asked for.
        func readAgain(limit: Int = .max) {
            for _ in 0..<min(limit, deferred.log.count + 1) {
                guard let asked = pipeline.pipeline.deferredReading else { return }
                if asked.number != reading.number {
                    reading = (asked.number, Int(asked.offset))
                }
                guard reading.position < deferred.log.count else {
                    return pipeline.pipeline.deferredReadAgain(
                        upTo: Int64(reading.position), now: pipeline.now)
                }
                let record = deferred.log[reading.position]
                withBytes(Array(record.key.utf8)) { key in
                    withBytes(record.value.map { Array($0.utf8) }) { value in
                        pipeline.pipeline.deferredReadAgain(
                            DeferredRecord(
                                offset: Int64(reading.position), key: key, value: value,
                                endedOffset: record.endedOffset, isDropped: record.isDropped,
                                writtenAt: record.writtenAt),
                            now: pipeline.now)
                    }
                }
                reading.position += 1
                pipeline.checkAfterCall()
            }
        }

        /// Goes on for some seconds.
        /// - Returns: the tokens of what was sent.
        func run(seconds: Int = 20) -> [[UInt8]] {
            var sent: [[UInt8]] = []
            for _ in 0..<(seconds * 10) {
                pipeline.pass(.milliseconds(100))
                sent += pipeline.deliverAll().map(\.token)
                deferred.produce()
                deferred.read()
                readAgain()
            }
            return sent
        }
    }

    private static func controls(_ range: ClosedRange<UInt8>) -> [[UInt8]] {
        range.map { [$0, 1] }
    }

    private static func widgets(_ range: ClosedRange<UInt8>) -> [[UInt8]] {
        range.map { [$0, 2] }
    }

    @Test func `the pushes of other routes do not stand behind paused ones`() {
        let owner = Owner()
        owner.deferred.assign()
        owner.pause()
        for n in 1...40 as ClosedRange<UInt8> { owner.write(n) }
        for n in 1...20 as ClosedRange<UInt8> { owner.write(n, isWidget: true) }
        #expect(owner.run().inOrder == Self.widgets(1...20))
        #expect(owner.pipeline.load.forgotten > 30)
        owner.resume()
        #expect(owner.run().inOrder == Self.controls(1...40), "each once")
        #expect(owner.pipeline.load.forgotten == 0 && owner.pipeline.load.deferred == 0)
        #expect(owner.readingsMade < 20, "a reading makes as many rows as there is room for")
    }

    @Test func `a reading of which Kafka sends nothing is given up, and tried again`() {
        let owner = Owner()
        owner.deferred.assign()
        owner.pause()
        for n in 1...40 as ClosedRange<UInt8> { owner.write(n) }
        owner.deferred.read()
        owner.resume()
        var numbers: Set<Int> = []
        for _ in 0..<900 {
            owner.pipeline.pass(.milliseconds(100))
            _ = owner.pipeline.deliverAll()
            owner.deferred.produce()
            owner.deferred.read()
            if let reading = owner.pipeline.pipeline.deferredReading {
                numbers.insert(reading.number)
            }
        }
        #expect(numbers.count == 3, "one each 30 s, so that other partitions have their turn")
        #expect(owner.run().count > 20 && owner.pipeline.load.forgotten == 0)
    }

    @Test func `what a full table has read makes room for others, and is read again`() {
        let owner = Owner()
        owner.deferred.assign()
        owner.pause()
        for n in 1...8 as ClosedRange<UInt8> { owner.write(n) }
        owner.deferred.read()
        #expect(owner.pipeline.load.deferred == 8 && owner.pipeline.load.forgotten == 0)
        for n in 1...8 as ClosedRange<UInt8> { owner.write(n, isWidget: true) }
        #expect(owner.run(seconds: 5).count == 8)
        #expect(owner.pipeline.load.forgotten > 0)
        owner.resume()
        #expect(owner.run().inOrder == Self.controls(1...8))
    }

    @Test func `a backlog of what may be sent is sent though it is larger than the memory`() {
        let owner = Owner()
        for n in 1...60 as ClosedRange<UInt8> { owner.write(n) }
        owner.deferred.assign()
        #expect(owner.run(seconds: 40).inOrder == Self.controls(1...60))
    }

    @Test func `a restart does not send again what has ended, though it is beyond the bound`() {
        let owner = Owner()
        for n in 1...60 as ClosedRange<UInt8> { owner.write(n) }
        for n in 1...50 as ClosedRange<UInt8> { owner.end(n, upTo: Int64(n) - 1) }
        owner.deferred.assign()
        #expect(owner.run().inOrder == Self.controls(51...60))
    }

    @Test func `what an operator drops meanwhile is not sent, and is counted`() {
        let owner = Owner()
        owner.deferred.assign()
        owner.pause()
        for n in 1...40 as ClosedRange<UInt8> { owner.write(n) }
        owner.deferred.read()
        for n in 1...30 as ClosedRange<UInt8> {
            owner.end(n, upTo: Int64(n) - 1, isDropped: true)
        }
        owner.deferred.read()
        #expect(owner.pipeline.counters.dropped == 30)
        owner.resume()
        #expect(owner.run().inOrder == Self.controls(31...40))
        #expect(owner.pipeline.counters.dropped == 30)
    }

    @Test func `a record that comes while its key is read again is not lost and not sent twice`() {
        let owner = Owner(rowsMax: 1)
        owner.deferred.assign()
        owner.pause()
        for n in 1...40 as ClosedRange<UInt8> { owner.write(n) }
        owner.deferred.read()
        #expect(owner.pipeline.load.deferred == HoldWatch.probesKept)
        owner.pipeline.pipeline.state.settings.deferredMax = 100
        owner.resume()
        owner.pipeline.pass(.milliseconds(100))
        owner.readAgain(limit: 20)
        #expect(owner.pipeline.pipeline.deferredReading != nil)
        owner.write(10)
        owner.write(41)
        owner.deferred.read()
        owner.readAgain()
        #expect(owner.run().inOrder == Self.controls(1...41))
    }

    @Test func `a pause while they are read again leaves them in Kafka`() {
        let owner = Owner(rowsMax: 1)
        owner.deferred.assign()
        owner.pause()
        for n in 1...40 as ClosedRange<UInt8> { owner.write(n) }
        owner.deferred.read()
        #expect(owner.pipeline.load.deferred == HoldWatch.probesKept)
        owner.pipeline.pipeline.state.settings.deferredMax = 100
        owner.resume()
        owner.pipeline.pass(.milliseconds(100))
        owner.readAgain(limit: 20)
        owner.pause()
        owner.pipeline.pass(.milliseconds(100))
        #expect(owner.pipeline.pipeline.deferredReading == nil)
        #expect(owner.pipeline.load.deferred == 4 && owner.pipeline.load.forgotten == 36)
        owner.resume()
        #expect(owner.run().inOrder == Self.controls(1...40))
    }

    @Test func `a push that ends while its partition is read again is not sent twice`() throws {
        let owner = Owner()
        let pipeline = owner.pipeline
        owner.deferred.assign()
        owner.write(1)
        owner.deferred.read()
        pipeline.pass(.milliseconds(10))
        let push = try #require(pipeline.take().first)
        owner.pause()
        for n in 2...40 as ClosedRange<UInt8> { owner.write(n) }
        owner.write(1, isWidget: true)
        owner.deferred.read()
        owner.resume()
        // Its tombstone is not in Kafka when the reading comes to its record.
        pipeline.answer(push, 200)
        for _ in 0..<10 {
            pipeline.pass(.milliseconds(100))
            owner.readAgain()
        }
        #expect(!pipeline.deliverAll().contains { $0.token == [1, 1] })
        #expect(!owner.run().contains([1, 1]))
    }

    @Test func `another owner goes on where this one has forgotten`() {
        let owner = Owner()
        owner.deferred.assign()
        owner.pause()
        for n in 1...40 as ClosedRange<UInt8> { owner.write(n) }
        owner.deferred.read()
        owner.resume()
        owner.pipeline.pass(.milliseconds(100))
        owner.readAgain(limit: 3)
        owner.deferred.revoke()
        #expect(owner.pipeline.pipeline.deferredReading == nil)
        #expect(owner.pipeline.load.forgotten == 0)
        let next = Owner(at: owner.pipeline.now, log: owner.deferred.log)
        next.deferred.assign()
        #expect(next.run().inOrder == Self.controls(1...40))
    }

    @Test func `an open breaker has rows to probe with, however many are forgotten`() {
        let owner = Owner()
        let pipeline = owner.pipeline
        owner.deferred.assign()
        pipeline.event("s60")
        for push in pipeline.take() { pipeline.answer(push, 403, .invalidProviderToken) }
        for n in 1...40 as ClosedRange<UInt8> { owner.write(n) }
        owner.deferred.read()
        #expect(pipeline.load.forgotten > 0)
        let sent = owner.run(seconds: 60)
        #expect(Set(sent).isSuperset(of: Self.controls(1...40)))
    }
}
