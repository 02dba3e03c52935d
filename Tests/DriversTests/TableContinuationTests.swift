// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import EmbeddedKafka
import FleetKit
import KafkaLog
import Logging
import PushModel
import Rdkafka
import Testing

@Suite struct `The continuation of a table` {
    private let fixture: KafkaFixture

    init() throws { fixture = try KafkaFixture(["registrations": 2, "suppressions": 1]) }

    private static let topics = ["registrations", "suppressions"]

    private func reader(_ start: TableStart) throws -> TableReader {
        try TableReader(
            settings: fixture.settings(), topics: Self.topics, from: start, now: .current,
            logger: fixture.logger)
    }

    /// Reads to the ends, or to a failure, and returns the offsets of the records by topic.
    private func read(_ reader: TableReader) async throws -> [[Int64]] {
        var offsets: [[Int64]] = [[], []]
        try await waitUntil("the ends") {
            _ = reader.poll(now: .current, limit: 100) { offsets[$0.topic].append($0.offset) }
            return reader.isCaughtUp || reader.failure != nil
        }
        return offsets
    }

    private func positions(_ reader: TableReader) throws -> [[TablePosition]] {
        try Self.topics.indices.map { try #require(reader.positions(topic: $0)) }
    }

    /// What a reader of everything has read, before it is closed.
    private func allRead() async throws -> [[TablePosition]] {
        let reader = try reader(.beginning)
        _ = try await read(reader)
        defer { reader.close(timeout: .seconds(5)) }
        return try positions(reader)
    }

    @Test func `only what was written since is read, and the positions go on`() async throws {
        try fixture.write(10, to: "registrations", partition: 0)
        try fixture.write(3, to: "suppressions")
        let first = try reader(.beginning)
        #expect(first.positions(topic: 0) == nil)
        #expect(try await read(first).map(\.count) == [10, 3])
        let before = try positions(first)
        #expect(before.map { $0.map(\.next) } == [[10, 0], [3]])
        #expect(before[0][1].last == nil && before[0][0].last?.offset == 9)
        #expect(first.newestTime(topic: 0) != nil)
        first.close(timeout: .seconds(5))

        try fixture.write(2, from: 10, to: "registrations", partition: 0)
        try fixture.write(1, to: "registrations", partition: 1)
        let second = try reader(.positions(before))
        #expect(Set(try await read(second)[0]) == [0, 10, 11])
        #expect(second.failure == nil && second.recordsRead == 3)
        let after = try positions(second)
        #expect(after.map { $0.map(\.next) } == [[12, 1], [3]])
        #expect(after[1] == before[1])
        second.close(timeout: .seconds(5))
        // A third one finds nothing new.
        let third = try reader(.positions(after))
        #expect(try await read(third) == [[], []])
        #expect(try positions(third) == after)
        third.close(timeout: .seconds(5))
    }

    @Test func `a log with another record in the place of the last is not read on`() async throws {
        try fixture.write(10, to: "registrations", partition: 0)
        var before = try await allRead()
        before[0][0].last?.hash.low ^= 1
        let reader = try reader(.positions(before))
        _ = try await read(reader)
        #expect(reader.isAnotherLog)
        #expect(reader.failure?.description.contains("another record at offset 9") == true)
        reader.close(timeout: .seconds(5))
    }

    /// As after a compaction that has removed the last record of each partition.
    @Test func `a log that has none of the last records is not read on`() async throws {
        try fixture.write(10, to: "registrations", partition: 0)
        var before = try await allRead()
        // There was never a record here.
        before[0][0].last?.offset = 10
        before[0][0].next = 11
        let reader = try reader(.positions(before))
        _ = try await read(reader)
        #expect(reader.isAnotherLog)
        #expect(reader.failure?.description.contains("none of the last records") == true)
        reader.close(timeout: .seconds(5))
    }

    /// As when the right to read is given only after the worker has started.
    @Test func `a log that is refused at first is known again when it may be read`() async throws {
        try fixture.write(10, to: "registrations", partition: 0)
        let before = try await allRead()
        let topicRefused: Int32 = 29
        try fixture.kafka.perform(.fail(apiKey: 1, code: topicRefused, count: 3))
        let reader = try TableReader(
            settings: fixture.settings(["fetch.error.backoff.ms": "20"]),
            topics: Self.topics, from: .positions(before), now: .current, logger: fixture.logger)
        var now = Now.current
        var warnings: [String] = []
        try await waitUntil("the ends") {
            _ = reader.poll(now: now, limit: 100) { _ in }
            warnings += reader.takeWarnings().map(\.text)
            now.monotonic = now.monotonic + .seconds(1)
            return reader.isCaughtUp || reader.failure != nil
        }
        #expect(reader.failure == nil)
        #expect(warnings.contains { $0.contains("may not read") }, "\(warnings)")
        #expect(try positions(reader) == before)
        reader.close(timeout: .seconds(5))
    }

    @Test func `the ends of logs are told`() throws {
        try fixture.write(10, to: "registrations", partition: 1)
        let admin = try TopicAdmin(settings: fixture.settings(), logger: fixture.logger)
        #expect(try admin.logs(of: "registrations") == [0..<0, 0..<10])
        #expect(throws: KafkaError.self) { _ = try admin.logs(of: "no-such-topic") }
    }
}
