// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Rows of `deferred` that have ended while a record that wrote them again was still to be read. That
/// record comes before the tombstone: taken for a new row it would have the push sent once more, and
/// maybe after a newer payload. Few: a row is written again only for what another worker has said of it,
/// and each of them leaves with its tombstone.
package struct UnreadRewrites {
    private struct Key: Hashable {
        /// The row's key, as `DeferredTable.hash` has it.
        let hash: UInt64
        /// Of the assignment of its partition.
        let epoch: UInt32
    }

    /// Up to which offset the row has ended.
    private var endedUpTo: [Key: Int64] = [:]

    package init() {}

    package var isEmpty: Bool { endedUpTo.isEmpty }

    /// The row has ended, and its tombstone is written.
    package mutating func ended(_ hash: UInt64, of id: AssignmentID, upTo offset: Int64) {
        let key = Key(hash: hash, epoch: id.epoch)
        endedUpTo[key] = max(offset, endedUpTo[key] ?? offset)
    }

    /// Whether a record that was written again says what has ended.
    /// - Parameter saidAt: where what it says was first said.
    package func isEnded(_ hash: UInt64, of id: AssignmentID, saidAt: Int64) -> Bool {
        endedUpTo[Key(hash: hash, epoch: id.epoch)].map { saidAt <= $0 } ?? false
    }

    /// A tombstone was read that ends what was said up to this offset.
    package mutating func tombstoneRead(_ hash: UInt64, of id: AssignmentID, upTo offset: Int64) {
        let key = Key(hash: hash, epoch: id.epoch)
        if let ended = endedUpTo[key], ended <= offset { endedUpTo[key] = nil }
    }

    /// The partition is no longer ours.
    package mutating func close(_ id: AssignmentID) {
        endedUpTo = endedUpTo.filter { $0.key.epoch != id.epoch }
    }
}
