// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Names a claim: its offset may not be committed yet, nor any after it, because what its record asks
/// for has not ended. `OffsetTracker` makes claims, and removes one with its last reference.
@usableFromInline
package struct ClaimID: Hashable, Sendable, BitwiseCopyable {
    @usableFromInline package let rawValue: UInt32
    // Inlinable, like clocks, identifiers and the slab: together that saved 700 of 6,733
    // instructions per push.
    @inlinable package init(rawValue: UInt32) { self.rawValue = rawValue }
}

/// A reference to a claim. `OffsetTracker` gives it out; a push, a fan-out or an unacknowledged record
/// has it and must give it back exactly once, by `OffsetTracker.release`.
@usableFromInline
package struct OffsetClaim: Hashable, Sendable, BitwiseCopyable {
    /// The `AssignmentID.epoch` of the claim's assignment; 0 where there is no claim.
    @usableFromInline package var epoch: UInt32
    @usableFromInline package var id: ClaimID
    /// The claimed offset. Of two claims on one assignment the one with the lower offset is kept.
    @usableFromInline package var offset: Int64

    @inlinable
    package init(epoch: UInt32, id: ClaimID, offset: Int64) {
        self.epoch = epoch
        self.id = id
        self.offset = offset
    }
}

/// The position of a record in Kafka.
@usableFromInline
package struct RecordPosition: Hashable, Sendable, BitwiseCopyable {
    /// Position in the list of subscribed topics.
    @usableFromInline package var topic: UInt16
    @usableFromInline package var partition: Int32
    @usableFromInline package var offset: Int64

    @inlinable
    package init(topic: UInt16, partition: Int32, offset: Int64) {
        self.topic = topic
        self.partition = partition
        self.offset = offset
    }
}
