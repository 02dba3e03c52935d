// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Configuration
import Entrypoint
import KafkaLog
import LinuxIO
import Logging
import PushModel

/// Writes single records and waits until each is acknowledged; for the commands.
struct RecordWriter {
    private let producer: RecordProducer

    /// It begins to connect at once.
    init(_ configuration: Configuration, topics: [String]) throws {
        producer = try RecordProducer(
            settings: configuration.kafka.clientSettings, topics: topics,
            logger: ConfigurationOption.logger(configuration.log))
    }

    /// Writes a record to the first topic and waits until it is acknowledged.
    /// - Parameter waitMax: how long that may take.
    func write(
        key: [UInt8], value: [UInt8]?, headers: [(name: String, value: String)] = [],
        within waitMax: Duration = .seconds(15)
    ) throws {
        let topic = producer.topics[0]
        let acceptance = key.withUnsafeBytes { key in
            guard let value else {
                return producer.produce(
                    topic: 0, key: key, value: nil, headers: headers, ticket: 1)
            }
            return value.withUnsafeBytes { value in
                producer.produce(topic: 0, key: key, value: value, headers: headers, ticket: 1)
            }
        }
        if case .failed(let error) = acceptance {
            throw RefusedWrite(topic: topic, error)
        }
        guard producer.flush(timeout: waitMax) else {
            if let failure = producer.tokenFailure { throw KafkaError.noToken(failure) }
            if let failure = producer.connectionFailure { throw KafkaError.noConnection(failure) }
            throw Failure(
                .unavailable,
                "Kafka did not confirm the record within \(waitMax): check kafka.bootstrap, that "
                    + "topic '\(topic)' exists, and that this user has WRITE on it (Rights in "
                    + "docs/kafka.md)")
        }
        var refused: RefusedWrite?
        producer.poll(now: Self.now()) { _, error in
            refused = error.map { RefusedWrite(topic: topic, $0) }
        }
        if let refused { throw refused }
    }

    static func now() -> Now {
        Now(
            monotonic: MonotonicTime(nanoseconds: SystemClock.monotonicNanoseconds()),
            wall: WallTime(milliseconds: SystemClock.wallNanoseconds() / 1_000_000))
    }
}
