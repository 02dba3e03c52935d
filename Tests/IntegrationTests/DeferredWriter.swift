// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import KafkaLog
import Logging
import PushModel
import RecordFormats
import Testing

/// Writes to `deferred` as a worker does.
struct DeferredWriter {
    private let producer: RecordProducer

    init(_ fleet: Fleet) throws {
        producer = try RecordProducer(
            settings: KafkaClientSettings(bootstrap: fleet.bootstrap, group: ""),
            topics: [fleet.topics.deferred],
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
    }

    /// - Returns: the record's offset.
    @discardableResult
    func write(_ key: String, _ push: DeferredPush?, endedOffset: Int64? = nil) throws -> Int64 {
        let headers = endedOffset.map { [(name: DeferredPush.endedHeader, value: "\($0)")] } ?? []
        let acceptance = Array(key.utf8).withUnsafeBytes { key in
            guard let push else {
                return producer.produce(topic: 0, key: key, value: nil, headers: headers, ticket: 1)
            }
            return DeferredEncoder.value(push).withUnsafeBytes { value in
                producer.produce(topic: 0, key: key, value: value, headers: headers, ticket: 1)
            }
        }
        try #require(acceptance == .accepted && producer.flush(timeout: .seconds(20)))
        var offset: Int64?
        producer.pollReports(now: .current) { offset = $0.position?.offset }
        return try #require(offset)
    }

    /// Writes many at once.
    func write(_ keys: [String], _ push: DeferredPush) throws {
        let value = DeferredEncoder.value(push)
        for key in keys {
            let acceptance = Array(key.utf8).withUnsafeBytes { key in
                value.withUnsafeBytes {
                    producer.produce(topic: 0, key: key, value: $0, headers: [], ticket: 1)
                }
            }
            try #require(acceptance == .accepted)
        }
        try #require(producer.flush(timeout: .seconds(20)))
        producer.pollReports(now: .current) { _ in }
    }
}
