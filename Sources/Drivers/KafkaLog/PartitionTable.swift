// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Synchronization

/// What the consumer knows of each partition it has been given: found by two array steps for every
/// record.
struct PartitionTable {
    struct Row {
        var epoch: UInt32 = 0
        var isAssigned = false
        /// The group wants it back: its records are dropped, and belong to the next owner.
        var isMuted = false
        /// By us. Exact, because resuming a partition that is not paused rewinds it, and because
        /// the flag outlives an assignment.
        var isPaused = false
        /// Its leader refuses to be read; the library goes on asking.
        var isRefused = false
        /// No record since the end was reached.
        var isAtEnd = false
        /// In this epoch.
        var hasReachedEnd = false
        var startOffset: Int64 = 0
        /// The highest offset delivered in this epoch, or the one before the start.
        var received: Int64 = -1
        /// The last one handed to the library.
        var stored: Int64 = -1
        var activeAt = MonotonicTime(nanoseconds: 0)
    }

    private var topics: [[Row]]

    /// Zero is never given out.
    private static let lastEpoch = Atomic<UInt32>(0)

    init(topics: Int) { self.topics = Array(repeating: [], count: topics) }

    subscript(topic: Int, partition: Int32) -> Row? {
        guard topic < topics.count, partition >= 0, partition < topics[topic].count else {
            return nil
        }
        return topics[topic][Int(partition)]
    }

    /// Whether the record is to be delivered. Offsets that were delivered in this epoch are not:
    /// a pause of the library's own can repeat some.
    mutating func receive(topic: Int, partition: Int32, offset: Int64, now: MonotonicTime) -> Bool {
        let index = Int(partition)
        guard index >= 0, index < topics[topic].count else { return false }
        guard topics[topic][index].isAssigned, !topics[topic][index].isMuted,
            offset > topics[topic][index].received
        else { return false }
        topics[topic][index].received = offset
        topics[topic][index].isAtEnd = false
        topics[topic][index].activeAt = now
        return true
    }

    mutating func assign(
        topic: Int, partition: Int32, startOffset: Int64, now: MonotonicTime
    ) -> PartitionEpoch {
        while topics[topic].count <= Int(partition) { topics[topic].append(Row()) }
        let epoch = Self.lastEpoch.wrappingAdd(1, ordering: .relaxed).newValue
        topics[topic][Int(partition)] = Row(
            epoch: epoch, isAssigned: true, startOffset: startOffset, received: startOffset - 1,
            stored: startOffset, activeAt: now)
        return PartitionEpoch(topic: topic, partition: partition, epoch: epoch)
    }

    /// Changes the row, if that epoch is still the current one.
    mutating func update(_ id: PartitionEpoch, _ change: (inout Row) -> Void) {
        guard let row = self[id.topic, id.partition], row.isAssigned, row.epoch == id.epoch else {
            return
        }
        change(&topics[id.topic][Int(id.partition)])
    }

    func row(_ id: PartitionEpoch) -> Row? {
        guard let row = self[id.topic, id.partition], row.isAssigned, row.epoch == id.epoch else {
            return nil
        }
        return row
    }

    /// The current epoch of an assigned partition.
    func epoch(topic: Int, partition: Int32) -> PartitionEpoch? {
        guard let row = self[topic, partition], row.isAssigned else { return nil }
        return PartitionEpoch(topic: topic, partition: partition, epoch: row.epoch)
    }

    func assigned(where matches: (Row) -> Bool = { _ in true }) -> [PartitionEpoch] {
        var result: [PartitionEpoch] = []
        for topic in topics.indices {
            for (partition, row) in topics[topic].enumerated() where row.isAssigned && matches(row)
            {
                result.append(
                    PartitionEpoch(topic: topic, partition: Int32(partition), epoch: row.epoch))
            }
        }
        return result
    }
}
