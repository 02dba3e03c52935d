// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import KafkaLog
internal import LinuxIO
internal import Logging
package import PushModel

/// A record as it stands in a topic.
package struct TopicRecord: Sendable {
    package var partition: Int32
    package var offset: Int64
    /// Milliseconds since 1970.
    package var timestamp: Int64
    package var key: String?
    package var value: String?
    /// Of the header that the log was asked for.
    package var header: String?
}

/// A topic, read from its beginning by someone other than the worker. Belongs to one thread at a
/// time.
package final class TopicLog {
    private let reader: TableReader
    private let topic: String
    private let header: String?
    private var read: [TopicRecord] = []

    /// Without a record and without an end for so long, Kafka counts as gone.
    private static let silenceMax = Duration.seconds(20)
    private static let batch = 10_000

    /// - Parameter header: the name of one whose value is kept.
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

    /// All that has arrived so far; of each partition in order.
    package var records: [TopicRecord] {
        while poll() == Self.batch {}
        return read
    }

    /// All that was there when this was called, a little later.
    package func readToEnd() async throws -> [TopicRecord] {
        while try !isRead() { try await Task.sleep(for: .milliseconds(5)) }
        return read
    }

    /// The same for a thread of one's own.
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
    /// By the system's clocks.
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
