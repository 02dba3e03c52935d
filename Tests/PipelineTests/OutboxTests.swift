// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Ledger
internal import PushModel
internal import RecordFormats
internal import Testing

@testable internal import Pipeline

@Suite struct `The outbox` {
    @Test func `the outbox holds the offsets of a record until Kafka has it`() {
        var tracker = OffsetTracker(registrationGrace: .zero)
        var outbox = Outbox(settings: PipelineSettings())
        let claim = tracker.readOne()
        outbox.write(RecordDraft(.deadLetters, key: [1], value: [2], claims: [claim]))
        outbox.checkInvariants()
        let waiting = tracker.claimCount
        outbox.acknowledged(outbox.records[0].ticket, &tracker)
        outbox.checkInvariants()
        let (left, isEmpty) = (tracker.claimCount, outbox.isEmpty)
        #expect(waiting == 1 && left == 0 && isEmpty)
    }

    @Test func `the outbox has a refused record produced again, and its offsets wait`() throws {
        var tracker = OffsetTracker(registrationGrace: .zero)
        var outbox = Outbox(settings: PipelineSettings())
        outbox.write(RecordDraft(.deadLetters, key: [1], value: [2], claims: [tracker.readOne()]))
        let ticket = outbox.takeRecords()[0].ticket
        let open = outbox.refused(ticket)
        let refused = try #require(open)
        outbox.produceAgain(refused, &tracker)
        outbox.checkInvariants()
        let again = outbox.records.map(\.ticket)
        let (left, count) = (tracker.claimCount, outbox.tickets.refused)
        #expect(again == [ticket] && left == 1 && count == 1)
    }

    @Test func `the outbox lets a later deferral of a key speak for a refused one`() throws {
        var tracker = OffsetTracker(registrationGrace: .zero)
        var outbox = Outbox(settings: PipelineSettings())
        for value in [1, 2] as [UInt8] {
            outbox.write(
                RecordDraft(.deferred, key: [7], value: [value], claims: [tracker.readOne()]))
        }
        let open = outbox.refused(outbox.records[0].ticket)
        let refused = try #require(open)
        outbox.produceAgain(refused, &tracker)
        outbox.checkInvariants()
        let (count, held) = (outbox.records.count, tracker.claimCount)
        #expect(count == 2 && held == 1, "the later one has the older claim")
        outbox.acknowledged(outbox.records[1].ticket, &tracker)
        let left = tracker.claimCount
        #expect(left == 0)
    }

    @Test func `the outbox keeps one claim of a partition, however often a key is deferred again`()
    {
        var tracker = OffsetTracker(registrationGrace: .zero)
        var outbox = Outbox(settings: PipelineSettings())
        let id = AssignmentID(ordinal: 0, epoch: 1)
        tracker.open(id, topic: 0, partition: 0, startOffset: 0)
        for offset in 0..<100 as Range<Int64> {
            tracker.received(id, offset: offset, now: MonotonicTime(nanoseconds: 0))
            outbox.write(RecordDraft(.deferred, key: [7], value: [1], claims: [tracker.claim(id)]))
        }
        // Kafka takes nothing, and refuses them in any order.
        for record in outbox.takeRecords().dropLast().shuffled() {
            if let refused = outbox.refused(record.ticket) {
                outbox.produceAgain(refused, &tracker)
            }
            outbox.checkInvariants()
        }
        let (left, ended, bytes) = (
            tracker.claimCount, tracker.endedOffset(id), outbox.waiting(for: .deferred).bytes
        )
        #expect(left == 1 && ended == 0 && bytes < 1000, "the oldest is held")
    }

    @Test func `the outbox keeps refused shards apart, oldest first, to be fanned out here`() {
        var tracker = OffsetTracker(registrationGrace: .zero)
        var outbox = Outbox(settings: PipelineSettings())
        for key in 0..<3 as Range<UInt8> {
            outbox.write(RecordDraft(.events, key: [key], value: [1], claims: [tracker.readOne()]))
        }
        for record in outbox.records {
            let isProducedAgain = outbox.refused(record.ticket) != nil
            #expect(!isProducedAgain)
        }
        outbox.checkInvariants()
        var keys: [UInt8] = []
        while let shard = outbox.popRefusedShard() {
            keys += shard.record.key
            for claim in shard.claims { tracker.release(claim) }
        }
        let (hasMore, left) = (outbox.hasRefusedShards, tracker.claimCount)
        #expect(keys == [0, 1, 2] && !hasMore && left == 0)
    }
}

extension MonotonicTime {
    fileprivate static func after(_ duration: Duration) -> MonotonicTime {
        MonotonicTime(nanoseconds: 5_000_000_000_000) + duration
    }
}

extension OffsetTracker {
    /// Reads a record of a partition of its own, and holds it.
    fileprivate mutating func readOne() -> OffsetClaim {
        let id = AssignmentID(ordinal: 0, epoch: 1)
        if !isOpen(id) { open(id, topic: 0, partition: 0, startOffset: 0) }
        received(id, offset: nextOffset(id), now: .after(.zero))
        return claim(id)
    }
}

@Suite struct `The watch over dead letters` {
    @Test func `the watch takes letters for stalled that go out too slowly while room is short`() {
        for (closed, isStalled) in [(11, true), (12, false)] {
            var watch = LetterWatch()
            watch.looked(isFull: true, closed: 0, roomBytes: 100, now: .after(.zero))
            watch.looked(isFull: true, closed: 0, roomBytes: 100, now: .after(.milliseconds(499)))
            #expect(!watch.isStalled, "it has not looked for long enough")
            watch.looked(
                isFull: true, closed: closed, roomBytes: 100, now: .after(.milliseconds(500)))
            #expect(watch.isStalled == isStalled)
            watch.looked(isFull: false, closed: closed, roomBytes: 100, now: .after(.seconds(1)))
            #expect(!watch.isStalled && !watch.isFull)
        }
    }
}

@Suite struct `The watch over long holds` {
    @Test func `the watch over long holds comes round all slots in half a second`() {
        var watch = HoldWatch()
        var seen = 0
        for step in 0..<500 {
            seen += watch.slotsToCheck(of: 100_000, now: .after(.milliseconds(step)))
        }
        #expect((100_000..<120_000).contains(seen))
    }

    @Test func `the watch over long holds leaves time for Kafka's acknowledgement`() {
        #expect(HoldWatch.patience(.seconds(10)) == .seconds(8))
        #expect(HoldWatch.patience(.seconds(5)) == .seconds(4))
    }
}
