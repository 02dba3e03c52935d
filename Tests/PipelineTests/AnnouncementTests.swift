// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel
internal import Testing

@testable internal import Pipeline

/// Announcements of pushes with a minimum gap, where Kafka is slow or the partition is given up.
@Suite struct `Announcements of pushes with a minimum gap` {
    private let worker = GapWorker()

    // MARK: A slow Kafka

    @Test(arguments: [5, 19, 21, 30, 45, 90])
    func `a push with a minimum gap is sent though Kafka takes long for a record`(seconds: Int) {
        worker.pipeline.event("door")
        worker.pipeline.pass(.zero)
        #expect(worker.pipeline.take().isEmpty)
        var (sent, written) = (0, 0)
        for _ in 0..<6 where sent == 0 {
            worker.pipeline.pass(.seconds(seconds))
            written += worker.deferred.produce().deferred.count
            worker.deferred.read()
            worker.pipeline.pass(.zero)
            for push in worker.pipeline.take() {
                worker.pipeline.answer(push, 200)
                sent += 1
            }
        }
        // The event's record and its announcement; once more where nothing was known of Kafka's time.
        #expect(sent == 1 && written == (seconds <= 30 ? 2 : 3))
    }

    @Test func `no push is handed over when its announcement is nearly over`() {
        worker.deferPush()
        let announcement = worker.pipeline.takeRecords()
        worker.pipeline.pass(.seconds(41))
        worker.pipeline.acknowledge(announcement)
        worker.pipeline.pass(.zero)
        #expect(worker.pipeline.take().isEmpty, "what is left is not enough for a request")
    }

    @Test func `no more is announced than Kafka takes in a few seconds`() {
        var window = AnnouncementWindow()
        var now = MonotonicTime(nanoseconds: 1_000_000_000)
        for _ in 0..<4 {
            for _ in 0..<window.most { window.acknowledged(writtenAt: now) }
            now = now + .seconds(10)
            window.advance(now: now)
        }
        #expect(window.most == 64 && window.delay == .seconds(10))
        // What was written before the last one was judged says nothing more.
        window.acknowledged(writtenAt: now + .seconds(-5))
        window.advance(now: now)
        #expect(window.most == 64)
        for _ in 0..<9 {
            for _ in 0..<window.most { window.acknowledged(writtenAt: now) }
            now = now + .seconds(1)
            window.advance(now: now)
        }
        #expect(window.most == 8192 && window.delay == .seconds(1))
    }

    @Test func `while Kafka is slow few pushes are announced at a time`() {
        let worker = GapWorker()
        worker.pipeline.checksEachCall = false
        for number in 2...30 as ClosedRange<UInt8> {
            worker.pipeline.registerControl("I\(number)", [number], shows: ["door"])
        }
        worker.pipeline.event("door")
        #expect(worker.pipeline.take().isEmpty)
        worker.deferred.produce()
        worker.deferred.read()
        var now = worker.pipeline.now.monotonic
        for _ in 0..<8 {
            worker.pipeline.pipeline.deferral.announcements.acknowledged(writtenAt: now)
            now = now + .seconds(10)
            worker.pipeline.pipeline.deferral.announcements.advance(now: now)
        }
        worker.pipeline.pass(.zero)
        #expect(worker.pipeline.takeRecords().count == 4)
    }

    // MARK: A partition is given up

    private func drain() {
        worker.pipeline.pipeline.drain = .until(worker.pipeline.now.monotonic + .seconds(2))
        worker.pipeline.pass(.zero)
    }

    private var isDrained: Bool { worker.pipeline.pipeline.isDrained(worker.deferred.assignment!) }

    @Test func `a push whose announcement is on its way is taken back at once`() {
        worker.deferPush()
        #expect(!isDrained)
        drain()
        let written = worker.deferred.produce().deferred
        #expect(written.map { $0.contains("lastSentAt") } == [true, false])
        #expect(isDrained)
        #expect(worker.pipeline.take().isEmpty)
        worker.deferred.revoke()
        let next = GapWorker(at: worker.pipeline.now, log: worker.deferred.log)
        #expect(next.deliver() == 1, "the next owner keeps no distance to what was not sent")
    }

    @Test
    func `a partition waits for what takes an announcement back, and for the push in flight`() {
        worker.deferPush()
        worker.deferred.produce()
        worker.pipeline.pass(.zero)
        let sent = worker.pipeline.take()
        #expect(sent.count == 1 && !isDrained)
        drain()
        #expect(!isDrained && worker.pipeline.takeRecords().isEmpty)
        worker.pipeline.answer(sent[0], 200)
        #expect(!isDrained, "the record is on its way")
        worker.deferred.produce()
        #expect(isDrained && worker.latest.contains("\"sent\":true"))
    }

    @Test func `an announcement that is taken back counts no more when Kafka has it`() {
        worker.deferPush()
        let announcement = worker.pipeline.takeRecords()
        drain()
        // The partition stays after all, and the push is announced anew.
        worker.pipeline.pipeline.drain = nil
        worker.pipeline.pass(.zero)
        worker.pipeline.acknowledge(announcement)
        worker.pipeline.pass(.zero)
        #expect(worker.pipeline.take().isEmpty, "Kafka has no announcement that holds")
        worker.deferred.produce()
        worker.pipeline.pass(.zero)
        #expect(worker.pipeline.take().count == 1)
    }

    @Test func `a refused announcement that was taken back does not become the last record`() {
        worker.deferPush()
        let announcement = worker.pipeline.takeRecords()
        drain()
        worker.pipeline.pipeline.refused(announcement[0].ticket)
        let written = worker.deferred.produce().deferred
        #expect(written.map { $0.contains("lastSentAt") } == [false])
        #expect(isDrained)
    }

    @Test func `what is taken back is written as soon as there is room`() {
        let worker = GapWorker { $0.unacknowledgedMax = 1 }
        worker.deferPush()
        worker.pipeline.pipeline.drain = .until(worker.pipeline.now.monotonic + .seconds(2))
        worker.pipeline.pass(.zero)
        #expect(worker.deferred.produce().deferred.count == 1, "no room beside the announcement")
        worker.pipeline.pass(.milliseconds(1))
        #expect(worker.deferred.produce().deferred.map { $0.contains("lastSentAt") } == [false])
    }
}
