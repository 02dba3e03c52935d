// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Rows of `deferred` that have ended here and whose tombstone this worker has yet to read. A rewrite
/// of the row comes before that, and so does each record of it that is read again. Taken for a new
/// row, it would cause the push to be sent once more, perhaps after a newer payload. There are few:
/// each entry leaves with the row's tombstone.
package struct UnreadRewrites {
    private struct Key: Hashable {
        /// The row's key, as `DeferredTable.hash` has it.
        let hash: UInt64
        /// The epoch of the assignment of its partition.
        let epoch: UInt32
    }

    /// The offset up to which each row has ended.
    private var endedUpTo: [Key: Int64] = [:]

    package init() {}

    package var isEmpty: Bool { endedUpTo.isEmpty }

    /// The row has ended, and its tombstone is written.
    package mutating func ended(_ hash: UInt64, of id: AssignmentID, upTo offset: Int64) {
        let key = Key(hash: hash, epoch: id.epoch)
        endedUpTo[key] = max(offset, endedUpTo[key] ?? offset)
    }

    /// Whether a tombstone of this key is on its way, behind every record that is read now.
    package func contains(_ hash: UInt64, of id: AssignmentID) -> Bool {
        endedUpTo[Key(hash: hash, epoch: id.epoch)] != nil
    }

    /// Whether what a rewrite says has ended already.
    /// - Parameter saidAt: the offset at which its content was first written.
    package func isEnded(_ hash: UInt64, of id: AssignmentID, saidAt: Int64) -> Bool {
        endedUpTo[Key(hash: hash, epoch: id.epoch)].map { saidAt <= $0 } ?? false
    }

    /// A tombstone was read that ends what was written up to this offset.
    package mutating func tombstoneRead(_ hash: UInt64, of id: AssignmentID, upTo offset: Int64) {
        let key = Key(hash: hash, epoch: id.epoch)
        if let ended = endedUpTo[key], ended <= offset { endedUpTo[key] = nil }
    }

    /// The partition is no longer ours.
    package mutating func close(_ id: AssignmentID) {
        endedUpTo = endedUpTo.filter { $0.key.epoch != id.epoch }
    }
}
