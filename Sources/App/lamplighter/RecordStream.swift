// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Configuration
import Entrypoint
import Foundation
import KafkaLog
import Logging

/// Writes many records, up to a rate, and waits until each is acknowledged; for the commands.
struct RecordStream {
    private let producer: RecordProducer
    private let interval: Duration?
    private var nextAt = ContinuousClock.now
    private var written = 0
    private(set) var acknowledged = 0

    private static let collectedTogether = 64
    /// How long Kafka may acknowledge nothing before it counts as unavailable.
    private static let silenceMax = Duration.seconds(20)

    /// - Parameters:
    ///   - rate: records a second; nil for no limit.
    ///   - isFrugal: whether its queue takes 2 MiB at most.
    init(
        _ configuration: Configuration, topics: [String], rate: Int? = nil, isFrugal: Bool = false
    ) throws {
        var settings = configuration.kafka.clientSettings
        settings.isFrugal = isFrugal
        producer = try RecordProducer(
            settings: settings, topics: topics,
            logger: ConfigurationOption.logger(configuration.log))
        interval = rate.map { .seconds(1) / $0 }
    }

    /// Writes one record, after waiting for its turn and for room in the producer's queue.
    mutating func write(_ record: OwnedRecord) throws {
        try waitForTurn()
        let deadline = ContinuousClock.now + Self.silenceMax
        while true {
            switch offer(record) {
            case .accepted:
                written += 1
                // To look for reports takes as long as to write a record.
                return written % Self.collectedTogether == 0 ? try collect() : ()
            case .queueFull where ContinuousClock.now < deadline:
                try collect()
                Thread.sleep(forTimeInterval: 0.001)
            case .queueFull: throw refusal("the producer's queue is full")
            case .failed(let error): throw refusal("\(error)")
            }
        }
    }

    /// Waits until every record has been acknowledged.
    mutating func finish() throws {
        let isDone = producer.flush(timeout: Self.silenceMax)
        try collect()
        if !isDone || acknowledged < written {
            throw refusal(
                producer.tokenFailure?.description ?? producer.connectionFailure?.description
                    ?? "no acknowledgement came")
        }
    }

    private mutating func waitForTurn() throws {
        guard let interval else { return }
        nextAt = max(nextAt + interval, .now)
        while ContinuousClock.now < nextAt {
            try collect()
            let left = nextAt - .now
            Thread.sleep(forTimeInterval: min(0.1, max(0, left / .seconds(1))))
        }
    }

    private func offer(_ record: OwnedRecord) -> RecordProducer.Acceptance {
        OwnedRecord.lend(record.key) { key in
            OwnedRecord.lend(record.value) { value in
                producer.produce(
                    topic: record.topic, partition: record.partition, key: key, value: value,
                    headers: record.headers, ticket: 1)
            }
        }
    }

    private mutating func collect() throws {
        var good = 0
        var refused: String?
        producer.poll(now: RecordWriter.now()) { _, error in
            if let error { refused = "\(error)" } else { good += 1 }
        }
        acknowledged += good
        if let refused { throw refusal(refused) }
    }

    private func refusal(_ why: String) -> Failure {
        Failure(
            .unavailable,
            "Kafka refused a record: \(why); \(acknowledged) of the \(written) records written so "
                + "far are known to be safe")
    }
}

/// A record to be written, which owns its bytes.
struct OwnedRecord {
    /// The position of the topic in the stream's list.
    var topic: Int
    /// The partition; nil for the one that the key hashes to.
    var partition: Int32?
    var key: [UInt8]?
    /// The value; nil for a tombstone.
    var value: [UInt8]?
    var headers: [(name: String, value: String)] = []

    fileprivate static func lend<Result>(
        _ bytes: [UInt8]?, _ body: (UnsafeRawBufferPointer?) -> Result
    ) -> Result {
        bytes.map { $0.withUnsafeBytes { body($0) } } ?? body(nil)
    }
}
