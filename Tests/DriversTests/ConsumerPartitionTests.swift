// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import PushModel
import Testing

@testable import KafkaLog

@Suite struct `What the consumer knows of its partitions` {
    private let now = MonotonicTime(nanoseconds: 1)

    private func receive(_ table: inout PartitionTable, _ offset: Int64) -> Bool {
        table.receive(topic: 0, partition: 0, offset: offset, now: now) != nil
    }

    @Test func `each offset is delivered once in an assignment, from its start on`() {
        var table = PartitionTable(topics: 1)
        #expect(!receive(&table, 5), "not assigned yet")
        _ = table.assign(topic: 0, partition: 0, startOffset: 5, now: now)
        #expect(!receive(&table, 4))
        #expect(receive(&table, 5))
        #expect(!receive(&table, 5))
        #expect(receive(&table, 7), "offsets have gaps")
        #expect(!receive(&table, 6))
        _ = table.assign(topic: 0, partition: 0, startOffset: 5, now: now)
        #expect(receive(&table, 5), "owed again")
    }

    @Test func `records of an earlier assignment that come again are counted, but not of a table`()
    {
        for (replayed, counted) in [(Set<Int>(), 3), ([0], 0)] {
            var table = PartitionTable(topics: 1, replayed: replayed)
            func assign(_ start: Int64, reads offsets: ClosedRange<Int64>?) {
                _ = table.assign(topic: 0, partition: 0, startOffset: start, now: now)
                for offset in offsets.map(Array.init) ?? [] { _ = receive(&table, offset) }
            }
            assign(5, reads: 5...9)
            #expect(table.redelivered == 0)
            assign(8, reads: 8...8)
            assign(20, reads: nil)
            assign(9, reads: 9...12)
            assign(12, reads: 12...13)
            #expect(table.redelivered == counted, "8, 9 and 12")
        }
    }

    @Test func `records that have ended are read again without being counted`() {
        var table = PartitionTable(topics: 1)
        _ = table.assign(topic: 0, partition: 0, startOffset: 0, now: now)
        for offset in 0...9 as ClosedRange<Int64> { _ = receive(&table, offset) }
        let id = table.assign(topic: 0, partition: 0, startOffset: 5, now: now)
        table.update(id) { $0.endedBefore = 8 }
        for offset in 5...12 as ClosedRange<Int64> { #expect(receive(&table, offset)) }
        #expect(table.redelivered == 2, "8 and 9")
    }

    @Test func `what the group wants back delivers nothing more`() {
        var table = PartitionTable(topics: 1)
        let id = table.assign(topic: 0, partition: 0, startOffset: 0, now: now)
        table.update(id) { $0.isMuted = true }
        #expect(!receive(&table, 0))
        table.update(id) { $0.isAssigned = false }
        #expect(table.assignment(topic: 0, partition: 0) == nil)
    }

    @Test func `an earlier assignment finds and changes nothing`() {
        var table = PartitionTable(topics: 1)
        let old = table.assign(topic: 0, partition: 0, startOffset: 0, now: now)
        let new = table.assign(topic: 0, partition: 0, startOffset: 0, now: now)
        table.update(old) { $0.isMuted = true }
        #expect(table.row(old) == nil && table.row(new)?.isMuted == false)
        #expect(table.assignment(topic: 0, partition: 0) == new)
    }

    @Test func `a partition keeps its ordinal, and each assignment has a later epoch`() {
        var table = PartitionTable(topics: 2)
        let ids = [(1, 3), (0, 0), (1, 3), (1, 0), (0, 0)].map { topic, partition in
            table.assign(topic: topic, partition: Int32(partition), startOffset: 0, now: now)
        }
        #expect(ids.map(\.ordinal) == [0, 1, 0, 2, 1], "as many as there are partitions")
        #expect(zip(ids, ids.dropFirst()).allSatisfy { $0.epoch < $1.epoch })
        #expect(table.assigned() == [ids[2], ids[4], ids[3]])
        for (id, expected) in zip(ids, [(1, 3), (0, 0), (1, 3), (1, 0), (0, 0)]) {
            let (topic, number) = table.partition(of: id)
            #expect((topic, Int(number)) == expected, "though it may be over")
        }
        var other = PartitionTable(topics: 1)
        let next = other.assign(topic: 0, partition: 0, startOffset: 0, now: now)
        #expect(ids.allSatisfy { $0.epoch < next.epoch }, "whatever the client")
    }

    @Test func `a record carries the assignment under which it is delivered`() {
        var table = PartitionTable(topics: 1)
        let old = table.assign(topic: 0, partition: 0, startOffset: 0, now: now)
        let first = table.receive(topic: 0, partition: 0, offset: 0, now: now)
        let new = table.assign(topic: 0, partition: 0, startOffset: 0, now: now)
        let second = table.receive(topic: 0, partition: 0, offset: 0, now: now)
        #expect(first == old && second == new)
    }

    @Test func `what was let go delivers nothing more`() {
        var table = PartitionTable(topics: 1)
        let id = table.assign(topic: 0, partition: 0, startOffset: 0, now: now)
        table.update(id) { $0.isAssigned = false }
        #expect(!receive(&table, 0))
        #expect(table.row(id) == nil && table.assigned().isEmpty)
    }

    @Test func `a record is activity, and no end`() {
        var table = PartitionTable(topics: 1)
        let id = table.assign(topic: 0, partition: 0, startOffset: 0, now: now)
        table.update(id) { $0.isAtEnd = true }
        let later = now + .seconds(5)
        let assignment = table.receive(topic: 0, partition: 0, offset: 0, now: later)
        #expect(assignment == id)
        #expect(table.row(id)?.isAtEnd == false)
        #expect(table.row(id)?.activeAt == later)
    }

    @Test func `nothing is known of partitions outside of the table`() {
        var table = PartitionTable(topics: 1)
        _ = table.assign(topic: 0, partition: 0, startOffset: 0, now: now)
        #expect(table[1, 0] == nil && table[0, 1] == nil && table[0, -1] == nil)
        for partition in [Int32(1), -1] {
            let assignment = table.receive(
                topic: 0, partition: partition, offset: 0, now: now)
            #expect(assignment == nil)
        }
    }
}
