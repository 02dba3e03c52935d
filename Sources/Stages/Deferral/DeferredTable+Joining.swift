// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Planning
package import PushModel

/// Rows that answer for later events of their token without a record.
extension DeferredTable {
    /// How long after its time a row must live, so that its push can be sent.
    private static let timeToSend = Duration.seconds(60)

    /// Whether the row answers for this content, of a push without a payload that has the row's key.
    ///
    /// It waits until an instant ahead. Its record was written while this worker owned the partition:
    /// the owner before cannot say of it that it was sent. And the record says all that the content
    /// does, but for the expiry: a worker that takes the partition over lets the push expire by the
    /// record, up to a quarter of its time too early.
    package func answers(_ row: UInt32, for content: PushContent, now: MonotonicTime) -> Bool {
        let number = Int(row)
        guard rows[number].state == .waiting, rows[number].isFresh, !rows[number].content.isSent,
            !rows[number].isRevoked, !rows[number].needsRewrite, !rows[number].wasMissed
        else { return false }
        let time = waiting.time(of: row)
        let said = rows[number].content.push
        guard time > now, content.notBefore <= time, said.type == content.type,
            said.expiration == content.expiration,
            said.priority == 0 || content.priority != 0 && content.priority <= said.priority
        else { return false }
        let expiresAt = rows[number].expiresInKafka
        return expiresAt >= time + Self.timeToSend
            && (content.expiresAt - expiresAt) * 4 <= content.expiresAt - now
    }

    /// An event has joined the row that expires later. Its record says so when it is written next.
    package mutating func prolong(_ row: UInt32, until time: MonotonicTime) {
        precondition(rows[Int(row)].state == .waiting, "only a row that waits answers for others")
        rows[Int(row)].content.push.expiresAt = max(rows[Int(row)].content.push.expiresAt, time)
    }
}
