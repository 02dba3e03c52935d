// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Configuration
import Entrypoint
import KafkaLog
import LinuxIO

/// A partition has fewer records than were asked for: reading all of them is no more work.
struct ShorterLog: Error {}

/// Reads one topic from its beginning to its end, for the commands. It takes no part in the group
/// and commits nothing.
struct TopicSweep {
    /// The last offset seen in each partition.
    typealias Ends = [Int32: Int64]

    private let configuration: Configuration
    private let topic: String
    /// How many records of each partition are read, the last ones; nil for all.
    private var tail: Int?
    /// How long reading may take; nil for as long as Kafka sends something.
    private let timeMax: Duration?

    /// How long Kafka may send neither a record nor an end before it counts as unavailable.
    private static let silenceMax = Duration.seconds(20)
    private static let batch = 1000
    /// For looking where records are.
    private static let placesTimeMax = Duration.seconds(5)

    init(
        _ configuration: Configuration, topic: String, tail: Int? = nil,
        within timeMax: Duration? = nil
    ) {
        self.configuration = configuration
        self.topic = topic
        self.tail = tail
        self.timeMax = timeMax
    }

    /// Of the last records of each partition, those that are in another one than their keys'. Where a
    /// partition has fewer, the first ones of the topic are looked at, so many that it takes no time.
    static func misplaced(
        among count: Int, of topic: String, _ configuration: Configuration
    ) throws -> MisplacedRecords {
        for tail in [count, nil] {
            var left = 100_000
            do {
                return try TopicSweep(
                    configuration, topic: topic, tail: tail, within: Self.placesTimeMax
                )
                .sweep(upTo: nil) { _ in
                    left -= 1
                    return left > 0
                }.misplaced
            } catch is ShorterLog {
                continue
            }
        }
        return MisplacedRecords(topic: topic)
    }

    /// Lends each record to `body`, in order within a partition, until `body` returns false. Throws
    /// what `body` throws.
    ///
    /// - Parameter ends: the last offsets to read, so that a caller whose work causes new records
    ///   comes to an end; nil to read everything.
    @discardableResult
    func run(
        upTo ends: Ends? = nil, _ body: (borrowing KafkaRecord) throws -> Bool
    ) throws -> Ends {
        try sweep(upTo: ends, body).seen
    }

    private func sweep(
        upTo ends: Ends?, _ body: (borrowing KafkaRecord) throws -> Bool
    ) throws -> (seen: Ends, misplaced: MisplacedRecords) {
        let start = ContinuousClock.now
        let reader = try TableReader(
            settings: configuration.kafka.clientSettings, topics: [topic],
            from: tail.map { .tail($0) } ?? .beginning, timeout: timeMax ?? .seconds(15),
            now: RecordWriter.now(),
            logger: ConfigurationOption.logger(configuration.log))
        defer { reader.close(timeout: timeMax == nil ? .seconds(5) : .seconds(1)) }
        let epoll = try Epoll()
        try epoll.add(reader.wakeDescriptor, for: .read, tag: 0)
        var seen = Ends()
        var failure: (any Error)?
        var isOver = ends?.isEmpty ?? false
        var heard = ContinuousClock.now
        while !isOver {
            reader.clearWakeUp()
            let looked = reader.poll(now: RecordWriter.now(), limit: Self.batch) { record in
                guard !isOver else { return }
                if let ends, record.offset > ends[record.partition] ?? -1 { return }
                seen[record.partition] = record.offset
                do {
                    isOver = try !body(record) || seen == ends
                } catch {
                    failure = error
                    isOver = true
                }
            }
            if let failure { throw failure }
            if looked > 0 { heard = .now }
            if !isOver, let timeMax { try checkTime(of: reader, since: start, timeMax) }
            if looked == Self.batch { continue }
            isOver = isOver || reader.isCaughtUp
            if !isOver { try wait(for: reader, epoll, since: heard) }
        }
        return (seen, reader.misplaced[0])
    }

    /// Ends a sweep that may take only so long when its time is over, or when Kafka has said that
    /// this user may not read the topic: nothing more comes then.
    private func checkTime(
        of reader: TableReader, since start: ContinuousClock.Instant, _ timeMax: Duration
    ) throws {
        if reader.isRefused { throw KafkaError.forbidden(topic: topic, operation: "READ") }
        guard start.duration(to: .now) >= timeMax else { return }
        if let failure = reader.connectionFailure { throw KafkaError.noConnection(failure) }
        throw Failure(.unavailable, "Kafka has not sent all of \(topic) within \(timeMax)")
    }

    private func wait(
        for reader: TableReader, _ epoll: borrowing Epoll, since heard: ContinuousClock.Instant
    ) throws {
        if let error = reader.failure {
            if tail != nil, reader.isOutsideLog { throw ShorterLog() }
            throw Failure(.unavailable, "\(topic) cannot be read: \(error)")
        }
        guard heard.duration(to: .now) < Self.silenceMax else {
            if let failure = reader.connectionFailure { throw KafkaError.noConnection(failure) }
            let cause = reader.takeWarnings().last.map { ": \($0.text)" } ?? ""
            throw Failure(
                .unavailable, "Kafka sends nothing of \(topic) for \(Self.silenceMax)\(cause)")
        }
        _ = epoll.wait(timeout: .milliseconds(100))
    }
}
