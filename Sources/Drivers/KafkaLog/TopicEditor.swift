// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import LinuxIO
package import Logging
internal import PushModel

/// Reads a compacted topic to its end and changes records of it; for commands.
///
/// Kafka has no conditional write. So each change is checked once it is in the log: a record that
/// another process wrote under the same key in between is written again after it. That record is
/// lost only if this process ends within those milliseconds.
package final class TopicEditor {
    /// One record to be written.
    package struct Change: Sendable {
        package let key: [UInt8]
        /// The partition that holds the key's record.
        package let partition: Int32
        /// The new value; nil writes a tombstone.
        package let value: [UInt8]?

        package init(key: [UInt8], partition: Int32, value: [UInt8]?) {
            self.key = key
            self.partition = partition
            self.value = value
        }
    }

    package struct Failure: Error, CustomStringConvertible {
        package let description: String
    }

    package typealias Body = (borrowing KafkaRecord) -> Void

    private let topic: String
    private let reader: TableReader
    private let producer: RecordProducer
    /// The last offset seen of each partition.
    private var seen: [Int32: Int64] = [:]

    private static let silenceMax = Duration.seconds(20)
    private static let batch = 1000
    /// How often a change is repeated because another process keeps writing the same keys.
    private static let roundsMax = 10

    package init(settings: KafkaClientSettings, topic: String, logger: Logger) throws(KafkaError) {
        self.topic = topic
        reader = try TableReader(
            settings: settings, topics: [topic], now: Self.now, logger: logger)
        producer = try RecordProducer(settings: settings, topics: [topic], logger: logger)
    }

    package func close() { reader.close(timeout: .seconds(5)) }

    private static var now: Now {
        Now(
            monotonic: MonotonicTime(nanoseconds: SystemClock.monotonicNanoseconds()),
            wall: WallTime(milliseconds: SystemClock.wallNanoseconds() / 1_000_000))
    }

    // MARK: Reading

    package func readToEnd(_ body: Body) throws(Failure) {
        try read(until: { reader.isCaughtUp }, body)
    }

    /// Reads the records that have arrived since, without waiting for more.
    package func readOn(_ body: Body) { while poll(body) == Self.batch {} }

    private func read(until isDone: () -> Bool, _ body: Body) throws(Failure) {
        var heard = ContinuousClock.now
        while true {
            let looked = poll(body)
            if looked > 0 { heard = .now }
            if looked == Self.batch { continue }
            if isDone() { return }
            if let error = reader.failure {
                throw Failure(description: "\(topic) cannot be read: \(error)")
            }
            guard heard.duration(to: .now) < Self.silenceMax else {
                let cause = reader.connectionFailure.map { ": \($0)" } ?? ""
                throw Failure(
                    description: "Kafka sends nothing of \(topic) for \(Self.silenceMax)\(cause)")
            }
            usleep(5000)
        }
    }

    private func poll(_ body: Body) -> Int {
        reader.poll(now: Self.now, limit: Self.batch) { record in
            seen[record.partition] = record.offset
            body(record)
        }
    }

    // MARK: Changing

    /// - Parameters:
    ///   - body: is lent every record read meanwhile, including the changes.
    ///   - revise: returns the value to write under a key after all, given the record that another
    ///     process wrote before the change; nil if the change stands.
    package func write(
        _ changes: [Change], _ body: Body,
        revise: (_ key: [UInt8], _ value: [UInt8]?) -> [UInt8]??
    ) throws(Failure) {
        var left = changes
        for _ in 0..<Self.roundsMax {
            guard !left.isEmpty else { return }
            let before = seen
            let offsets = try produce(left)
            var ours: [[UInt8]: (partition: Int32, offset: Int64)] = [:]
            for (change, offset) in zip(left, offsets) {
                ours[change.key] = (change.partition, offset)
            }
            var others: [[UInt8]: [UInt8]?] = [:]
            try read(until: { hasSeen(left, offsets) }) { record in
                body(record)
                let key = record.key.map { Array($0) } ?? []
                guard let mine = ours[key], record.partition == mine.partition,
                    record.offset < mine.offset, record.offset > before[record.partition] ?? -1
                else { return }
                others[key] = .some(record.value.map { Array($0) })
            }
            left = others.compactMap { key, value in
                revise(key, value).map { value in
                    Change(key: key, partition: ours[key]!.partition, value: value)
                }
            }
        }
        throw Failure(
            description: "another process keeps writing the same keys of \(topic): try again")
    }

    private func hasSeen(_ changes: [Change], _ offsets: [Int64]) -> Bool {
        zip(changes, offsets).allSatisfy { seen[$0.partition] ?? -1 >= $1 }
    }

    /// - Returns: the offset of each change.
    private func produce(_ changes: [Change]) throws(Failure) -> [Int64] {
        var offsets = [Int64](repeating: -1, count: changes.count)
        for (index, change) in changes.enumerated() {
            let acceptance = offer(change, ticket: UInt64(index))
            guard acceptance == .accepted else {
                throw Failure(description: "Kafka's producer refuses a record: \(acceptance)")
            }
        }
        _ = producer.flush(timeout: Self.silenceMax)
        var refusal: String?
        producer.pollReports(now: Self.now) { report in
            if let position = report.position { offsets[Int(report.ticket)] = position.offset }
            if let error = report.error { refusal = "\(error)" }
        }
        guard refusal == nil, offsets.allSatisfy({ $0 >= 0 }) else {
            let why = refusal ?? producer.connectionFailure?.description ?? "no answer came"
            throw Failure(
                description: "Kafka did not confirm a record for \(topic) (\(why)): what was "
                    + "printed so far is done; run the command again for the rest")
        }
        return offsets
    }

    private func offer(_ change: Change, ticket: UInt64) -> RecordProducer.Acceptance {
        change.key.withUnsafeBytes { key in
            (change.value ?? []).withUnsafeBytes { value in
                producer.produce(
                    topic: 0, partition: change.partition, key: key,
                    value: change.value == nil ? nil : value, ticket: ticket)
            }
        }
    }
}
