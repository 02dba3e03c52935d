// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import EmbeddedKafka
import FleetKit
import KafkaLog
import PushModel
import Testing

/// A table without a record, as that of restrictions mostly is, that this user may not read.
@Suite struct `An empty table that is refused` {
    private static let fetch: Int16 = 1
    private static let listOffsets: Int16 = 2
    private static let topicRefused: Int32 = 29

    private func refuse(_ kafka: EmbeddedKafka, count: Int = 10_000) throws {
        for key in [Self.fetch, Self.listOffsets] {
            try kafka.perform(.fail(apiKey: key, code: Self.topicRefused, count: count))
        }
    }

    /// Looks so often, half a minute apart by the reader's clock, and returns what it warned of.
    private func look(
        _ reader: TableReader, times: Int, now: inout Now
    ) async throws -> [String] {
        var said: [String] = []
        for _ in 0..<times {
            _ = reader.poll(now: now, limit: 100) { _ in }
            said += reader.takeWarnings().map(\.text)
            try await Task.sleep(for: .milliseconds(20))
            now.monotonic = now.monotonic + .seconds(31)
        }
        return said
    }

    @Test func `a refused request for its beginning is a refusal, and no topic made anew`()
        async throws
    {
        let fixture = try KafkaFixture(["restrictions": 1])
        try refuse(fixture.kafka, count: 10)
        let reader = try fixture.reader(
            ["restrictions"], properties: ["fetch.error.backoff.ms": "20"])
        var now = Now.current
        let said = try await look(reader, times: 50, now: &now)
        #expect(reader.failure == nil)
        #expect(
            said.contains { $0.contains("this user may not read topic 'restrictions'") }, "\(said)")
        // The right is given back when the refusals are used up.
        try fixture.write(2, to: "restrictions")
        var rounds = 0
        while reader.recordsRead < 2 || !reader.isCaughtUp, rounds < 200 {
            rounds += 1
            now.monotonic = now.monotonic + .seconds(31)
            // Time for an answer or two.
            for _ in 0..<30 {
                _ = reader.poll(now: now, limit: 100) { _ in }
                try await Task.sleep(for: .milliseconds(10))
            }
        }
        #expect(reader.recordsRead == 2 && reader.isCaughtUp && reader.failure == nil)
        #expect(reader.isCaughtUp(topic: 0))
    }

    @Test func `a right that is lost while the table is followed ends nothing`() async throws {
        let fixture = try KafkaFixture(["restrictions": 1])
        let reader = try fixture.reader(
            ["restrictions"], properties: ["fetch.error.backoff.ms": "20"])
        try await waitUntil("the end") {
            _ = reader.poll(now: .current, limit: 100) { _ in }
            return reader.isCaughtUp
        }
        try refuse(fixture.kafka)
        var now = Now.current
        _ = try await look(reader, times: 60, now: &now)
        #expect(reader.failure == nil)
    }
}
