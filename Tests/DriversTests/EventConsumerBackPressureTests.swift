// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import EmbeddedKafka
import FleetKit
import KafkaLog
import PushModel
import Testing

@Suite struct `Event consumer's back-pressure` {
    @Test func `paused partitions are silent and resume without a gap or a repetition`()
        async throws
    {
        let fixture = try KafkaFixture(["events": 2])
        let reading = Reading(try fixture.consumer(["events"]))
        try await reading.waitForAssignment()
        let consumer = reading.consumer
        for round in 0..<3 {
            consumer.pauseAll(now: .current)
            consumer.pauseAll(now: .current)
            #expect(consumer.pausedPartitions.count == 2)
            try fixture.write(500, from: round * 500, to: "events", partition: 0)
            try fixture.write(500, from: round * 500, to: "events", partition: 1)
            let before = reading.records.count
            try await Task.sleep(for: .milliseconds(100))
            reading.turn()
            #expect(reading.records.count == before)
            consumer.resumeAll(now: .current)
            #expect(consumer.pausedPartitions.isEmpty)
            try await reading.waitForRecords((round + 1) * 1000)
        }
        for partition in Int32(0)...1 {
            let offsets = reading.records.filter { $0.partition == partition }.map(\.offset)
            #expect(offsets == Array(0..<1500))
        }
        reading.close()
    }

    @Test func `a held partition is silent whatever is resumed, until it is released`()
        async throws
    {
        let fixture = try KafkaFixture(["events": 2])
        let reading = Reading(try fixture.consumer(["events"]))
        try await reading.waitForAssignment()
        let consumer = reading.consumer
        let held = try #require(reading.assignments.first { $0.partition == 0 }).id
        consumer.hold(held, now: .current)
        consumer.hold(held, now: .current)
        consumer.pauseAll(now: .current)
        consumer.resumeAll(now: .current)
        #expect(consumer.pausedPartitions == [held])
        for partition in Int32(0)...1 {
            try fixture.write(500, to: "events", partition: partition)
        }
        try await reading.waitForRecords(500)
        #expect(reading.records.allSatisfy { $0.partition == 1 })
        consumer.release(held, now: .current)
        #expect(consumer.pausedPartitions.isEmpty)
        try await reading.waitForRecords(1000)
        let offsets = reading.records.filter { $0.partition == 0 }.map(\.offset)
        #expect(offsets == Array(0..<500))
        reading.close()
    }

    @Test func `a partition that is released while all are paused is resumed with them`()
        async throws
    {
        let fixture = try KafkaFixture(["events": 2])
        let reading = Reading(try fixture.consumer(["events"]))
        try await reading.waitForAssignment()
        let consumer = reading.consumer
        let held = try #require(reading.assignments.first { $0.partition == 0 }).id
        consumer.release(held, now: .current)
        consumer.hold(held, now: .current)
        consumer.pauseAll(now: .current)
        consumer.release(held, resumes: false, now: .current)
        #expect(consumer.pausedPartitions.count == 2)
        consumer.release(held, now: .current)
        #expect(consumer.pausedPartitions.count == 2, "it was not held any more")
        consumer.resumeAll(now: .current)
        #expect(consumer.pausedPartitions.isEmpty)
        for partition in Int32(0)...1 {
            try fixture.write(500, to: "events", partition: partition)
        }
        try await reading.waitForRecords(1000)
        reading.close()
    }

    @Test func `keys are prefetched a few records ahead, in the order of the records`() async throws
    {
        let fixture = try KafkaFixture(["events": 1])
        try fixture.write(1000, to: "events")
        let reading = Reading(try fixture.consumer(["events"]))
        try await reading.waitForAssignment()
        var read: [String] = reading.records.compactMap(\.value)
        var prefetched = read
        var furthest = 0
        try await waitUntil("every record") {
            _ = reading.consumer.poll(now: .current, limit: 300) { _, key in
                prefetched.append(String(decoding: key, as: UTF8.self))
            } _: { record in
                furthest = max(furthest, prefetched.count - read.count)
                read.append(record.key.map { String(decoding: $0, as: UTF8.self) } ?? "")
            }
            return read.count >= 1000
        }
        #expect(read.count == 1000 && prefetched == read)
        #expect((2...32).contains(furthest))
        reading.close()
    }

