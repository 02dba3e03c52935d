// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import KafkaLog
import LinuxIO
import Logging
import PushModel
import Rdkafka

/// Writes records to one topic, and tracks how far a group has committed it.
struct KafkaFeed {
    private let producer: RecordProducer
    private let positions: TopicPositions
    private let topic: String
    private(set) var acknowledged = 0

    /// - Parameter properties: of librdkafka's, for the producer.
    init(
        bootstrap: String, topic: String, group: String = "bench",
        properties: [String: String] = [:]
    ) throws {
        let logger = Logger(label: "feed") { StreamLogHandler.standardError(label: $0) }
        producer = try RecordProducer(
            settings: KafkaClientSettings(
                bootstrap: bootstrap, group: group, properties: properties),
            topics: [topic], logger: logger)
        positions = try TopicPositions(bootstrap: bootstrap, group: group)
        self.topic = topic
    }

    /// Writes a record, after waiting for room in the producer's queue.
    /// - Parameter partition: nil lets the key choose.
    mutating func write(key: [UInt8], value: [UInt8]?, partition: Int32? = nil) throws {
        while true {
            let acceptance = key.withUnsafeBytes { key in
                guard let value else {
                    return producer.produce(
                        topic: 0, partition: partition, key: key, value: nil, ticket: 1)
                }
                return value.withUnsafeBytes { value in
                    producer.produce(
                        topic: 0, partition: partition, key: key, value: value, ticket: 1)
                }
            }
            switch acceptance {
            case .accepted: return
            case .failed(let error): throw BenchError("Kafka does not take a record: \(error)")
            case .queueFull:
                try serveReports()
                usleep(1000)
            }
        }
    }

    mutating func serveReports() throws {
        var refusal: ErrorCode?
        var count = 0
        producer.poll(now: .current) { _, error in
            count += 1
            refusal = refusal ?? error
        }
        acknowledged += count
        if let refusal { throw BenchError("Kafka has refused a record: \(refusal)") }
    }

    /// Returns when everything is acknowledged.
    mutating func flush() throws {
        while producer.outstanding > 0 {
            _ = producer.flush(timeout: .milliseconds(100))
            try serveReports()
        }
    }

    /// Fills every partition with large records of events that nobody shows, and waits until the
    /// group has passed them. The embedded Kafka finds a record by reading all batches that it
    /// keeps of a partition, from the oldest: these few take the place of many small ones.
    mutating func displaceSmallBatches() throws {
        let subject = "nobody"
        let padding = String(repeating: "x", count: Self.fillerBytes)
        let filler = Array(#"{"v":1,"subject":"\#(subject)","padding":"\#(padding)"}"#.utf8)
        let partitions = try partitions()
        for _ in 0...Self.keptBytes / Self.fillerBytes {
            for partition in 0..<partitions {
                try write(key: Array(subject.utf8), value: filler, partition: partition)
            }
            // Batches of their own.
            try flush()
        }
        try wait(forCommitted: try written())
    }

    /// What the embedded Kafka keeps of a partition.
    private static let keptBytes = 5 << 20
    private static let fillerBytes = 256 << 10

    // MARK: The topic's offsets

    private static let silenceMax = Duration.seconds(120)

    /// Returns when the group has committed so many records of the topic.
    mutating func wait(forCommitted count: Int) throws {
        let deadline = ContinuousClock.now + Self.silenceMax
        while try committed() < count {
            if ContinuousClock.now > deadline {
                throw BenchError("the group has not come as far within \(Self.silenceMax)")
            }
            try serveReports()
            usleep(20_000)
        }
    }

    func partitions() throws -> Int32 { Int32(try positions.ends(of: topic).count) }

    /// How many records were ever written to the topic.
    func written() throws -> Int { Self.sum(try positions.ends(of: topic)) }

    /// How many of them are gone: the embedded Kafka drops the oldest of a partition beyond 5 MiB.
    func dropped() throws -> Int { Self.sum(try positions.beginnings(of: topic)) }

    /// How many of them the group has stored as done.
    func committed() throws -> Int { Self.sum(try positions.committed(of: topic)) }

    private static func sum(_ offsets: [Int64]) -> Int {
        offsets.reduce(0) { $0 + Int(max(0, $1)) }
    }
}
