// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import PushModel
import Testing

@testable import KafkaLog

@Suite struct `What the consumer knows of its partitions` {
    private let now = MonotonicTime(nanoseconds: 1)

    private func receive(_ table: inout PartitionTable, _ offset: Int64) -> Bool {
        table.receive(topic: 0, partition: 0, offset: offset, now: now)
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

    @Test func `what the group wants back delivers nothing more`() {
        var table = PartitionTable(topics: 1)
        let id = table.assign(topic: 0, partition: 0, startOffset: 0, now: now)
        table.update(id) { $0.isMuted = true }
        #expect(!receive(&table, 0))
        table.update(id) { $0.isAssigned = false }
        #expect(table.epoch(topic: 0, partition: 0) == nil)
    }

    @Test func `an earlier epoch changes nothing`() {
        var table = PartitionTable(topics: 1)
        let old = table.assign(topic: 0, partition: 0, startOffset: 0, now: now)
        let new = table.assign(topic: 0, partition: 0, startOffset: 0, now: now)
        table.update(old) { $0.isMuted = true }
        #expect(table.row(old) == nil && table.row(new)?.isMuted == false)
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
        let isWanted = table.receive(topic: 0, partition: 0, offset: 0, now: later)
        #expect(isWanted)
        #expect(table.row(id)?.isAtEnd == false)
        #expect(table.row(id)?.activeAt == later)
    }

    @Test func `nothing is known of partitions outside of the table`() {
        var table = PartitionTable(topics: 1)
        _ = table.assign(topic: 0, partition: 0, startOffset: 0, now: now)
        #expect(table[1, 0] == nil && table[0, 1] == nil && table[0, -1] == nil)
        for partition in [Int32(1), -1] {
            let isWanted = table.receive(topic: 0, partition: partition, offset: 0, now: now)
            #expect(!isWanted)
        }
    }
}
