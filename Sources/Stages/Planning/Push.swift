// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

public import PushModel

/// What a push says and until when: all that is kept with it while it waits, wherever that is. It
/// is made from an event, and newer events may change it.
@usableFromInline
package struct PushContent: BitwiseCopyable {
    @usableFromInline package var type: PushType
    /// `apns-priority`; 0 leaves the header out.
    package var priority: UInt8
    package var expiration: ExpirationRule
    /// Whether nobody waits for it but a large audience, or it comes from the deferred ones. Such
    /// pushes have queues of their own.
    package var isBulk = false
    @usableFromInline package var expiresAt: MonotonicTime
    /// The push is not sent before. The binding of the event's topic may ask for a delay.
    package var notBefore = MonotonicTime(nanoseconds: .min)
    package var body = BodyID.none
    /// The oldest event that the push answers for; nil where it is no longer known.
    package var origin: RecordPosition?
    /// When `origin` was written; 0 where that is not known.
    @usableFromInline package var writtenAt = WallTime(milliseconds: 0)
    /// The planner's count when it read the event that the body is from, the newest that the push
    /// answers for.
    package var readSequence: UInt64
    /// The event's subject, for dead letters. The number may be given to another subject while the
    /// push waits, so `subjectTag` keeps some bits of the subject's hash.
    package var subject: SubjectID
    package var subjectTag: UInt32

    package init(
        type: PushType, priority: UInt8, expiration: ExpirationRule, expiresAt: MonotonicTime,
        origin: RecordPosition?, readSequence: UInt64, subject: SubjectID, subjectTag: UInt32
    ) {
        self.type = type
        self.priority = priority
        self.expiration = expiration
        self.expiresAt = expiresAt
        self.origin = origin
        self.readSequence = readSequence
        self.subject = subject
        self.subjectTag = subjectTag
    }

    /// The latest expiry and the highest priority win. No priority is the highest: APNs reads it as
    /// 10.
    package mutating func prolong(until time: MonotonicTime, priority other: UInt8) {
        expiresAt = max(expiresAt, time)
        priority = priority == 0 || other == 0 ? 0 : max(priority, other)
    }
}

/// What an event asks to be pushed to one token.
package struct PushRequest {
    package var token: TokenID
    package var route: RouteID
    /// Zero for a push without a payload: all of those to one token are one push. Otherwise pushes
    /// of equal key are one, and the newest payload wins.
    package var coalescingKey: UInt64 = 0
    package var content: PushContent
    /// Since when it holds an offset; `.distantFuture` if it holds none.
    package var heldSince: MonotonicTime
    /// Set if the push comes from the deferred ones: its tries so far. Its slot counts towards
    /// their share.
    package var past: Past?

    package struct Past: BitwiseCopyable {
        package var attempts: UInt16
        package var firstTriedAt: MonotonicTime?

        package init(attempts: UInt16, firstTriedAt: MonotonicTime?) {
            self.attempts = attempts
            self.firstTriedAt = firstTriedAt
        }
    }

    package init(
        token: TokenID, route: RouteID, content: PushContent, heldSince: MonotonicTime
    ) {
        self.token = token
        self.route = route
        self.content = content
        self.heldSince = heldSince
    }
}

/// Content with the offsets that it holds.
@usableFromInline
package struct HeldContent: BitwiseCopyable {
    @usableFromInline package var content: PushContent
    /// Since when it holds an offset; `.distantFuture` while it holds none.
    package var heldSince: MonotonicTime
    package var claims = ClaimSet()

    init(_ request: PushRequest) {
        content = request.content
        heldSince = request.heldSince
    }
}

/// One push, from the event that asked for it to the outcome that ends it.
///
/// States:
/// - `queued`: stands in its route's queue. Can transition to: `inFlight`, `resting`, ended.
/// - `inFlight`: with delivery. Can transition to: `queued` (its follow-up, or to be sent again),
///   `resting` (to be sent again later), ended.
/// - `resting`: waits for its time. Can transition to: `queued`, ended.
///
/// A push has a *follow-up* when it cannot answer for an event that has come: the event was read
/// after the hand-over, or must wait longer than the push does. The table keeps its content, which
/// is queued in the same slot when the push has ended.
@usableFromInline
package struct Push: BitwiseCopyable {
    package enum State: UInt8, Sendable, BitwiseCopyable { case free, queued, inFlight, resting }

    package internal(set) var state = State.queued
    package internal(set) var hasFollowUp = false
    /// Whether its token is gone from the audience: the push ends with its next outcome and is not
    /// sent again.
    @usableFromInline package internal(set) var isOrphaned = false
    /// Whether its slot counts towards the deferred pushes' share.
    package let isOfDeferredShare: Bool
    /// Whether it comes from the deferred ones, whose owner has said in Kafka that it is sent.
    package internal(set) var isAnnounced: Bool
    /// Its queue; meaningful only while it is queued.
    var queue: UInt32 = 0
    package internal(set) var attempts: UInt16 = 0
    @usableFromInline package let route: RouteID
    @usableFromInline package let token: TokenID
    @usableFromInline package let coalescingKey: UInt64
    @usableFromInline package internal(set) var held: HeldContent
    /// The planner's count when the push was handed over: it answers for events read before.
    package internal(set) var handedSequence: UInt64 = 0
    /// When it last became ready to be sent.
    package internal(set) var queuedAt: MonotonicTime
    /// When it was first handed over; the first time of its dead letter.
    package internal(set) var firstTriedAt = MonotonicTime(nanoseconds: 0)
    /// When the registration that the push was sent under was registered.
    @usableFromInline package var registeredAt = WallTime(milliseconds: 0)
    var next = PushTable.none
    var previous = PushTable.none

    @inlinable package var content: PushContent { _read { yield held.content } }

    init(_ request: PushRequest, now: MonotonicTime) {
        route = request.route
        token = request.token
        coalescingKey = request.coalescingKey
        held = HeldContent(request)
        queuedAt = now
        isOfDeferredShare = request.past != nil
        isAnnounced = request.past != nil
        if let past = request.past {
            attempts = past.attempts
            firstTriedAt = past.firstTriedAt ?? firstTriedAt
        }
    }
}
