// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Pipeline
internal import PushModel
internal import Testing

/// Background pushes that come faster than APNs takes them do not delay a control.
@Suite struct `Urgent pushes` {
    private static let devices = 3000

    private func fixture() -> PipelineFixture {
        let pipeline = PipelineFixture { settings in
            settings.slots = 2048
            settings.immediateFanOutMax = 4
            settings.registrationGrace = .zero
            settings.holdMax = .seconds(10)
        }
        pipeline.checksEachCall = false
        pipeline.registerControl("A", [1], shows: ["door"])
        for number in 0..<Self.devices {
            pipeline.register(
                "D\(number)",
                [
                    .device(
                        [2, UInt8(number >> 8), UInt8(number & 255)], shows: ["sync-\(number)"],
                        hearsChanges: true)
                ])
        }
        return pipeline
    }

    /// Plays five seconds in which APNs takes 4 pushes a millisecond, a control's event comes every
    /// 50 ms, and others before it in the same partition.
    ///
    /// - Parameter hotEvery: the milliseconds from one event of the subject "hot" to the next.
    /// - Returns: how many milliseconds each control took until it was answered, and the number of
    ///   other pushes that were.
    private func play(
        backgroundPerMillisecond: Int, hotEvery: Int? = nil, _ pipeline: PipelineFixture
    ) -> (controls: [Int], others: Int) {
        var unread: [String] = []
        var inFlight: [(push: SentPush, doneAt: Int)] = []
        var (asked, took, others, next) = ([Int](), [Int](), 0, 0)
        for time in 0..<5000 {
            if let hotEvery, time % hotEvery == 0 { unread.append("hot") }
            for _ in 0..<backgroundPerMillisecond {
                unread.append("sync-\(next % Self.devices)")
                next += 1
            }
            if time % 50 == 49 {
                unread.append("door")
                asked.append(time)
            }
            while let done = inFlight.first, done.doneAt <= time {
                pipeline.answer(inFlight.removeFirst().push, 200)
                if done.push.token == [1] {
                    took.append(time - asked.removeFirst())
                } else {
                    others += 1
                }
            }
            let read = min(unread.count, pipeline.pipeline.roomForEvents)
            for subject in unread[..<read] { pipeline.event(subject) }
            unread.removeFirst(read)
            pipeline.pass(.milliseconds(1))
            inFlight += pipeline.take(min(4, 80 - inFlight.count)).map { ($0, time + 20) }
            pipeline.acknowledge(pipeline.takeRecords())
        }
        return (took, others)
    }

    private func p99(_ times: [Int]) -> Int { times.sorted()[times.count * 99 / 100] }

    @Test func `a control takes no longer while background pushes are more than APNs takes`() {
        let quiet = play(backgroundPerMillisecond: 0, fixture())
        let pipeline = fixture()
        let busy = play(backgroundPerMillisecond: 12, pipeline)
        pipeline.checkInvariants()
        #expect(quiet.controls.count >= 98 && busy.controls.count >= 98)
        let p99 = (p99(quiet.controls), p99(busy.controls))
        #expect(p99.1 <= 2 * p99.0, "p99 of \(p99.1) ms, and of \(p99.0) ms in quiet")
        #expect(busy.others > 15_000, "APNs is kept busy: \(busy.others)")
        #expect(pipeline.counters.deferred > 1000)
    }

    @Test func `a hot subject that asks more of APNs than it takes does not delay a control`() {
        let pipeline = fixture()
        for number in 0..<5000 {
            pipeline.registerControl(
                "H\(number)", [3, UInt8(number >> 8), UInt8(number & 255)], shows: ["hot"])
        }
        let quiet = play(backgroundPerMillisecond: 0, fixture())
        let busy = play(backgroundPerMillisecond: 0, hotEvery: 1000, pipeline)
        pipeline.checkInvariants()
        let p99 = (p99(quiet.controls), p99(busy.controls))
        #expect(quiet.controls.count >= 98 && busy.controls.count >= 98)
        #expect(p99.1 <= 2 * p99.0, "p99 of \(p99.1) ms, and of \(p99.0) ms in quiet")
        #expect(busy.others > 15_000, "APNs is kept busy: \(busy.others)")
    }

    @Test func `events wait in Kafka, not in deferred, where all pushes are equally urgent`() {
        let pipeline = fixture()
        var read = 0
        for _ in 0..<500 {
            while pipeline.pipeline.hasRoomForEvents {
                pipeline.event("sync-\(read % Self.devices)")
                read += 1
            }
            pipeline.pass(.milliseconds(1))
        }
        #expect(pipeline.counters.deferred == 0)
        #expect(read < 2048)
    }

    @Test func `background pushes that came back from deferred are not sent there again`() {
        let pipeline = fixture()
        let deferred = DeferredFixture(pipeline)
        deferred.assign()
        pipeline.event("door")
        _ = pipeline.deliverAll()
        var (next, written) = (0, 0)
        for _ in 0..<300 {
            for _ in 0..<12 where pipeline.pipeline.hasRoomForEvents {
                pipeline.event("sync-\(next % Self.devices)")
                next += 1
            }
            pipeline.pass(.milliseconds(1))
            written += deferred.produce().deferred.count {
                $0.value != nil && $0.endedOffset == nil
            }
            deferred.read()
        }
        pipeline.checkInvariants()
        #expect(pipeline.counters.deferredSent > 0)
        #expect(pipeline.counters.deferred == written)
    }
}
