// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import EmbeddedKafka
import FleetKit
import KafkaLog
import Rdkafka
import Testing

/// The embedded Kafka has no rights: what a broker answers to whom it does not allow something is put
/// in its mouth.
@Suite struct `Rights in Kafka` {
    private let fixture: KafkaFixture

    init() throws { fixture = try KafkaFixture(["events": 1, "deferred": 1]) }

    private func probe(_ properties: [String: String] = [:]) -> RightsProbe {
        RightsProbe(
            settings: fixture.settings(properties), timeout: .seconds(5), logger: fixture.logger)
    }

    // Keys and codes of the protocol.
    private static let (produce, fetch, commit): (Int16, Int16, Int16) = (0, 1, 8)
    private static let findCoordinator: Int16 = 10
    private static let topicRefused: Int32 = 29
    private static let groupRefused: Int32 = 30
    private static let invalidAcks: Int32 = 21

    private func fail(_ apiKey: Int16, _ code: Int32, _ count: Int = 1) throws {
        try fixture.kafka.perform(.fail(apiKey: apiKey, code: code, count: count))
    }

    @Test func `reading is allowed to whom the end of a topic is shown`() throws {
        #expect(
            try probe().reading(["events", "deferred"]) == [
                "events": .allowed, "deferred": .allowed,
            ])
        try fixture.write(3, to: "events")
        #expect(try probe().reading(["events"]) == ["events": .allowed])
    }

    @Test func `reading is refused by the fetch`() throws {
        try fail(Self.fetch, Self.topicRefused, 10)
        #expect(try probe().reading(["events"]) == ["events": .refused])
    }

    @Test func `writing is allowed where the record is refused for its acks alone`() throws {
        try fail(Self.produce, Self.invalidAcks)
        #expect(try probe().writing(["deferred"]) == ["deferred": .allowed])
        try fail(Self.produce, Self.topicRefused)
        #expect(try probe().writing(["deferred"]) == ["deferred": .refused])
        try fail(Self.produce, Self.invalidAcks, 2)
        #expect(
            try probe().writing(["deferred", "events"]) == [
                "deferred": .allowed, "events": .allowed,
            ])
        // None of them was written.
        #expect(try records(of: "deferred") == 0)
        #expect(try records(of: "events") == 0)
    }

    @Test func `a broker that stores the record has one, and is tried with no other topic`() throws
    {
        let topics = ["deferred", "events"]
        try fail(Self.produce, Self.topicRefused)
        // The first answer tells nothing of the broker's make.
        let refused = try probe().writing(topics)
        #expect(refused["deferred"] == .refused && refused["events"] == .allowed)
        #expect(try records(of: "events") == 1)

        let stored = try probe().writing(topics)
        #expect(stored["deferred"] == .allowed)
        #expect(
            stored["events"]
                == .unknown(
                    "this Kafka stores the record that tries it, as topic 'deferred' has shown, so "
                        + "none was sent"))
        #expect(try records(of: "deferred") == 1)
        #expect(try records(of: "events") == 1)
    }

    @Test func `no property of the user's gets the record written`() throws {
        for properties in [["linger.ms": "100"], ["compression.type": "zstd"]] {
            try fail(Self.produce, Self.invalidAcks)
            #expect(try probe(properties).writing(["deferred"]) == ["deferred": .allowed])
        }
        #expect(try records(of: "deferred") == 0)
    }

    @Test func `the group is allowed to whom only the partition is refused`() throws {
        #expect(try probe().group("events") == .allowed)
        try fail(Self.commit, Self.groupRefused)
        #expect(try probe().group("events") == .refused)
        try fail(Self.findCoordinator, Self.groupRefused, 100)
        #expect(try probe().group("events") == .refused)
    }

    @Test func `a broker that is silent says nothing of rights`() throws {
        try fixture.kafka.perform(.leader(topic: "events", partition: 0, broker: -1))
        #expect(try probe().reading(["events"]) == ["events": .unknown("")])
    }

    @Test func `topics are known when every broker has a leader for each partition`() throws {
        let fixture = try KafkaFixture(["events": 3, "deferred": 3], brokers: 3)
        let admin = try TopicAdmin(settings: fixture.settings(), logger: fixture.logger)
        #expect(try admin.waitUntilKnown(["events", "deferred"]) == [])
        try fixture.kafka.perform(.leader(topic: "deferred", partition: 2, broker: -1))
        let start = ContinuousClock.now
        var told: [[BehindBroker]] = []
        let behind = try admin.waitUntilKnown(["events", "deferred"], within: .seconds(1)) {
            told.append($0)
        }
        #expect(
            Set(behind.map(\.broker))
                == Set(fixture.kafka.bootstrap.split(separator: ",").map(String.init)))
        #expect(behind.allSatisfy { $0.topic == "deferred" })
        #expect(behind.allSatisfy { $0.sight == .leaderless(led: 2, of: 3) })
        #expect(told.count == 1 && told.first?.count == 3)
        #expect(ContinuousClock.now - start >= .seconds(1))
        // Another hears of it later than the first.
        let leader = Task.detached {
            try await Task.sleep(for: .milliseconds(500))
            try fixture.kafka.perform(.leader(topic: "deferred", partition: 2, broker: 1))
        }
        defer { leader.cancel() }
        #expect(try admin.waitUntilKnown(["events", "deferred"]) == [])
    }

    private func records(of topic: String) throws -> UInt64 {
        let reader = try fixture.reader([topic])
        defer { reader.close(timeout: .seconds(5)) }
        while !reader.isCaughtUp { _ = reader.poll(now: .current, limit: 100) { _ in } }
        return reader.recordsRead
    }
}
