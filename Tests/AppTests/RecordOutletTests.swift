// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Rdkafka
internal import Testing

@testable internal import Pipeline
@testable internal import Worker

@Suite struct `Records in the outlet to the producer` {
    private func at(_ milliseconds: Int64) -> Now {
        Now(
            monotonic: MonotonicTime(nanoseconds: 1_000_000_000_000 + milliseconds * 1_000_000),
            wall: WallTime(milliseconds: 1_763_712_000_000 + milliseconds))
    }

    private func record(_ ticket: UInt64, bytes: Int = 10) -> OutgoingRecord {
        OutgoingRecord(
            topic: .deadLetters, key: [], value: Array(repeating: 0, count: bytes), ticket: ticket)
    }

    /// Offers what may be offered; the producer takes all of it.
    private func offer(_ outlet: inout RecordOutlet, _ now: Now) -> [UInt64] {
        var tickets: [UInt64] = []
        while let record = outlet.next(now: now) {
            outlet.take(isAccepted: true, now: now)
            tickets.append(record.ticket)
        }
        return tickets
    }

    @Test func `records in the outlet go in their order, so many and so many bytes at once`() {
        var outlet = RecordOutlet(recordsMax: 3, bytesMax: 100)
        for ticket in 1...5 as ClosedRange<UInt64> { outlet.append(record(ticket)) }
        outlet.append(record(6, bytes: 95))
        outlet.append(record(7))
        outlet.append(record(8, bytes: 1000))
        let offered1 = offer(&outlet, at(0))
        #expect(offered1 == [1, 2, 3])
        let reports = [2, 2, 9].map { outlet.reported($0, cause: nil, now: at(1)) }
        #expect(reports == [true, false, false])
        let offered2 = offer(&outlet, at(1))
        #expect(offered2 == [4])
        for ticket in [1, 3] as [UInt64] { _ = outlet.reported(ticket, cause: nil, now: at(2)) }
        let offered3 = offer(&outlet, at(2))
        #expect(offered3 == [5], "the next one is too long beside them")
        for ticket in [4, 5] as [UInt64] { _ = outlet.reported(ticket, cause: nil, now: at(3)) }
        let offered4 = offer(&outlet, at(3))
        #expect(offered4 == [6])
        _ = outlet.reported(6, cause: nil, now: at(4))
        let offered5 = offer(&outlet, at(4))
        #expect(offered5 == [7])
        _ = outlet.reported(7, cause: nil, now: at(5))
        let offered6 = offer(&outlet, at(5))
        #expect(offered6 == [8], "alone any may go")
        #expect(outlet.waitingCount == 0 && outlet.offeredCount == 1)
    }

    @Test func `records are offered singly after a refusal, with a back-off, until one is taken`() {
        var outlet = RecordOutlet(recordsMax: 10, bytesMax: 1000)
        for ticket in 1...30 as ClosedRange<UInt64> { outlet.append(record(ticket)) }
        let offered7 = offer(&outlet, at(0))
        #expect(offered7.count == 10)
        #expect(outlet.trouble(now: at(0)) == nil)
        // They fail together, and count as one refusal. Each stands at the end of the line again.
        for ticket in 1...10 as ClosedRange<UInt64> {
            _ = outlet.reported(ticket, cause: "gone", now: at(0))
            outlet.append(record(ticket))
        }
        #expect(outlet.trouble(now: at(0)) == RecordOutlet.Trouble(cause: "gone"))
        var tries: [Int64] = []
        for second in 0..<125 as Range<Int64> {
            for ticket in offer(&outlet, at(second * 1000)) {
                tries.append(second)
                _ = outlet.reported(ticket, cause: "gone", now: at(second * 1000))
                outlet.append(record(ticket))
            }
        }
        #expect(tries == [1, 3, 7, 15, 31, 61, 91, 121])
        let offered8 = offer(&outlet, at(151_000))
        #expect(offered8.count == 1)
        let offered9 = offer(&outlet, at(300_000))
        #expect(offered9.isEmpty, "one at a time")
        _ = outlet.reported(19, cause: "gone", now: at(300_000))
        let offered10 = offer(&outlet, at(400_000))
        #expect(offered10 == [20])
        _ = outlet.reported(20, cause: nil, now: at(400_000))
        #expect(outlet.trouble(now: at(400_000)) == nil)
        let offered11 = offer(&outlet, at(400_000))
        #expect(offered11.count == 10)
    }

