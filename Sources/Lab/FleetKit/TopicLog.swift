// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import KafkaLog
internal import LinuxIO
internal import Logging
package import PushModel

/// A record of a topic.
package struct TopicRecord: Sendable {
    package var partition: Int32
    package var offset: Int64
    /// The record's timestamp, in milliseconds since 1970.
    package var timestamp: Int64
    package var key: String?
    package var value: String?
    /// The value of the header that the `TopicLog` keeps; nil if there is none.
    package var header: String?
}

/// Reads a topic from its beginning, for tools and tests. Belongs to one thread at a time.
package final class TopicLog {
    private let reader: TableReader
    private let topic: String
    private let header: String?
    private var read: [TopicRecord] = []

    /// How long Kafka may send neither a record nor an end before it counts as unavailable.
    private static let silenceMax = Duration.seconds(20)
    private static let batch = 10_000

    /// - Parameter header: the name of a header whose value is kept; nil for none.
    package init(topic: String, bootstrap: String, header: String? = nil) throws {
        self.topic = topic
        self.header = header
        reader = try TableReader(
            settings: KafkaClientSettings(
                bootstrap: bootstrap, group: "lamplighter-lab",
                properties: ["fetch.wait.max.ms": "20"]),
            topics: [topic], now: .current,
            logger: Logger(label: "topic", factory: { _ in SwiftLogNoOpLogHandler() }))
    }

    deinit { reader.close(timeout: .seconds(5)) }

    /// The records that have arrived so far, in order within a partition.
    package var records: [TopicRecord] {
        while poll() == Self.batch {}
        return read
    }

    /// Reads to the end and returns all records.
    package func readToEnd() async throws -> [TopicRecord] {
        while try !isRead() { try await Task.sleep(for: .milliseconds(5)) }
        return read
    }

    /// Does the same as `readToEnd`, but blocks the thread.
    package func readToEndBlocking() throws -> [TopicRecord] {
        while try !isRead() { Thread.sleep(forTimeInterval: 0.005) }
        return read
    }

    private lazy var deadline = ContinuousClock.now + Self.silenceMax

    private func isRead() throws -> Bool {
        if poll() > 0 { deadline = .now + Self.silenceMax }
        if reader.isCaughtUp { return true }
        guard ContinuousClock.now < deadline, reader.failure == nil else {
            throw FleetError(description: "\(topic) cannot be read to its end")
        }
        return false
    }

    private func poll() -> Int {
        reader.poll(now: .current, limit: Self.batch) { record in
            read.append(
                TopicRecord(
                    partition: record.partition, offset: record.offset,
                    timestamp: record.timestampMilliseconds,
                    key: record.key.map { String(decoding: $0, as: UTF8.self) },
                    value: record.value.map { String(decoding: $0, as: UTF8.self) },
                    header: header.flatMap { record.header(named: $0) }.map {
                        String(decoding: $0, as: UTF8.self)
                    }))
        }
    }
}

extension Now {
    /// The current time of the system's clocks.
    package static var current: Now {
        Now(
            monotonic: MonotonicTime(nanoseconds: SystemClock.monotonicNanoseconds()),
            wall: .now)
    }
}

extension WallTime {
    package static var now: WallTime {
        WallTime(milliseconds: SystemClock.wallNanoseconds() / 1_000_000)
    }
}
