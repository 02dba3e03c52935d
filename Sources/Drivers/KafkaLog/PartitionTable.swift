// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Synchronization

/// What the consumer knows of each partition it was ever assigned. A record finds its row by topic
/// and partition, without hashing; an assignment finds it by its ordinal.
struct PartitionTable {
    struct Row {
        /// The latest assignment of the partition.
        let assignment: AssignmentID
        let topic: Int
        let partition: Int32
        var isAssigned = true
        /// Whether the group is taking the partition back. Its records are dropped; the next owner
        /// reads them.
        var isMuted = false
        /// Whether this consumer has paused the partition. This must be exact: resuming a partition
        /// that is not paused rewinds it, and librdkafka's own flag outlives the assignment.
        var isPaused = false
        /// Whether the caller holds the partition, so that nothing but `release` resumes it.
        var isHeld = false
        /// Whether this user may not read the partition. librdkafka keeps trying.
        var isRefused = false
        /// How many times in a row nobody could tell where the partition ends.
        var looksWithoutEnd = 0
        var isOutOfReach: Bool { looksWithoutEnd > 1 }
        /// Whether no record has come since the end was reached.
        var isAtEnd = false
        /// The end that was reached: the offset of the next record, or of a transaction's first that is
        /// not over.
        var readableEnd: Int64 = 0
        /// Since when the broker has records that may not be read yet, as far as was looked at.
        var withheldSince: MonotonicTime?
        /// Whether the end was reached in this assignment.
        var hasReachedEnd = false
        let startOffset: Int64
        /// The highest offset delivered in this assignment, or the one before the start.
        var received: Int64
        /// Records below this offset were delivered in earlier assignments.
        let deliveredBefore: Int64
        /// Records below this offset are read again without being dealt with again.
        var endedBefore: Int64 = 0
        /// The last position that was committed, or handed to librdkafka.
        var stored: Int64
        /// The metadata that was committed last in this assignment.
        var metadata: String?
        var activeAt: MonotonicTime

        /// The offset after the last one delivered in this assignment; 0 if there is none.
        var deliveredEnd: Int64 { received >= startOffset ? received + 1 : 0 }
    }

    /// The rows, by the ordinal of the assignment.
    private var rows: [Row] = []
    /// The ordinals by topic, then by partition; nil for a partition never assigned here.
    private var ordinals: [[UInt32?]]

    /// The last epoch used by any consumer of the process. The first is 1.
    private static let lastEpoch = Atomic<UInt32>(0)

    /// How many records were delivered a second time, to be dealt with again. Those of replayed
    /// topics do not count.
    private(set) var redelivered = 0
    private let replayed: Set<Int>

    init(topics: Int, replayed: Set<Int> = []) {
        ordinals = Array(repeating: [], count: topics)
        self.replayed = replayed
    }

    subscript(topic: Int, partition: Int32) -> Row? {
        ordinal(topic, partition).map { rows[Int($0)] }
    }

    private func ordinal(_ topic: Int, _ partition: Int32) -> UInt32? {
        guard topic < ordinals.count, partition >= 0, partition < ordinals[topic].count else {
            return nil
        }
        return ordinals[topic][Int(partition)]
    }

    /// Notes a record and returns the assignment under which to deliver it; nil if it must be
    /// dropped. Offsets already delivered are dropped: a pause inside librdkafka can repeat some.
    mutating func receive(
        topic: Int, partition: Int32, offset: Int64, now: MonotonicTime
    ) -> AssignmentID? {
        guard let ordinal = ordinal(topic, partition) else { return nil }
        let index = Int(ordinal)
        guard rows[index].isAssigned, !rows[index].isMuted, offset > rows[index].received else {
            return nil
        }
        rows[index].received = offset
        if offset < rows[index].deliveredBefore, offset >= rows[index].endedBefore {
            redelivered += 1
        }
        rows[index].isAtEnd = false
        rows[index].withheldSince = nil
        rows[index].activeAt = now
        assert(rows[index].topic == topic, "a record has the topic of its assignment")
        assert(rows[index].partition == partition, "a record has the partition of its assignment")
        return rows[index].assignment
    }

    mutating func assign(
        topic: Int, partition: Int32, startOffset: Int64, now: MonotonicTime
    ) -> AssignmentID {
        while ordinals[topic].count <= Int(partition) { ordinals[topic].append(nil) }
        let known = ordinals[topic][Int(partition)]
        let ordinal = known ?? UInt32(rows.count)
        let id = AssignmentID(
            ordinal: ordinal, epoch: Self.lastEpoch.add(1, ordering: .relaxed).newValue)
        let before = replayed.contains(topic) ? nil : known.map { rows[Int($0)] }
        let row = Row(
            assignment: id, topic: topic, partition: partition, startOffset: startOffset,
            received: startOffset - 1,
            deliveredBefore: before.map { max($0.deliveredBefore, $0.deliveredEnd) } ?? 0,
            stored: startOffset, activeAt: now)
        if known == nil {
            ordinals[topic][Int(partition)] = ordinal
            rows.append(row)
        } else {
            rows[Int(ordinal)] = row
        }
        return id
    }

    /// Changes the row if the assignment is still the current one of its partition.
    mutating func update(_ id: AssignmentID, _ change: (inout Row) -> Void) {
        guard let before = row(id) else { return }
        change(&rows[Int(id.ordinal)])
        assert(
            before.received <= rows[Int(id.ordinal)].received,
            "the offset that was delivered never goes back")
    }

    func row(_ id: AssignmentID) -> Row? {
        guard id.ordinal < rows.count, rows[Int(id.ordinal)].isAssigned,
            rows[Int(id.ordinal)].assignment == id
        else { return nil }
        return rows[Int(id.ordinal)]
    }

    /// The current assignment of a partition; nil if it is not assigned here.
    func assignment(topic: Int, partition: Int32) -> AssignmentID? {
        guard let row = self[topic, partition], row.isAssigned else { return nil }
        return row.assignment
    }

    /// The partition of an assignment, which may have ended.
    func partition(of id: AssignmentID) -> (topic: Int, number: Int32) {
        (rows[Int(id.ordinal)].topic, rows[Int(id.ordinal)].partition)
    }

    func assigned(where matches: (Row) -> Bool = { _ in true }) -> [AssignmentID] {
        rows.filter { $0.isAssigned && matches($0) }.map(\.assignment)
    }
}
