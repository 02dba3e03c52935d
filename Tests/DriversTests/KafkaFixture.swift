// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import EmbeddedKafka
import FleetKit
import Glibc
import LinuxIO
import Logging
import PushModel
import Rdkafka
import Testing

@testable import KafkaLog

/// An embedded Kafka, and clients with the timeouts that suit it.
struct KafkaFixture {
    let kafka: EmbeddedKafka
    let logger: Logger

    init(_ topics: [String: Int], brokers: Int = 1) throws {
        kafka = try EmbeddedKafka(topics: topics, brokers: brokers)
        logger = Logger(label: "kafka", factory: { _ in SwiftLogNoOpLogHandler() })
    }

    func settings(_ extra: [String: String] = [:]) -> KafkaClientSettings {
        var properties = [
            // The mock makes every join but a group's first wait for the session timeout less 1 s.
            "session.timeout.ms": "3000", "heartbeat.interval.ms": "200",
            "fetch.wait.max.ms": "20", "auto.commit.interval.ms": "100",
        ]
        properties.merge(extra) { _, theirs in theirs }
        return KafkaClientSettings(
            bootstrap: kafka.bootstrap, group: "fleet", properties: properties)
    }

    func consumer(
        _ topics: [String], startFrom: StartFrom = .earliest, properties: [String: String] = [:]
    ) throws -> EventConsumer {
        try EventConsumer(
            settings: settings(properties), topics: topics, startFrom: startFrom, logger: logger)
    }

    func producer(_ topics: [String], _ extra: [String: String] = [:]) throws -> RecordProducer {
        // The clients' own fetch and session settings mean nothing to a producer.
        try RecordProducer(
            settings: KafkaClientSettings(
                bootstrap: kafka.bootstrap, group: "", properties: extra),
            topics: topics, logger: logger)
    }

    /// Writes `count` records with the numbers from `first` on as keys and values; waits for their reports.
    func write(
        _ count: Int, from first: Int = 0, to topic: String, partition: Int32 = 0
    ) throws {
        let producer = try producer([topic])
        for number in first..<first + count {
            let accepted = Bytes("\(number)").lend { value in
                producer.produce(
                    topic: 0, partition: partition, key: value, value: value,
                    ticket: UInt64(number))
            }
            try #require(accepted == .accepted)
        }
        try #require(producer.flush(timeout: .seconds(10)))
        var failures = 0
        let reported = producer.poll(now: .current) { _, error in failures += error == nil ? 0 : 1 }
        try #require(failures == 0 && reported == count)
    }
}

extension KafkaFixture {
    /// Writes more than the 5 MiB that the mock keeps of a partition.
    func overflowRetention(of topic: String) throws {
        let producer = try producer([topic], ["compression.type": "none", "linger.ms": "0"])
        let value = Bytes(String(repeating: "x", count: 100_000))
        for ticket in 0..<80 {
            let accepted = value.lend { value in
                producer.produce(
                    topic: 0, partition: 0, key: nil, value: value, ticket: UInt64(ticket))
            }
            try #require(accepted == .accepted)
            // One batch each: the mock drops whole batches.
            try #require(producer.flush(timeout: .seconds(5)))
        }
    }
}

/// How often nothing has come for the second for which librdkafka stops fetching, or nearly.
struct Standstills {
    private(set) var count = 0
    private var movedAt = ContinuousClock.now

    mutating func moved() {
        if movedAt.duration(to: .now) > .milliseconds(800) { count += 1 }
        movedAt = .now
    }
}

/// A consumer together with the facts it has reported and the records it has delivered.
final class Reading {
    let consumer: EventConsumer
    private(set) var facts: [ConsumerFact] = []
    private(set) var records: [Seen] = []
    /// Called with each `revoking` fact; the default finishes at once and stores nothing.
    var onRevoking: (EventConsumer, [AssignmentID]) -> Void = { consumer, _ in
        consumer.completeRevoke(commit: [], now: .current)
    }

    /// Of a poll; the next follows at once where it was reached.
    var limit = 100

    struct Seen: Hashable {
        var topic: Int
        var partition: Int32
        var offset: Int64
        var value: String?
    }

    init(_ consumer: EventConsumer) { self.consumer = consumer }

    func turn() {
        consumer.clearWakeUp()
        while consumer.poll(
            now: .current, limit: limit,
            { record in
                records.append(
                    Seen(
                        topic: record.topic, partition: record.partition, offset: record.offset,
                        value: record.value.map { String(decoding: $0, as: UTF8.self) }))
            }) == limit
        {}
        for fact in consumer.takeFacts() {
            facts.append(fact)
            if case .revoking(let revoked) = fact { onRevoking(consumer, revoked) }
        }
    }

    /// The partitions of the last assignment.
    var assignments: [Assignment] {
        for case .assigned(let assignments) in facts.reversed() { return assignments }
        return []
    }

    var assignmentCount: Int { facts.count { if case .assigned = $0 { true } else { false } } }

    var losses: [OffsetLoss] {
        facts.compactMap { if case .offsetsLost(let loss) = $0 { loss } else { nil } }
    }

    var fatalErrors: [RdkafkaError] {
        facts.compactMap { if case .fatal(let error) = $0 { error } else { nil } }
    }

    func waitForAssignment() async throws {
        try await waitUntil("an assignment") {
            turn()
            return assignmentCount > 0
        }
    }

    func waitForRecords(_ count: Int) async throws {
        try await waitUntil("\(count) records") {
            turn()
            return records.count >= count
        }
    }

    /// Stores the position after the last delivered record of each partition.
    func storeAll() {
        let positions = assignments.compactMap { assignment -> CommitPosition? in
            let offsets = records.filter {
                $0.topic == assignment.topic && $0.partition == assignment.partition
            }.map(\.offset)
            return offsets.max().map { CommitPosition(assignment.id, offset: $0 + 1) }
        }
        consumer.store(positions)
    }

    func close() { consumer.close(timeout: .seconds(5), now: .current) }
}

/// Bytes to lend to a producer.
struct Bytes {
    private let bytes: [UInt8]
    init(_ text: String) { bytes = Array(text.utf8) }
    func lend<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        bytes.withUnsafeBytes(body)
    }
}

func isReadable(_ descriptor: CInt) -> Bool {
    var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return poll(&request, 1, 0) == 1
}

extension KafkaFixture {
    func reader(
        _ topics: [String], timeout: Duration = .seconds(15), properties: [String: String] = [:]
    ) throws -> TableReader {
        try TableReader(
            settings: settings(properties), topics: topics, timeout: timeout, now: .current,
            logger: logger)
    }
}

extension EventConsumer {
    /// Asks once for the ends of the partitions, and takes the answers.
    func lookAtPartitions(now: Now = .current) async throws {
        askForPartitionsAt = now.monotonic
        watchPartitions(now: now)
        try await waitUntil("the answer") { !partitionQuestion.isUnderWay }
        // Where something is wrong, this asks once more.
        askForPartitionsAt = now.monotonic + .seconds(3600)
        watchPartitions(now: now)
        try await waitUntil("another answer") { !partitionQuestion.isUnderWay }
        _ = partitionQuestion.takeAnswer()
    }
}
