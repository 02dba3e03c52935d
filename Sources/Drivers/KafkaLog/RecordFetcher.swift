// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import LinuxIO
package import Logging
internal import PushModel
internal import Rdkafka

/// Reads records by their offsets, for what is seldom asked. It belongs to one thread, which it blocks.
package final class RecordFetcher {
    private let topic: String
    private let session: ConsumerSession
    /// The partitions that gave nothing when they were asked last.
    private var slow: Set<Int32> = []

    package init(
        settings: KafkaClientSettings, topic: String, logger: Logger
    ) throws(KafkaError) {
        self.topic = topic
        session = try ConsumerSession(
            settings: settings, role: .records, topics: [topic], logger: logger, waker: Waker())
    }

    /// What has become of a record.
    package enum Found: Sendable, Hashable {
        /// nil for a tombstone.
        case value([UInt8]?)
        /// The log does not have it any more.
        case gone
        /// Kafka has not answered in time.
        case unavailable
    }

    /// Where a record is.
    package struct Position: Hashable, Sendable {
        package var partition: Int32
        package var offset: Int64

        package init(partition: Int32, offset: Int64) {
            self.partition = partition
            self.offset = offset
        }
    }

    /// The records of a partition that are wanted.
    private struct Wanted {
        /// Ascending; not empty.
        var offsets: [Int64]
        /// When the next of them is given up; nil if it is to be fetched by itself.
        var deadline: ContinuousClock.Instant?

        /// Records between two that are wanted are read past if they are no more than this.
        static let distanceMax: Int64 = 64
    }

    /// Reads the records at these positions, partitions side by side. A partition that Kafka cannot
    /// serve delays the others once, and then little, until it can.
    ///
    /// - Parameters:
    ///   - timeout: how long to wait for the next record of a partition.
    ///   - found: is told of each position, as soon as it is known.
    package func read(
        _ positions: some Sequence<Position>, timeout: Duration, _ found: (Position, Found) -> Void
    ) {
        var wanted = Dictionary(grouping: Set(positions), by: \.partition).mapValues {
            Wanted(offsets: $0.map(\.offset).sorted())
        }
        defer { try? session.client.unassignAll() }
        while !wanted.isEmpty {
            let list = TopicPartitionList(capacity: wanted.count)
            for partition in wanted.keys {
                let isSlow = slow.contains(partition)
                wanted[partition]!.deadline = .now + (isSlow ? min(Self.trial, timeout) : timeout)
                list.append(
                    topic: topic, partition: partition, offset: wanted[partition]!.offsets[0])
            }
            guard (try? session.client.assign(list)) != nil else {
                return giveUp(wanted.keys, &wanted, found)
            }
            take(&wanted, timeout, found)
        }
    }

    /// How long a partition that gave nothing is waited for when it is asked again.
    private static let trial = Duration.milliseconds(200)

    /// Takes what comes of the assigned partitions, until nothing is waited for.
    private func take(
        _ wanted: inout [Int32: Wanted], _ timeout: Duration, _ found: (Position, Found) -> Void
    ) {
        while wanted.contains(where: { $0.value.deadline != nil }) {
            if let message = session.client.pollMessage() {
                take(message, .now + timeout, &wanted, found)
            } else {
                _ = session.client.takeNews()
                usleep(1000)
            }
            let now = ContinuousClock.now
            let late = wanted.filter { $0.value.deadline.map { $0 <= now } ?? false }.keys
            slow.formUnion(late)
            giveUp(late, &wanted, found)
        }
    }

    private func take(
        _ message: borrowing Message, _ deadline: ContinuousClock.Instant,
        _ wanted: inout [Int32: Wanted], _ found: (Position, Found) -> Void
    ) {
        let (partition, isEnd) = (message.partition, message.error == .partitionEOF)
        guard isEnd || message.error == .none, var rest = wanted[partition],
            rest.deadline != nil, isEnd || message.offset >= rest.offsets[0]
        else { return }
        slow.remove(partition)
        while let offset = rest.offsets.first, isEnd || offset <= message.offset {
            let isHere = !isEnd && offset == message.offset
            found(
                Position(partition: partition, offset: offset),
                isHere ? .value(message.value.map { Array($0) }) : .gone)
            rest.offsets.removeFirst()
        }
        guard let next = rest.offsets.first else { return wanted[partition] = nil }
        let isNear = next - message.offset <= Wanted.distanceMax
        rest.deadline = isNear ? deadline : nil
        wanted[partition] = rest
    }

    private func giveUp(
        _ partitions: some Sequence<Int32>, _ wanted: inout [Int32: Wanted],
        _ found: (Position, Found) -> Void
    ) {
        for partition in Array(partitions) {
            for offset in wanted.removeValue(forKey: partition)?.offsets ?? [] {
                found(Position(partition: partition, offset: offset), .unavailable)
            }
        }
    }
}
