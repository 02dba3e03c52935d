// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import Rdkafka

/// Reads a topic from its beginning to its end at the time of the call, without a group and without
/// changing anything.
struct TopicReader {
    private let client: Client
    private let bootstrap: String

    /// How long to wait without a record or an answer before giving up.
    private static let silenceMax = Duration.seconds(30)

    init(bootstrap: String) throws(UnreadableInput) {
        self.bootstrap = bootstrap
        do {
            let configuration = Configuration()
            try configuration.set("bootstrap.servers", bootstrap)
            // librdkafka requires a group; nothing is committed and no member joins.
            try configuration.set("group.id", "lamplighter-lab-verify")
            try configuration.set("enable.auto.commit", "false")
            try configuration.set("enable.partition.eof", "true")
            // The embedded Kafka delays an empty fetch by all of this time.
            try configuration.set("fetch.wait.max.ms", "50")
            client = try Client(.consumer, configuration: configuration) { _, _, _ in
                // The log is not needed: errors are returned by the calls.
            }
            try client.pollEverythingAsConsumer()
        } catch {
            throw UnreadableInput(bootstrap, "\(error)")
        }
    }

    /// The oldest offset that each partition still has.
    func lowWatermarks(of topic: String) throws(UnreadableInput) -> [Int32: Int64] {
        do {
            let lows = try positions(topic, at: Offset.beginning)
            return Dictionary(
                uniqueKeysWithValues: (0..<lows.count).map { (lows[$0].partition, lows[$0].offset) }
            )
        } catch {
            throw UnreadableInput("topic \(topic) at \(bootstrap)", "\(error)")
        }
    }

    /// Calls `body` with each record, in order within a partition.
    func forEachRecord(
        of topic: String, _ body: (LoggedRecord) -> Void
    ) throws(UnreadableInput) {
        do {
            let start = try positions(topic, at: Offset.beginning)
            var open = Set((0..<start.count).map { start[$0].partition })
            try client.assign(start)
            defer { try? client.unassignAll() }
            let clock = ContinuousClock()
            var deadline = clock.now + Self.silenceMax
            while !open.isEmpty {
                guard let message = client.pollMessage() else {
                    if clock.now > deadline { throw RdkafkaError(.timedOut) }
                    Thread.sleep(forTimeInterval: 0.001)
                    continue
                }
                deadline = clock.now + Self.silenceMax
                switch message.error {
                case .none: body(LoggedRecord(message))
                case .partitionEOF: open.remove(message.partition)
                default: throw RdkafkaError(message.error, message: message.errorText)
                }
            }
        } catch {
            throw UnreadableInput("topic \(topic) at \(bootstrap)", "\(error)")
        }
    }

    private func positions(_ name: String, at time: Int64) throws -> TopicPartitionList {
        let topic = try Topic(name, of: client)
        let metadata = try client.metadata(of: topic, timeout: .seconds(10))
        guard metadata.error == .none else { throw RdkafkaError(metadata.error) }
        let list = TopicPartitionList(capacity: Int(metadata.partitionCount))
        for partition in 0..<metadata.partitionCount {
            list.append(topic: name, partition: partition, offset: time)
        }
        return try client.offsetsForTimes(list, timeout: .seconds(10))
    }
}

extension LoggedRecord {
    fileprivate init(_ message: borrowing Message) {
        self.init(
            t: message.timestampMilliseconds,
            key: message.key.map { String(decoding: $0, as: UTF8.self) } ?? "",
            value: message.value.map { Data($0) })
    }
}
