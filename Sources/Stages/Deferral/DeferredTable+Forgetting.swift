// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Ledger
internal import Planning
package import PushModel

/// Rows leave the memory for want of room, and come back when their records are read again.
extension DeferredTable {
    /// How many rows of this route owe a push.
    package func owedCount(of route: RouteID) -> Int { owedCounts[Int(route.rawValue)] }

    /// Whether the row waits for its partition to be read to the end, or to be read again.
    package func isReplaying(_ row: UInt32) -> Bool { rows[Int(row)].state == .replaying }

    /// Whether the row can be made again of its records in Kafka: they say all that is owed, and
    /// nothing of it is under way.
    private func isForgettable(_ row: Int) -> Bool {
        guard !rows[row].content.isSent, !rows[row].needsRewrite else { return false }
        switch rows[row].state {
        case .waiting, .ready:
            return rows[row].unreadRewrites == 0 && !rows[row].isAnnounced
                && !overstatedRows.contains(UInt32(row))
                && rows[row].announcedUntil == Self.distantPast
        case .replaying: return true
        case .free, .announcing, .taken: return false
        }
    }

    /// What the table may have, and what stays of a route whose rows are removed.
    package struct Bounds {
        /// So many rows of the route that may be sent now stay.
        let kept: Int
        /// The most rows that owe a push.
        let owedMax: Int
        /// The most bytes of payloads.
        let bytesMax: Int

        package init(keeping kept: Int, owedMax: Int, bytesMax: Int) {
            (self.kept, self.owedMax, self.bytesMax) = (kept, owedMax, bytesMax)
        }
    }

    /// Removes rows of this route, without a tombstone, until the table is within these bounds or no
    /// further row can be made again of its records.
    ///
    /// - Parameter body: is called with the partition of each row and the offset of its first record.
    /// - Returns: whether any was removed.
    package mutating func forget(
        _ route: RouteID, until bounds: Bounds, _ tracker: inout OffsetTracker,
        _ body: (_ partition: Int32, _ offset: Int64) -> Void
    ) -> Bool {
        var kept = bounds.kept
        var hasForgotten = false
        var steps = rows.count
        while steps > 0, count - sentCount > bounds.owedMax || bodies.bytes > bounds.bytesMax {
            steps -= 1
            forgetPosition = forgetPosition + 1 < rows.count ? forgetPosition + 1 : 0
            let row = forgetPosition
            guard rows[row].route == route, isForgettable(row) else { continue }
            if kept > 0, rows[row].state == .ready {
                kept -= 1
                continue
            }
            body(rows[row].partition, min(rows[row].claim.offset, rows[row].offset))
            forget(UInt32(row), &tracker)
            hasForgotten = true
        }
        return hasForgotten
    }

    /// Removes a row that was made by a reading that is given up.
    package mutating func forgetReread(
        _ row: UInt32, of assignment: AssignmentID, _ tracker: inout OffsetTracker
    ) {
        guard isReread(row, of: assignment) else { return }
        forget(row, &tracker)
    }

    /// The row's records have been read again: it begins to wait.
    /// - Returns: whether its record must be written again.
    package mutating func activateReread(_ row: UInt32, of assignment: AssignmentID) -> Bool {
        guard isReread(row, of: assignment) else { return false }
        rest(row, until: rows[Int(row)].content.push.notBefore)
        return rows[Int(row)].needsRewrite
    }

    private func isReread(_ row: UInt32, of assignment: AssignmentID) -> Bool {
        rows[Int(row)].state == .replaying && rows[Int(row)].claim.epoch == assignment.epoch
    }
}
