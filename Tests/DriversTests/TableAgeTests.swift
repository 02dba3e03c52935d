// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import PushModel
import Testing

@testable import KafkaLog

@Suite struct `The age of a table` {
    private let first = TablePartition(topic: 0, number: 0)
    private let second = TablePartition(topic: 0, number: 1)
    private let start = MonotonicTime(nanoseconds: 1_000_000_000_000)

    private func table() -> TableFreshness {
        var table = TableFreshness(topics: 1)
        table.add(partitions: 2, of: 0, now: start)
        return table
    }

    private func at(_ seconds: Int) -> MonotonicTime { start + .seconds(seconds) }

    private func old(_ table: TableFreshness, at seconds: Int, replaying: Bool = false) -> [Int32] {
        table.lags(olderThan: .seconds(30), whileReplaying: replaying, now: at(seconds))
            .map(\.partition.number)
    }

    @Test func `the age of a table is that of the question whose answer has been read to`() {
        var table = table()
        for partition in [first, second] {
            table.told(end: 10, of: partition, askedAt: at(5))
            table.read(partition, to: 9, now: at(6))
        }
        #expect(table.age(topic: 0, now: at(7)) == .seconds(7))
        for partition in [first, second] { table.read(partition, to: 10, now: at(8)) }
        #expect(table.age(topic: 0, now: at(8)) == .seconds(3))
        #expect(old(table, at: 35).isEmpty)
        #expect(old(table, at: 36) == [0, 1])
    }

    @Test func `the age of a table is that of its oldest partition`() {
        var table = table()
        for (partition, second) in [(first, 5), (second, 2)] {
            table.told(end: 10, of: partition, askedAt: at(second))
            table.read(partition, to: 10, now: at(6))
        }
        #expect(table.age(topic: 0, now: at(7)) == .seconds(5))
    }

    @Test func `the age of a table does not stand still because the end moves on`() {
        var table = table()
        for second in stride(from: 0, through: 100, by: 5) {
            // Always ten records behind the end, and always on the way.
            for partition in [first, self.second] {
                table.told(end: Int64(second) * 100 + 10, of: partition, askedAt: at(second))
                table.read(partition, to: Int64(second) * 100, now: at(second))
            }
        }
        #expect(table.age(topic: 0, now: at(100)) == .seconds(10))
    }

    @Test func `the age of a table grows where nobody tells the end, with the cause`() {
        var table = table()
        for second in stride(from: 0, through: 40, by: 5) {
            table.told(end: 0, of: first, askedAt: at(second))
            table.failed("no leader", of: self.second)
        }
        #expect(old(table, at: 40) == [1])
        let lag = table.lags(olderThan: .seconds(30), whileReplaying: false, now: at(40)).first
        #expect(lag?.cause == "no leader" && lag?.unread == nil && lag?.age == .seconds(40))
        table.told(end: 0, of: second, askedAt: at(41))
        #expect(old(table, at: 41).isEmpty)
    }

    @Test func `the age of a table counts what is not read`() {
        var table = table()
        table.told(end: 1000, of: first, askedAt: at(0))
        table.read(first, to: 400, now: at(1))
        table.told(end: 5000, of: first, askedAt: at(30))
        let lags = table.lags(olderThan: .seconds(30), whileReplaying: false, now: at(31))
        #expect(lags.first?.unread == 600, "of the end that it is judged by")
    }

    @Test func `the age of a table is no matter in a replay while anything comes`() {
        var table = table()
        table.told(end: 1_000_000, of: first, askedAt: at(0))
        table.failed("no leader", of: second)
        for second in 1...200 { table.read(first, to: Int64(second), now: at(second)) }
        #expect(old(table, at: 200, replaying: true).isEmpty)
        #expect(old(table, at: 231, replaying: true) == [0, 1])
    }
}