    @Test func `records come back during a back-off, and at its end those of one event try again`()
    {
        var outlet = RecordOutlet(recordsMax: 10, bytesMax: 1000)
        for ticket in 1...30 as ClosedRange<UInt64> { outlet.append(record(ticket)) }
        #expect(offer(&outlet, at(0)).count == 10 && outlet.breaker(now: at(0)) == .closed)
        #expect(outlet.withdraw(now: at(0)).isEmpty)
        _ = outlet.reported(1, cause: "gone", now: at(0))
        #expect(outlet.breaker(now: at(0)) == .open)
        #expect(outlet.withdraw(now: at(0)).map(\.ticket) == Array(11...30))
        #expect(outlet.waitingCount == 0 && outlet.offeredCount == 9)
        #expect(outlet.breaker(now: at(1000)) == .open, "others have not failed yet")
        for ticket in 2...10 as ClosedRange<UInt64> {
            _ = outlet.reported(ticket, cause: "gone", now: at(500))
        }
        #expect(outlet.breaker(now: at(999)) == .open && outlet.breaker(now: at(1000)) == .halfOpen)

        for ticket in 31...33 as ClosedRange<UInt64> { outlet.append(record(ticket)) }
        #expect(outlet.breaker(now: at(1000)) == .open)
        #expect(offer(&outlet, at(1000)) == [31])
        #expect(outlet.breaker(now: at(1000)) == .open)
        #expect(outlet.withdraw(now: at(1000)).isEmpty, "they wait for the first")
        _ = outlet.reported(31, cause: "gone", now: at(1001))
        #expect(outlet.withdraw(now: at(1001)).map(\.ticket) == [32, 33])
        #expect(
            outlet.breaker(now: at(3000)) == .open && outlet.breaker(now: at(3001)) == .halfOpen)