    /// - Parameter limit: a turn is full before the queue is empty, or the other way round.
    @Test(arguments: [100, 1000])
    func `a full queue does not stop the fetches of events for a second`(
        limit: Int
    ) async throws {
        let fixture = try KafkaFixture(["events": 1])
        let batches = 20
        for batch in 0..<batches { try fixture.write(100, from: 100 * batch, to: "events") }
        // One batch fills it.
        let reading = Reading(
            try fixture.consumer(["events"], properties: ["queued.min.messages": "100"]))
        reading.limit = limit
        try await reading.waitForAssignment()
        var standstills = Standstills()
        var read = 0
        try await waitUntil("all records") {
            reading.turn()
            if reading.records.count > read { standstills.moved() }
            read = reading.records.count
            return read == 100 * batches
        }
        #expect(standstills.count < batches / 4)
        reading.close()
    }

    @Test func `a partition that is not paused is never resumed`() async throws {
        let fixture = try KafkaFixture(["events": 2])
        try fixture.write(2000, to: "events", partition: 0)
        let reading = Reading(try fixture.consumer(["events"]))
        try await reading.waitForRecords(2000)
        let other = try #require(reading.assignments.first { $0.partition == 1 }).id
        let read = try #require(reading.assignments.first { $0.partition == 0 }).id
        reading.consumer.pause(other, now: .current)
        #expect(reading.consumer.pausedPartitions == [other])
        // librdkafka 2.0.2 would rewind this one, and the rewind guard would hide it from the count
        // of records; so look at how many messages the library hands out.
        reading.consumer.resume(read, now: .current)
        reading.consumer.resumeAll(now: .current)
        #expect(reading.consumer.pausedPartitions.isEmpty)
        try await Task.sleep(for: .milliseconds(300))
        var looked = 0
        try await waitUntil("an empty queue") {
            let count = reading.consumer.poll(now: .current, limit: 10_000) { _ in }
            looked += count
            return count == 0
        }
        // Ends of partitions are looked at too.
        #expect(looked < 10)
        reading.close()
    }

    @Test func `a partition that was paused when it was lost comes back unpaused`() async throws {
        let fixture = try KafkaFixture(["events": 1])
        let reading = Reading(try fixture.consumer(["events"]))
        try await reading.waitForAssignment()
        reading.consumer.pauseAll(now: .current)
        // UNKNOWN_MEMBER_ID on Heartbeat: the group takes it away, and gives it back on joining.
        try fixture.kafka.perform(.fail(apiKey: 12, code: 25, count: 1))
        try await waitUntil("the next assignment") {
            reading.turn()
            return reading.assignmentCount == 2
        }
        #expect(reading.consumer.pausedPartitions.isEmpty)
        try fixture.write(5, to: "events")
        try await reading.waitForRecords(5)
        reading.close()
    }

    @Test func `only a partition that owes records and is polled counts as stalled`()
        async throws
    {
        let fixture = try KafkaFixture(["events": 1])
        let reading = Reading(try fixture.consumer(["events"]))
        let consumer = reading.consumer
        // REQUEST_TIMED_OUT on Fetch: assigned, but neither a record nor the end ever arrives.
        try fixture.kafka.perform(.fail(apiKey: 1, code: 7, count: 100_000))
        try await reading.waitForAssignment()
        let id = try #require(reading.assignments.first).id
        var later = Now.current
        func poll(forSeconds seconds: Int) {
            for _ in 0..<seconds {
                later.monotonic = later.monotonic + .seconds(1)
                _ = consumer.poll(now: later, limit: 10) { _ in }
            }
        }
        poll(forSeconds: 50)
        #expect(consumer.stalledPartitions(now: later).isEmpty)
        poll(forSeconds: 20)
        #expect(consumer.stalledPartitions(now: later) == [id])
        consumer.pause(id, now: later)
        #expect(consumer.stalledPartitions(now: later).isEmpty)
        consumer.resume(id, now: later)
        poll(forSeconds: 70)
        #expect(consumer.stalledPartitions(now: later) == [id])
        // A thread that was busy elsewhere cannot tell.
        later.monotonic = later.monotonic + .seconds(100)
        #expect(consumer.stalledPartitions(now: later).isEmpty)

        try consumer.restart(timeout: .seconds(5), now: .current)
        reading.close()
    }
}
