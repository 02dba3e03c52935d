// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// A push that waits longer than it may hold an offset: the value of a record of `deferred`. It
/// contains all that its next owner needs, except for values that the owner can take from its own
/// configuration.
package struct DeferredPush: Sendable, Equatable {
    package var notBefore: WallTime
    package var expiresAt: WallTime
    package var tokenClass: TokenClass
    /// When the token was last sent a push, or until when one may have been: the minimum gap
    /// between pushes counts from then.
    package var lastSentAt: WallTime?
    /// Whether the push was sent. Nothing is owed: the record keeps `lastSentAt`.
    package var isSent = false
    package var attempts: Int
    /// Nil for "look again".
    package var payload: EventPayload?
    /// When the event that brought the payload was read: of two payloads of one key the later wins.
    package var payloadAt: WallTime?
    /// The event that brought the payload, where it is not `source`.
    package var payloadSource: DeadLetter.Source?
    package var collapseID: String?
    /// The value of `apns-priority`; 0 leaves the header out, nil takes the push type's.
    package var priority: UInt8?
    /// How `apns-expiration` is filled in; nil takes the push type's rule.
    package var expiration: ExpirationRule?
    /// The oldest event it answers for: `apns-id` is made from it, and a dead letter names it.
    package var source: DeadLetter.Source?
    /// When `source` was written: latency is measured from then.
    package var sourceAt: WallTime?
    /// The subject of `source`; empty where it is not known.
    package var subject: [UInt8] = []
    /// The subject of the event that brought the payload, where it is not `subject`; else empty.
    package var payloadSubject: [UInt8] = []
    /// What the event that brought the payload names instead of a subject.
    package var installation: String?
    /// When the push was first sent to APNs.
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

    /// Merges an earlier push of the same key into this one. The result has the later expiry, the
    /// higher of two priorities (0, which leaves the header out, is read as 10), and the payload
    /// that is newer.
    package mutating func include(_ earlier: DeferredPush) {
        expiresAt = max(expiresAt, earlier.expiresAt)
        if let own = priority, let other = earlier.priority {
            priority = own == 0 || other == 0 ? 0 : max(own, other)
        }
        guard let readAt = earlier.payloadAt, isOutdated(by: earlier) else { return }
        let owner = earlier.subjectOfPayload
        payloadSubject = owner == subject ? [] : owner
        installation = earlier.installation
        payload = earlier.payload
        payloadAt = readAt
        payloadSource = earlier.payloadSource ?? earlier.source
        if payloadSource == source { payloadSource = nil }
        collapseID = earlier.collapseID
        expiration = earlier.expiration
    }

    /// The payload is sent only while its token shows this subject. Empty where it is not known.
    /// Without meaning where there is an `installation`, whose token it must be.
    package var subjectOfPayload: [UInt8] { payloadSubject.isEmpty ? subject : payloadSubject }

    /// The push was sent: nothing is kept but the time.
    package mutating func owesNothing() {
        isSent = true
        (attempts, priority, expiration) = (0, nil, nil)
        (source, sourceAt, subject, firstAt) = (nil, nil, [], nil)
    }

    /// Whether the other one's payload is newer: of a Live Activity by its timestamp, else by when
    /// it was read.
    private func isOutdated(by other: DeferredPush) -> Bool {
        let (own, others) = (payload?.activity?.timestamp, other.payload?.activity?.timestamp)
        if let own, let others, own != others { return others > own }
        guard let payloadAt else { return true }
        return other.payloadAt.map { $0 > payloadAt } ?? false
    }

    /// The header of a tombstone that ends a wait: the offset up to which records of the key have
    /// ended. A record that another worker wrote later is still owed. On a record that its owner
    /// has written again, the header holds the offset of the original, so that a tombstone that
    /// ends one ends the other; otherwise two tombstones under way could cause a push to be
    /// rewritten for ever.
    package static let endedHeader = "ended-offset"

    /// The header of a tombstone that ends a payload because a newer one of its key was accepted.
    /// Its value says when the newer one was read, in milliseconds since 1970: a payload that was
    /// read later is still owed.
    package static let endedPayloadHeader = "ended-payload-at"

    /// The header of a tombstone by which an operator drops a push (`lamplighter deferred drop`), so
    /// that its owner counts it. The value says who: `operator`.
    package static let droppedHeader = "dropped-by"
}
