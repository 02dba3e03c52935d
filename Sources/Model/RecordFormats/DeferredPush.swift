// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// A push that waits longer than it may hold an offset: the value of a record of `deferred`. It says
/// all that its next owner needs; what the owner's own configuration says better may be absent.
package struct DeferredPush: Sendable, Equatable {
    package var notBefore: WallTime
    package var expiresAt: WallTime
    package var tokenClass: TokenClass
    /// When the token was last sent a push, for its gap.
    package var lastSentAt: WallTime?
    package var attempts: Int
    /// Nil for "look again".
    package var payload: EventPayload?
    /// When the event that brought the payload was read: of two payloads of one key the later wins.
    package var payloadAt: WallTime?
    /// That event, where it is not `source`.
    package var payloadSource: DeadLetter.Source?
    package var collapseID: String?
    /// `apns-priority`, 0 leaving the header out; nil for the push type's own.
    package var priority: UInt8?
    /// Nil for the push type's own.
    package var expiration: ExpirationRule?
    /// The oldest event it answers for: `apns-id` is made from it, and a dead letter names it.
    package var source: DeadLetter.Source?
    /// Of that event; empty where it is not known.
    package var subject: [UInt8] = []
    /// When it was first sent to APNs.
    package var firstAt: WallTime?

    package init(
        notBefore: WallTime, expiresAt: WallTime, tokenClass: TokenClass, attempts: Int = 0,
        payload: EventPayload? = nil
    ) {
        self.notBefore = notBefore
        self.expiresAt = expiresAt
        self.tokenClass = tokenClass
        self.attempts = attempts
        self.payload = payload
    }

    /// Says all that an earlier one of its key does too: the latest expiry, the highest priority (0,
    /// which leaves the header out, is read as 10), and the payload that was read last.
    package mutating func include(_ earlier: DeferredPush) {
        expiresAt = max(expiresAt, earlier.expiresAt)
        if let own = priority, let other = earlier.priority {
            priority = own == 0 || other == 0 ? 0 : max(own, other)
        }
        guard let readAt = earlier.payloadAt, payloadAt.map({ readAt > $0 }) ?? true else { return }
        payload = earlier.payload
        payloadAt = readAt
        payloadSource = earlier.payloadSource ?? earlier.source
        if payloadSource == source { payloadSource = nil }
        collapseID = earlier.collapseID
        expiration = earlier.expiration
    }

    /// The header of the record that ends a wait. Its value is the offset up to which records of
    /// the key have ended: one that was written meanwhile by another worker is still owed. On a
    /// record that the owner has rewritten, it is the offset of the original: whatever ends the one
    /// ends the other. Otherwise two tombstones under way could have a push rewritten for ever.
    package static let endedHeader = "ended-offset"

    /// The header of a tombstone that ends a payload because a newer one of its key was accepted.
    /// Its value says when the newer one was read, in milliseconds since 1970: a payload that was
    /// read later is still owed.
    package static let endedPayloadHeader = "ended-payload-at"
}