        for ticket in 34...36 as ClosedRange<UInt64> { outlet.append(record(ticket)) }
        #expect(offer(&outlet, at(4000)) == [34])
        _ = outlet.reported(34, cause: nil, now: at(4001))
        #expect(outlet.withdraw(now: at(4001)).isEmpty && outlet.breaker(now: at(4001)) == .closed)
        #expect(offer(&outlet, at(4001)) == [35, 36])
    }

    @Test func `records come back when nothing is said of those before them for ten seconds`() {
        var outlet = RecordOutlet(recordsMax: 1, bytesMax: 1000)
        outlet.append(record(1))
        outlet.append(record(2))
        #expect(offer(&outlet, at(0)) == [1])
        #expect(outlet.breaker(now: at(9999)) == .closed && outlet.withdraw(now: at(9999)).isEmpty)
        #expect(outlet.breaker(now: at(10_000)) == .open)
        #expect(outlet.withdraw(now: at(10_000)).map(\.ticket) == [2])
        _ = outlet.reported(1, cause: nil, now: at(10_001))
        #expect(outlet.breaker(now: at(10_001)) == .closed)
    }

    @Test func `records in the outlet are in trouble when nothing is said of them for ten seconds`()
    {
        var outlet = RecordOutlet(recordsMax: 10, bytesMax: 1000)
        #expect(outlet.trouble(now: at(60_000)) == nil)
        outlet.append(record(1))
        outlet.append(record(2))
        let offered12 = offer(&outlet, at(60_000))
        #expect(offered12 == [1, 2])
        #expect(outlet.trouble(now: at(69_999)) == nil)
        #expect(outlet.trouble(now: at(70_000)) == RecordOutlet.Trouble(cause: nil))
        _ = outlet.reported(1, cause: nil, now: at(70_000))
        #expect(outlet.trouble(now: at(79_999)) == nil && outlet.trouble(now: at(80_000)) != nil)
        _ = outlet.reported(2, cause: nil, now: at(80_000))
        #expect(outlet.trouble(now: at(200_000)) == nil)
    }

    // MARK: Partitions

    private func outlet(partitions: Int, records: Int) -> RecordOutlet {
        var outlet = RecordOutlet(recordsMax: records, bytesMax: 100_000)
        outlet.adopt(partitions: partitions)
        return outlet
    }

    private func record(_ ticket: UInt64, in partition: Int32) -> OutgoingRecord {
        var record = record(ticket)
        record.partition = partition
        return record
    }

    @Test func `a partition that takes none of the records in the outlet fills its share alone`() {
        var outlet = outlet(partitions: 4, records: 40)
        // Each turn brings one of each partition; nothing is reported of the first.
        var others = 0
        for turn in 0..<1000 as Range<UInt64> {
            for partition in 0..<4 as Range<UInt64> {
                outlet.append(record(turn * 4 + partition, in: Int32(partition)))
            }
            for ticket in offer(&outlet, at(Int64(turn))) where ticket % 4 > 0 {
                others += 1
                _ = outlet.reported(ticket, cause: nil, now: at(Int64(turn)))
            }
        }
        #expect(others == 3000 && outlet.offeredCount == 10 && outlet.waitingCount == 990)
        #expect(
            outlet.trouble(now: at(10_000)) == RecordOutlet.Trouble(cause: nil, partitions: 1))
    }

    @Test func `records in the outlet for a partition that refuses them delay no other's`() {
        var outlet = outlet(partitions: 2, records: 20)
        outlet.append(record(1, in: 0))
        #expect(offer(&outlet, at(0)) == [1])
        _ = outlet.reported(1, cause: "gone", now: at(0))
        for ticket in 2...9 as ClosedRange<UInt64> {
            outlet.append(record(ticket, in: Int32(ticket % 2)))
        }
        #expect(offer(&outlet, at(1)) == [3, 5, 7, 9])
        #expect(outlet.breaker(now: at(1)) == .open, "a split event needs all of them")
        #expect(outlet.withdraw(now: at(2)).map(\.ticket) == [2, 4, 6, 8])
        #expect(outlet.waitingCount == 0 && outlet.offeredCount == 4)
    }

    @Test
    func `records in the outlet stay in their order when the topic turns out to have partitions`() {
        for key in 0..<16 as Range<UInt8> {
            func record(_ ticket: UInt64) -> OutgoingRecord {
                var record = self.record(ticket)
                record.key = [key]
                return record
            }
            var outlet = RecordOutlet(recordsMax: 8, bytesMax: 1000)
            for ticket in 1...20 as ClosedRange<UInt64> { outlet.append(record(ticket)) }
            var offered = offer(&outlet, at(0))
            #expect(offered == Array(1...8))
            outlet.adopt(partitions: 4)
            // One that comes later must not come before.
            outlet.append(record(21))
            #expect(outlet.waitingCount == 13)
            var reported = 0
            for turn in 1...30 as ClosedRange<Int64> {
                offered += offer(&outlet, at(turn))
                for ticket in offered[reported...] {
                    _ = outlet.reported(ticket, cause: nil, now: at(turn))
                }
                reported = offered.count
            }
            #expect(offered == Array(1...21) && outlet.waitingCount == 0)
        }
    }

    @Test func `a key's part of the outlet is that of the partition that the producer chooses`() {
        var dice = SplitMix64(seed: 5)
        for count in 0..<200 {
            let key = (0..<1 + count % 90).map { _ in UInt8(truncatingIfNeeded: dice.next()) }
            for partitions in [1, 2, 3, 32, 997] {
                #expect(
                    KeyPartition.of(key, partitions: partitions)
                        == Int(KeyPartitioner.murmur2(key, of: Int32(partitions))))
            }
        }
    }

    @Test func `records in the outlet of all topics together leave room in the producer's queue`() {
        for properties in [[:], ["queue.buffering.max.kbytes": "1000"]] as [[String: String]] {
            let queue = properties.isEmpty ? 65_536 << 10 : 1000 << 10
            var bytes = 0
            for var outlet in RecordOutlet.all(properties: properties) {
                var record = record(0, bytes: 4000)
                for ticket in 0..<40_000 as Range<UInt64> {
                    record.ticket = ticket
                    outlet.append(record)
                }
                let offered = offer(&outlet, at(0)).count
                #expect(offered > 0)
                bytes += offered * 4000
            }
            #expect(bytes < queue && bytes > queue / 2)
        }
    }
}
