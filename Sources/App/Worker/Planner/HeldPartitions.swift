// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Pipeline
internal import PushModel
internal import SchemaCodecs

/// The partitions whose next record waits for its schema, or for this worker's clock. Kafka had already lent that record and some
/// that follow it, so they are kept here; nothing more is read of the partition meanwhile. They are as
/// many as the consumer reads ahead (`EventConsumer.poll`) at most.
struct HeldPartitions {
    /// A record that is kept.
    struct Record {
        let partition: Int32
        let offset: Int64
        let content: TrialRecord
    }

    /// What a record waits for.
    enum Awaited: Equatable {
        case schema(AwaitedSchema)
        /// This worker's clock is ahead of Kafka's.
        case clock
    }

    struct Partition {
        /// The oldest first.
        var records: [Record]
        var awaited: Awaited
        let since: MonotonicTime
    }

    private(set) var partitions: [AssignmentID: Partition] = [:]

    var isEmpty: Bool { partitions.isEmpty }

    func isHeld(_ id: AssignmentID) -> Bool { partitions[id] != nil }

    /// Holds a partition at its first record that cannot be read yet.
    mutating func hold(
        _ id: AssignmentID, at record: Record, for awaited: Awaited, now: MonotonicTime
    ) {
        precondition(partitions[id] == nil, "a partition is held once")
        partitions[id] = Partition(records: [record], awaited: awaited, since: now)
    }

    /// Keeps a record of a held partition behind the others.
    mutating func append(_ record: Record, to id: AssignmentID) {
        precondition(
            partitions[id].map { $0.records.last!.offset < record.offset } ?? false,
            "records of a held partition are kept in the order of their offsets")
        partitions[id]!.records.append(record)
    }

    /// The next record of a held partition waits for this.
    mutating func waits(_ id: AssignmentID, for awaited: Awaited) {
        partitions[id]?.awaited = awaited
    }

    /// The first `count` records of the partition have been read.
    /// - Returns: whether the partition is held no more.
    mutating func removeFirst(_ count: Int, of id: AssignmentID) -> Bool {
        partitions[id]?.records.removeFirst(count)
        guard partitions[id]?.records.isEmpty ?? false else { return false }
        partitions[id] = nil
        return true
    }

    /// The partition is not ours any more; its next owner reads what is kept here.
    mutating func forget(_ id: AssignmentID) { partitions[id] = nil }
}
