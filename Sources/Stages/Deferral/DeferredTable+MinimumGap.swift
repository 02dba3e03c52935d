// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Ledger
internal import Planning
package import PushModel

/// The minimum gap: when the token of a row was last sent a push, so that the next one keeps its distance.
///
/// Before a push is handed over its record says so, with a time by which it has been. A worker that
/// takes the partition over counts the gap from that time, whatever has become of the push. When it
/// was accepted, the row stays, owing nothing, until the gap is over.
extension DeferredTable {
    /// When the row's token was last sent a push, or until when one may be; the distant past if
    /// none was.
    package func lastSent(of row: UInt32) -> MonotonicTime {
        max(rows[Int(row)].content.sentAt, rows[Int(row)].announcedUntil)
    }

    /// Whether a record of another worker's, first written at this offset, says of a row that owes a
    /// push that it has been sent, and nothing of the row is under way here.
    package func isAnswered(_ row: UInt32, saidAt: Int64) -> Bool {
        let row = rows[Int(row)]
        guard !row.content.isSent, saidAt >= row.offset, row.unreadRewrites == 0 else {
            return false
        }
        return row.state == .replaying || row.state == .waiting || row.state == .ready
    }

    /// Whether Kafka knows that the row's push is about to be sent.
    package func isAnnounced(_ row: UInt32) -> Bool { rows[Int(row)].isAnnounced }

    /// The rows of this route whose push is announced, or about to be, and not made yet.
    package func announcedCount(of route: RouteID) -> Int {
        announcedCounts[Int(route.rawValue)]
    }

    /// Until when the announced push may be handed over; the distant past if none is.
    package func announcedUntil(_ row: UInt32) -> MonotonicTime { rows[Int(row)].announcedUntil }

    /// Whether the row's latest record announces a push and Kafka has not acknowledged it.
    package func isAnnouncing(_ row: UInt32) -> Bool { rows[Int(row)].state == .announcing }

    /// When the announcement was written that is on its way.
    package func announcedAt(_ row: UInt32) -> MonotonicTime { rows[Int(row)].announcedAt }

    /// The rows whose latest record announces a push that was not made, in the order of the table.
    package var overstated: [UInt32] {
        overstatedRows.filter { rows[Int($0)].state != .taken }.sorted()
    }

    /// Whether a record of this assignment's announces a push of which nobody knows that it was sent.
    package func isOverstated(_ assignment: AssignmentID) -> Bool {
        overstatedRows.contains { rows[Int($0)].claim.epoch == assignment.epoch }
    }

    /// The gaps have changed: what waits for the end of one is looked at again. A row that waits for
    /// its token's registration goes on waiting, since it would end the next time.
    /// - Parameter gap: of this route; zero for none.
    package mutating func gapsChanged(_ gap: (RouteID) -> Duration) {
        for row in rows.indices
        where rows[row].state == .waiting && rows[row].coalescingKey == 0 && !rows[row].wasMissed {
            leave(UInt32(row))
            if rows[row].content.isSent {
                rows[row].content.push.notBefore = max(
                    rows[row].content.sentAt + gap(rows[row].route), MonotonicTime(nanoseconds: 0))
                rows[row].content.push.expiresAt = rows[row].content.push.notBefore
            }
            rest(UInt32(row), until: rows[row].content.push.notBefore)
        }
    }

    /// The record of a row that is ready is about to say that its push is sent.
    package mutating func announce(
        _ row: UInt32, until time: MonotonicTime, now: MonotonicTime
    ) {
        precondition(rows[Int(row)].state == .ready, "only a row that is ready may be sent")
        leave(row)
        rows[Int(row)].state = .announcing
        rows[Int(row)].announcedAt = now
        rows[Int(row)].announcedUntil = time
        announcingCount += 1
        announcedCounts[Int(rows[Int(row)].route.rawValue)] += 1
    }

    /// Kafka has the announcement, or will never have it.
    package mutating func announced(_ row: UInt32) {
        guard rows[Int(row)].state == .announcing else { return }
        announcingCount -= 1
        rows[Int(row)].isAnnounced = true
        enqueueFirst(row)
    }

