// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import PushModel
import Testing

@testable import KafkaLog

/// What a consumer knows of why it reads nothing.
@Suite struct `A wait for the group, or for a transaction` {
    private static func at(_ seconds: Int64) -> MonotonicTime {
        MonotonicTime(nanoseconds: seconds * 1_000_000_000)
    }

    @Test func `the group is awaited from the first poll, and from the first of several losses`() {
        var wait = GroupWait()
        #expect(wait.lasted(now: Self.at(5)) == nil)
        wait.polled(now: Self.at(5))
        wait.polled(now: Self.at(6))
        #expect(wait.lasted(now: Self.at(8)) == .seconds(3))
        wait.assigned()
        wait.polled(now: Self.at(9))
        #expect(wait.lasted(now: Self.at(99)) == nil)
        wait.revoked(now: Self.at(100))
        wait.revoked(now: Self.at(110))
        wait.polled(now: Self.at(111))
        #expect(wait.lasted(now: Self.at(114)) == .seconds(14))
    }

    @Test func `a rebalance is a wait until the group has answered, with partitions or without`()
        async throws
    {
        let fixture = try KafkaFixture(["events": 1])
        let patient = ["session.timeout.ms": "6000"]
        let first = Reading(try fixture.consumer(["events"], properties: patient))
        first.turn()
        #expect(first.consumer.groupWait(now: .current) != nil)
        try await first.waitForAssignment()
        #expect(first.consumer.groupWait(now: .current) == nil)
        let second = Reading(try fixture.consumer(["events"], properties: patient))
        var hasWaited = false
        try await waitUntil("an assignment of one partition to two members") {
            first.turn()
            second.turn()
            if first.consumer.groupWait(now: .current) != nil { hasWaited = true }
            return hasWaited && first.consumer.groupWait(now: .current) == nil
                && second.consumer.groupWait(now: .current) == nil
        }
        #expect(
            first.consumer.assignedPartitions.count + second.consumer.assignedPartitions.count == 1)
        first.close()
        second.close()
    }

    private static func row(end: Int64) -> PartitionTable.Row {
        var table = PartitionTable(topics: 1)
        let id = table.assign(topic: 0, partition: 0, startOffset: 10, now: at(0))
        table.update(id) { row in
            row.isAtEnd = true
            row.readableEnd = end
        }
        return table.row(id)!
    }

    @Test func `records behind the readable end belong to a transaction`() {
        var row = Self.row(end: 17)
        #expect(row.withheld(high: 17, now: Self.at(1)) == nil)
        #expect(row.withheld(high: nil, now: Self.at(1)) == nil)
        #expect(row.withheld(high: 18, now: Self.at(1)) == Self.at(1))
        row.withheldSince = Self.at(1)
        #expect(row.withheld(high: 30, now: Self.at(40)) == Self.at(1), "it is the same wait")
        #expect(row.withheld(high: 17, now: Self.at(40)) == nil, "it was aborted, or read")
    }

    @Test func `a transaction that follows another is waited for anew`() async throws {
        let fixture = try KafkaFixture(["events": 1])
        let reading = Reading(try fixture.consumer(["events"]))
        try await reading.waitForAssignment()
        let id = try #require(reading.assignments.first).id
        try await waitUntil("the end") {
            reading.turn()
            return reading.consumer.partitions.row(id)?.isAtEnd == true
        }
        reading.consumer.partitions.update(id) { $0.withheldSince = Self.at(1) }
        let end = try #require(reading.consumer.partitions.row(id)?.readableEnd)
        try fixture.write(1, to: "events")
        try await waitUntil("the new end") {
            reading.turn()
            return reading.consumer.partitions.row(id)!.readableEnd > end
        }
        #expect(reading.consumer.partitions.row(id)?.withheldSince == nil)
        reading.close()
    }

    @Test func `a partition that is not fetched from says nothing`() {
        for flag in [
            \PartitionTable.Row.isPaused, \PartitionTable.Row.isMuted, \PartitionTable.Row.isHeld,
        ] {
            var row = Self.row(end: 17)
            row[keyPath: flag] = true
            #expect(row.withheld(high: 18, now: Self.at(1)) == nil)
        }
        var row = Self.row(end: 17)
        row.isAtEnd = false
        #expect(row.withheld(high: 18, now: Self.at(1)) == nil, "it reads on")
    }
}
