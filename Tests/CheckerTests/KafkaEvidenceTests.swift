// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Checker
import Foundation
import Rdkafka
import Testing

@Suite struct `Evidence in Kafka` {
    typealias Run = RecordedRun

    private let cluster: MockCluster

    init() throws {
        cluster = try MockCluster(brokers: 1) { _, _, _ in }
        for topic in ["events", "registrations", "letters", "suppressions"] {
            try cluster.createTopic(topic, partitions: 2)
        }
    }

    /// Writes the lines of a dump as records of one partition. They get the time of writing.
    private func write(_ lines: [String], to topic: String) throws {
        let configuration = Configuration()
        try configuration.set("bootstrap.servers", cluster.bootstrap)
        // So that a few records fill what the cluster keeps of a partition.
        try configuration.set("batch.num.messages", "1")
        let producer = try Client(.producer, configuration: configuration) { _, _, _ in }
        let topic = try Topic(topic, of: producer)
        for line in lines {
            let record = try #require(
                JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            let key = Array((record["key"] as? String ?? "").utf8)
            let value = (record["value"] as? String).map { Array($0.utf8) }
            try key.withUnsafeBytes { key in
                try (value ?? []).withUnsafeBytes { bytes in
                    try producer.produce(
                        to: topic, partition: 1, key: key, value: value == nil ? nil : bytes,
                        headers: nil, ticket: 0)
                }
            }
        }
        #expect(producer.flush(timeout: .seconds(10)))
        #expect(producer.takeDeliveryReports().allSatisfy { $0.code == .none })
    }

    private func judged(_ run: Run) throws -> CheckReport {
        var run = run
        run.change = { [bootstrap = cluster.bootstrap] in
            $0.bootstrap = bootstrap
            $0.registrations = .topic("registrations")
            $0.deadLetters = .topic("letters")
            $0.suppressions = .topic("suppressions")
            $0.lowWatermarks = nil
        }
        return try run.judged()
    }

    /// An hour after the registrations, which Kafka dates from now.
    private func laterRun() -> Run {
        var run = Run()
        let later = Int64(Date.now.timeIntervalSince1970 * 1000) + 3_600_000 - Run.start
        run.events = (0..<10).map { Run.event(later + $0 * 10, offset: $0) }
        run.answers = (0..<20).map {
            Run.answer(later + Int64($0 / 2) * 10 + 5, $0 % 2, id: $0)
        }
        return run
    }

    @Test func `evidence in Kafka is read from its topics to their ends`() throws {
        var run = laterRun()
        run.answers.removeLast()
        try write(
            [
                Run.registration(at: 0), Run.registration(at: 0, subject: "door-2", handler: "Old"),
                Run.registration(at: 0, showing: nil, handler: "Old"),
            ], to: "registrations")
        #expect(try judged(run).lost == 1)
        let letter = Run.deadLetter(
            offset: 9, tokens: [1], attempts: 10, status: nil, reason: "AttemptsExhausted")
        try write([letter], to: "letters")
        let report = try judged(run)
        #expect(report.lost == 0)
        #expect(report.deadLettered == 1)
        #expect(report.obligations == 20)
        #expect(report.notes.isEmpty)
    }

    @Test func `evidence in Kafka shows that the embedded broker dropped events`() throws {
        try write([Run.registration(at: 0)], to: "registrations")
        var run = laterRun()
        run.events = run.events.map { $0.replacing(#""partition":0"#, with: #""partition":1"#) }
        // Nobody was told of the first.
        run.events[0] = run.events[0].replacing(#""subject":"door-1""#, with: #""subject":"x""#)
        run.answers = []
        // 5 MiB are kept; a megabyte each.
        let value = String(repeating: "x", count: 900_000)
        try write(
            (0..<8).map { _ in #"{"key":"door-1","value":"\#(value)"}"# }, to: "events")
        let report = try judged(run)
        #expect(report.truncated > 0)
        #expect(report.lost > 0)
        #expect(report.truncated + report.lost == 18)
        #expect(report.notes.contains { $0.contains("of events/1") })
    }

    @Test func `evidence in Kafka cannot be read from a topic that is not there`() throws {
        cluster.setError(.unknownTopicOrPartition, ofTopic: "letters")
        let error = #expect(throws: UnreadableInput.self) { try judged(laterRun()) }
        #expect(error?.place.hasPrefix("topic letters") == true)
    }
}
