// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import KafkaLog
import LinuxIO
import PushModel
import Worker

/// The registrations topic, read to its end and on, and changed on the way.
///
/// Kafka cannot write "only if nobody has written since". So a change is looked at once it stands in
/// the log: what somebody else has written under the same key in between is written again behind it.
/// Only if this process ends within those milliseconds is the other's record lost.
final class RegistrationLog {
    /// One record to be written.
    struct Change {
        let key: [UInt8]
        let partition: Int32
        /// Nil removes.
        let value: [UInt8]?
    }

    typealias Body = (borrowing KafkaRecord) -> Void

    private let topic: String
    private let reader: TableReader
    private let producer: RecordProducer
    private let epoll: Epoll
    /// The last offset seen of each partition.
    private var seen: [Int32: Int64] = [:]

    private static let silenceMax = Duration.seconds(20)
    private static let batch = 1000
    /// So often the same key can be written by somebody else within milliseconds; it never is.
    private static let roundsMax = 10

    init(_ configuration: Configuration) throws {
        epoll = try Epoll()
        topic = configuration.kafka.topics.registrations
        let logger = ConfigurationOption.logger(configuration.log)
        reader = try TableReader(
            settings: configuration.kafka.clientSettings, topics: [topic],
            now: RecordWriter.now(), logger: logger)
        producer = try RecordProducer(
            settings: configuration.kafka.clientSettings, topics: [topic], logger: logger)
        try epoll.add(reader.wakeDescriptor, for: .read, tag: 0)
    }

    func close() { reader.close(timeout: .seconds(5)) }

    // MARK: Reading

    func readToEnd(_ body: Body) throws { try read(until: { reader.isCaughtUp }, body) }

    /// What has come since.
    func readOn(_ body: Body) { while poll(body) == Self.batch {} }

    private func read(until isDone: () -> Bool, _ body: Body) throws {
        var heard = ContinuousClock.now
        while true {
            reader.clearWakeUp()
            let looked = poll(body)
            if looked > 0 { heard = .now }
            if looked == Self.batch { continue }
            if isDone() { return }
            if let error = reader.failure {
                throw Failure(.unavailable, "\(topic) cannot be read: \(error)")
            }
            guard heard.duration(to: .now) < Self.silenceMax else {
                throw Failure(
                    .unavailable, "Kafka gives nothing of \(topic) for \(Self.silenceMax)")
            }
            _ = epoll.wait(timeout: .milliseconds(20))
        }
    }

    private func poll(_ body: Body) -> Int {
        reader.poll(now: RecordWriter.now(), limit: Self.batch) { record in
            seen[record.partition] = record.offset
            body(record)
        }
    }

    // MARK: Changing

    /// - Parameters:
    ///   - body: is lent every record that comes meanwhile, these included.
    ///   - revise: what must stand under a key in place of the change, now that this record of
    ///     somebody else's has come before it; nil if the change is right all the same.
    func write(
        _ changes: [Change], _ body: Body,
        revise: (_ key: [UInt8], _ value: [UInt8]?) -> [UInt8]??
    ) throws {
        var left = changes
        for _ in 0..<Self.roundsMax {
            guard !left.isEmpty else { return }
            let before = seen
            let positions = try produce(left)
            var ours: [[UInt8]: (change: Change, offset: Int64)] = [:]
            for (change, offset) in zip(left, positions) { ours[change.key] = (change, offset) }
            var others: [[UInt8]: [UInt8]?] = [:]
            try read(until: { hasSeen(left, positions) }) { record in
                body(record)
                let key = record.key.map { Array($0) } ?? []
                guard let mine = ours[key], record.partition == mine.change.partition,
                    record.offset < mine.offset, record.offset > before[record.partition] ?? -1
                else { return }
                others[key] = .some(record.value.map { Array($0) })
            }
            left = others.compactMap { key, value in
                revise(key, value).map { value in
                    Change(key: key, partition: ours[key]!.change.partition, value: value)
                }
            }
        }
        throw Failure(.unavailable, "somebody else keeps writing the same registrations: try again")
    }

    private func hasSeen(_ changes: [Change], _ offsets: [Int64]) -> Bool {
        zip(changes, offsets).allSatisfy { seen[$0.partition] ?? -1 >= $1 }
    }

    /// - Returns: where each was written.
    private func produce(_ changes: [Change]) throws -> [Int64] {
        var offsets = [Int64](repeating: -1, count: changes.count)
        for (index, change) in changes.enumerated() {
            let acceptance = OwnedRecord.lend(change.key) { key in
                OwnedRecord.lend(change.value) { value in
                    producer.produce(
                        topic: 0, partition: change.partition, key: key, value: value,
                        ticket: UInt64(index))
                }
            }
            guard acceptance == .accepted else {
                throw Failure(.unavailable, "Kafka does not take a record: \(acceptance)")
            }
        }
        _ = producer.flush(timeout: Self.silenceMax)
        var refusal: String?
        producer.pollReports(now: RecordWriter.now()) { report in
            if let position = report.position { offsets[Int(report.ticket)] = position.offset }
            if let error = report.error { refusal = "\(error)" }
        }
        guard refusal == nil, offsets.allSatisfy({ $0 >= 0 }) else {
            throw Failure(
                .unavailable,
                "Kafka did not confirm a record for \(topic) (\(refusal ?? "no answer came")): what "
                    + "was printed so far is done; run the command again for the rest")
        }
        return offsets
    }
}