    /// The announcement was not written, or its push was not sent after all: the row may be sent as
    /// soon as before.
    package mutating func withdraw(_ row: UInt32) {
        rows[Int(row)].announcedUntil = Self.distantPast
        switch rows[Int(row)].state {
        case .announcing:
            leave(row)
            enqueue(row)
        case .ready where rows[Int(row)].isAnnounced:
            leave(row)
            enqueue(row)
        case .waiting where !rows[Int(row)].content.isSent:
            leave(row)
            rest(row, until: rows[Int(row)].content.push.notBefore)
        case .free, .replaying, .waiting, .ready, .taken: break
        }
    }

    /// APNs has accepted a push of the row's key.
    /// - Parameters:
    ///   - gapEnd: when the next one may be sent.
    ///   - isAnswered: whether that push has the row's claim. If another one has it, that was asked
    ///     for later.
    /// - Returns: whether the row owes nothing now, which its record must say.
    package mutating func sent(
        _ row: UInt32, at time: MonotonicTime, gapEnd: MonotonicTime, isAnswered: Bool,
        _ tracker: inout OffsetTracker
    ) -> Bool {
        let number = Int(row)
        rows[number].content.sentAt = max(time, rows[number].content.sentAt)
        rows[number].announcedUntil = Self.distantPast
        guard !rows[number].isRevoked else { return false }
        switch rows[number].state {
        case .taken where isAnswered:
            // The push gives its claim back; the row needs one of its own.
            tracker.retain(rows[number].claim)
            owesNothing(row, until: gapEnd)
            return true
        case .waiting, .ready, .announcing:
            leave(row)
            if rows[number].content.isSent { rows[number].content.push.expiresAt = gapEnd }
            rest(row, until: max(gapEnd, rows[number].content.push.notBefore))
        case .free, .replaying, .taken: break
        }
        return false
    }

    /// The row's push is not to be sent any more, and the gap after the one before is not over.
    package mutating func owesNothing(_ row: UInt32, until gapEnd: MonotonicTime) {
        let number = Int(row)
        leave(row)
        setSent(row, true)
        rows[number].content.push.notBefore = gapEnd
        rows[number].content.push.expiresAt = gapEnd
        rest(row, until: gapEnd)
    }

    /// Another push is owed to the row's token: what the row says beside the time is over.
    mutating func owesAgain(_ row: UInt32) {
        setSent(row, false)
        rows[Int(row)].content.push.expiresAt = Self.distantPast
    }

    /// Applies a record that says that a push was sent.
    /// - Parameter isOwn: whether this worker has written it, so that the row knows the time.
    /// - Returns: whether more is owed than the record says.
    mutating func applySent(
        _ row: UInt32, _ content: DeferredContent, saidAt: Int64, isOwn: Bool, isActive: Bool
    ) -> Bool {
        let number = Int(row)
        if isOwn, rows[number].content.isSent { return false }
        let isAnswered = saidAt >= rows[number].offset && rows[number].state != .taken
        guard isAnswered || rows[number].content.isSent else {
            if !isOwn {
                rows[number].content.sentAt = max(content.sentAt, rows[number].content.sentAt)
            }
            // The record of a push that is under way comes behind this one.
            rows[number].needsRewrite =
                rows[number].state != .taken && rows[number].state != .announcing
            return rows[number].needsRewrite
        }
        rows[number].needsRewrite = false
        let sentAt = rows[number].content.isSent ? rows[number].content.sentAt : content.sentAt
        rows[number].content.sentAt = max(sentAt, content.sentAt)
        rows[number].announcedUntil = Self.distantPast
        if isActive {
            owesNothing(row, until: content.push.notBefore)
        } else {
            setSent(row, true)
            rows[number].content.push.notBefore = content.push.notBefore
            rows[number].content.push.expiresAt = content.push.expiresAt
            rows[number].state = .replaying
        }
        return false
    }
}
