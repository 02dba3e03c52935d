// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// One assignment of one partition to this process. Whatever was begun under an earlier assignment of
/// the same partition has another epoch and cannot disturb this one.
@usableFromInline
package struct AssignmentID: Hashable, Sendable, BitwiseCopyable {
    /// Dense, and the same in each assignment of a partition: what is known of an assignment stands
    /// in an array by ordinal, which grows with the partitions and not with the rebalances.
    @usableFromInline package let ordinal: UInt32
    /// Grows over the process, whatever partition or client it belongs to, and is never used again:
    /// it alone tells two assignments apart. Zero is no assignment's.
    @usableFromInline package let epoch: UInt32

    @inlinable
    package init(ordinal: UInt32, epoch: UInt32) {
        precondition(epoch != 0, "zero is no assignment's epoch")
        self.ordinal = ordinal
        self.epoch = epoch
    }
}
