// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// How far this worker is known to have read its partitions of `deferred`: to a record that it has
/// written itself, the mark. Whatever others wrote before the mark has been read.
///
/// A mark is the record of some row, written again as it is. There is at most one of a partition on
/// its way, however many pushes wait for it.
struct ReadMarks {
    private struct Mark {
        let claim: OffsetClaim
        /// The offset that the row had then.
        let saidAt: Int64
        let sequence: UInt64
    }

    private struct Partition {
        var mark: Mark?
        var writtenAt = MonotonicTime(nanoseconds: .min)
        /// The planner's count when the last mark was written that has been read.
        var readUpTo: UInt64 = 0
    }

    /// By the epoch of the partition's assignment.
    private var partitions: [UInt32: Partition] = [:]

    /// Marks of one partition are at least so far apart.
    private static let interval = Duration.milliseconds(50)
    /// A mark that has not been read then may never be: its row may have ended.
    private static let patience = Duration.seconds(1)

    /// Whether everything has been read that stood in the partition when the planner's count was
    /// this.
    func isRead(_ sequence: UInt64, of epoch: UInt32) -> Bool {
        partitions[epoch].map { sequence <= $0.readUpTo } ?? false
    }

    func isDue(_ epoch: UInt32, now: MonotonicTime) -> Bool {
        guard let partition = partitions[epoch] else { return true }
        let wait = partition.mark == nil ? Self.interval : Self.patience
        return now - partition.writtenAt >= wait
    }

    /// The record of this row is written as a mark.
    mutating func written(
        _ claim: OffsetClaim, saidAt: Int64, sequence: UInt64, now: MonotonicTime
    ) {
        partitions[claim.epoch, default: Partition()].mark = Mark(
            claim: claim, saidAt: saidAt, sequence: sequence)
        partitions[claim.epoch]!.writtenAt = now
    }

    /// All that this worker has written of the row has been read, the last of it with this offset.
    mutating func read(_ claim: OffsetClaim, saidAt: Int64) {
        guard let mark = partitions[claim.epoch]?.mark, mark.claim == claim, mark.saidAt == saidAt
        else { return }
        partitions[claim.epoch]!.readUpTo = mark.sequence
        partitions[claim.epoch]!.mark = nil
    }

    /// The partition is no longer ours.
    mutating func close(_ epoch: UInt32) { partitions[epoch] = nil }
}
