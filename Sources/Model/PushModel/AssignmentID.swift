// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// One assignment of one partition to this process. Work that was begun under an earlier assignment
/// of the same partition has another epoch and cannot disturb this one.
@usableFromInline
package struct AssignmentID: Hashable, Sendable, BitwiseCopyable {
    /// The index of the partition: dense, and the same in each assignment of it. Arrays of what is
    /// known about assignments are indexed by it, so they grow with the partitions and not with the
    /// rebalances.
    @usableFromInline package let ordinal: UInt32
    /// Tells this assignment from every other one of the process, whatever its partition or client.
    /// Epochs only grow and are never used again; 0 is not one.
    @usableFromInline package let epoch: UInt32

    @inlinable
    package init(ordinal: UInt32, epoch: UInt32) {
        precondition(epoch != 0, "an assignment's epoch is not zero")
        self.ordinal = ordinal
        self.epoch = epoch
    }
}
