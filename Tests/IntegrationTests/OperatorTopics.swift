// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import KafkaLog
import Logging
import OpenSSL
import PushModel
import RecordFormats

/// Writes to the topics that only workers write to, in place of a worker.
final class OperatorTopics {
    private let fleet: Fleet
    private let producer: RecordProducer

    init(_ fleet: Fleet) throws {
        self.fleet = fleet
        producer = try RecordProducer(
            settings: KafkaClientSettings(bootstrap: fleet.bootstrap, group: ""),
            topics: [fleet.topics.deadLetters],
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
    }

    /// - Returns: the letter's offset.
    @discardableResult
    func write(_ letter: DeadLetter, partition: Int32? = nil) throws -> Int64 {
        // The longest payload of the tests must be too large for its letter.
        try write(
            letter.subject, value: DeadLetterEncoder.value(letter, eventBytesMax: 99),
            partition: partition)
    }

    @discardableResult
    func write(_ key: [UInt8]?, value: [UInt8], partition: Int32? = nil) throws -> Int64 {
        let acceptance = value.withUnsafeBytes { value in
            guard let key else {
                return producer.produce(
                    topic: 0, partition: partition, key: nil, value: value, ticket: 1)
            }
            return key.withUnsafeBytes { key in
                producer.produce(
                    topic: 0, partition: partition, key: key, value: value, ticket: 1)
            }
        }
        guard acceptance == .accepted, producer.flush(timeout: .seconds(20)) else {
            throw Timeout(description: "a dead letter was not written: \(acceptance)")
        }
        var offset: Int64?
        producer.pollReports(now: .current) { offset = $0.position?.offset }
        guard let offset else { throw Timeout(description: "a dead letter was refused") }
        return offset
    }

    /// What `deferred` has under such keys.
    func deferred(_ isWanted: (String) -> Bool) async throws -> [TopicRecord] {
        try await records(of: fleet.topics.deferred).filter { isWanted($0.key ?? "") }
    }

    func records(of topic: String) async throws -> [TopicRecord] {
        try await TopicLog(
            topic: topic, bootstrap: fleet.bootstrap, header: DeferredPush.endedHeader
        ).readToEnd()
    }
}

extension TestToken {
    /// The name shown in place of the token.
    var name: String { String(Hexadecimal.encode(SHA256Digest.of(bytes)).prefix(16)) }
}

extension CommandResult {
    /// Of `--json`: one object a line.
    func objects() throws -> [[String: Any]] {
        try lines.map { line in
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
            guard let object = object as? [String: Any] else {
                throw Timeout(description: "no object: \(line)")
            }
            return object
        }
    }
}
