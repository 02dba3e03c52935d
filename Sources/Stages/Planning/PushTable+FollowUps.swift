// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
package import Ledger
package import PushModel

/// Follow-ups: when a push needs one, and what becomes of it.
extension PushTable {
    /// Whether the request must wait longer than the waiting push, because its producer asked for a
    /// delay: that push must neither go late nor answer for the event too early. A payload that is
    /// older than the waiting one is not news and waits for nothing.
    func mustWaitLonger(_ request: PushRequest, thanPushIn row: Int) -> Bool {
        let notBefore = pushes[row].held.content.notBefore
        return request.content.notBefore > notBefore
            && (request.coalescingKey == 0
                || age(of: request.content) > age(of: pushes[row].content))
    }

    /// Whether the push in flight answers for the event. One without a payload does if it was
    /// handed over after the event was read. One with a payload does if its payload is not older
    /// than the event's.
    func isAnswered(_ request: PushRequest, byPushIn row: Int) -> Bool {
        request.coalescingKey == 0
            ? request.content.readSequence <= pushes[row].handedSequence
            : age(of: request.content) <= age(of: pushes[row].content)
    }

    /// One more event for the push in this row, which cannot answer for it.
    mutating func addFollowUp(
        _ row: Int, _ request: PushRequest, claim: OffsetClaim?, _ tracker: inout OffsetTracker
    ) -> Joined {
        if pushes[row].hasFollowUp {
            if !request.content.isBulk { followUp[row].content.isBulk = false }
            Self.merge(request, into: &followUp[row], &bodies)
            followUp[row].content.notBefore = max(
                followUp[row].content.notBefore, request.content.notBefore)
        } else {
            pushes[row].hasFollowUp = true
            followUp.extend(to: row + 1)
            followUp[row] = HeldContent(request)
            bodies.retain(request.content.body)
        }
        if let claim, let surplus = claimPool.insert(claim, into: &followUp[row].claims) {
            Self.giveBack(surplus, to: &followUp[row].claims, of: &claimPool, &tracker)
        }
        return .followUp
    }

    /// A set keeps the oldest claim on an assignment, since offsets are stored in order. A row of a table
    /// ends by itself, and each keeps its claim: a token may have a second row there, after a tombstone
    /// of another worker, or where the first was forgotten.
    // Not inlined, since every event that joins a push would otherwise pay for it.
    @inline(never)
    static func giveBack(
        _ surplus: OffsetClaim, to set: inout ClaimSet, of pool: inout ClaimPool,
        _ tracker: inout OffsetTracker
    ) {
        if tracker.isOfTable(surplus) {
            pool.append(surplus, to: &set)
        } else {
            tracker.release(surplus)
        }
    }

    /// The push has ended: its follow-up takes its place.
    mutating func startFollowUp(_ row: Int) {
        pushes[row].held = followUp[row]
        pushes[row].hasFollowUp = false
        pushes[row].isAnnounced = false
        pushes[row].attempts = 0
        pushes[row].firstTriedAt = MonotonicTime(nanoseconds: 0)
    }

    /// The waiting push ends, and gives its claims back. Its follow-up, if it has one, waits in the
    /// same slot.
    /// - Returns: whether there was a follow-up.
    package mutating func endedWaiting(
        _ slot: UInt32, now: MonotonicTime, _ tracker: inout OffsetTracker
    ) -> Bool {
        let row = Int(slot)
        leaveWaiting(slot)
        claimPool.drain(&pushes[row].held.claims) { tracker.release($0) }
        bodies.release(pushes[row].held.content.body)
        guard pushes[row].hasFollowUp else {
            recycle(slot)
            return false
        }
        startFollowUp(row)
        restOrEnqueue(slot, until: pushes[row].held.content.notBefore, now: now)
        return true
    }

    /// The follow-up of this push ends alone, and gives its claims back.
    package mutating func followUpEnded(_ slot: UInt32, _ tracker: inout OffsetTracker) {
        dropFollowUp(Int(slot)) { tracker.release($0) }
    }

    /// The follow-up ends too. Its claims go to `body`.
    mutating func dropFollowUp(_ row: Int, _ body: (OffsetClaim) -> Void) {
        pushes[row].hasFollowUp = false
        claimPool.drain(&followUp[row].claims, body)
        bodies.release(followUp[row].content.body)
    }

    /// The follow-up becomes part of the push, which is sent again or has the newer payload.
    mutating func absorbFollowUp(_ row: Int, _ tracker: inout OffsetTracker) {
        pushes[row].hasFollowUp = false
        var claims: [OffsetClaim] = []
        claimPool.drain(&followUp[row].claims) { claims.append($0) }
        for claim in claims { self.claim(claim, for: UInt32(row), &tracker) }
        let (followUp, heldSince) = (followUp[row].content, followUp[row].heldSince)
        pushes[row].held.content.prolong(until: followUp.expiresAt, priority: followUp.priority)
        pushes[row].held.heldSince = min(pushes[row].held.heldSince, heldSince)
        if pushes[row].held.content.isBulk, !followUp.isBulk { leaveBulk(UInt32(row)) }
        guard age(of: followUp) >= age(of: pushes[row].content) else {
            return bodies.release(followUp.body)
        }
        bodies.release(pushes[row].held.content.body)
        pushes[row].held.content.body = followUp.body
        pushes[row].held.content.type = followUp.type
        pushes[row].held.content.expiration = followUp.expiration
        pushes[row].held.content.readSequence = followUp.readSequence
        pushes[row].held.content.notBefore = max(
            pushes[row].held.content.notBefore, followUp.notBefore)
    }
}
