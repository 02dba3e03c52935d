// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
package import Delivery
internal import Ledger
internal import Planning
package import PushModel

extension PushPipeline {
    /// Fills `batch` with pushes of one pool that are to be handed to delivery now, at most as many
    /// as fit and the pool's breaker allows. Each is complete in the slab.
    package mutating func takeReady(
        _ pool: PoolID, into batch: UnsafeMutableBufferPointer<PushSlot>, now: Now
    ) -> Int {
        let row = Int(pool.rawValue)
        guard pushes.hasQueued(in: pool) else { return 0 }
        let allowance = pools[row].gate.allowance(now: now.monotonic) - pools[row].inFlight
        let most = min(batch.count, max(0, allowance))
        var taken = 0
        // One ahead: what its token's row says comes from memory while the one before is filled in.
        var next = most > 0 ? takeOne(from: pool, now: now) : nil
        while let slot = next {
            next = taken + 1 < most ? takeOne(from: pool, now: now) : nil
            guard mayBeSent(slot, now: now),
                !hasTokenFaults || !isHeldBack(slot, pool: row, now: now)
            else {
                // What it was counted for is free again, and the next one's.
                next = next ?? takeOne(from: pool, now: now)
                continue
            }
            fill(slot, now: now)
            batch[taken] = slot
            taken += 1
        }
        pools[row].inFlight += taken
        counters.handedOver += taken
        if taken > 0 { pools[row].lastHandedOverAt = now.monotonic }
        return taken
    }

    private mutating func takeOne(from pool: PoolID, now: Now) -> UInt32? {
        let taken = pushes.take(from: pool, sequence: sequence, now: now.monotonic) { lane in
            let row = Int(lane.rawValue)
            return lanes[row].gate.allowance(now: now.monotonic) <= lanes[row].inFlight
        }
        guard let slot = taken else { return nil }
        lanes[Int(pushes.lane(of: slot).rawValue)].inFlight += 1
        audience.prefetch(TokenID(rawValue: pushes.token(of: slot)))
        return slot
    }

    /// A push that has expired, whose token is known dead by now, or that has a payload which a newer
    /// one has overtaken ends here, unsent.
    private mutating func mayBeSent(_ slot: UInt32, now: Now) -> Bool {
        if pushes.expiresAt(of: slot) <= now.monotonic {
            counters.expired += 1
        } else if audience.isSuppressed(TokenID(rawValue: pushes.token(of: slot))) {
            counters.suppressed += 1
        } else if pushes.coalescingKey(of: slot) != 0, !payloadOrder.isEmpty, isSuperseded(slot) {
            counters.deferredSuperseded += 1
        } else {
            return true
        }
        lanes[Int(pushes.lane(of: slot).rawValue)].inFlight -= 1
        end(slot, now: now)
        return false
    }

    /// A push to a token whose fault sticks to it waits, and the next one goes instead. One that was
    /// deferred goes back to its row, behind those of other tokens.
    private mutating func isHeldBack(_ slot: UInt32, pool: Int, now: Now) -> Bool {
        guard !pools[pool].tokenHealth.isEmpty else { return false }
        let token = audience.tokenBytes(of: TokenID(rawValue: pushes.token(of: slot)))
        let hash = tokenHash(token, lane: pushes.lane(of: slot))
        guard let until = pools[pool].tokenHealth.held(hash, now: now.monotonic) else {
            pools[pool].tokenHealth.handedOver(
                hash, backoff: settings.retryBackoff, now: now.monotonic)
            return false
        }
        lanes[Int(pushes.lane(of: slot).rawValue)].inFlight -= 1
        pushes.retry(slot, at: until, now: now.monotonic, costsAttempt: false)
        giveBack()
        let isDeferred = pushes.heldSince(of: slot) == .distantFuture
        if isDeferred || holdsTooLong(slot, until: until), hasRoomForDeferrals {
            deferPush(slot, notBefore: until, now: now)
        }
        return true
    }

    /// As `TokenHealth` knows a token: its number may be another's by the next time.
    func tokenHash(_ token: UnsafeRawBufferPointer, lane: LaneID) -> UInt64 {
        StableHash.hash64(token, seed: settings.seed &+ UInt64(lane.rawValue))
    }

    func tokenHash(of slot: UInt32) -> UInt64 {
        tokenHash(UnsafeRawBufferPointer(slab.token(slot)), lane: pushes.lane(of: slot))
    }

    private mutating func fill(_ slot: UInt32, now: Now) {
        let token = TokenID(rawValue: pushes.token(of: slot))
        pushes.setRegisteredAt(audience.registeredAt(of: token), of: slot)
        let wire = slab.push(slot)
        wire.pointee.lane = pushes.lane(of: slot)
        wire.pointee.type = pushes[slot].content.type
        wire.pointee.priority = pushes[slot].content.priority
        wire.pointee.expiresAt = pushes[slot].content.expiresAt
        wire.pointee.expiration = expiration(
            pushes[slot].content.expiration, until: pushes[slot].content.expiresAt, now: now)
        fillToken(audience.tokenBytes(of: token), slot: slot)
        fillBody(pushes[slot].content.body, type: pushes[slot].content.type, of: wire)
        var hash = StableHash(seed: originHash(pushes[slot].content.origin).low)
        hash.combine(UnsafeRawBufferPointer(slab.token(slot)))
        wire.pointee.apnsID = APNSID(hash: hash.finish())
    }

    private func fillToken(_ bytes: UnsafeRawBufferPointer, slot: UInt32) {
        let wire = slab.push(slot)
        wire.pointee.tokenBytes = UInt16(bytes.count)
        if bytes.count <= PushSlab.inlineTokenBytes {
            wire.pointee.longToken = nil
            UnsafeMutableRawPointer(slab.inlineToken(slot))
                .copyMemory(from: bytes.baseAddress!, byteCount: bytes.count)
        } else {
            // Copied, because the audience may forget the token while the push is in flight.
            let copy = UnsafeMutablePointer<UInt8>.allocate(capacity: bytes.count)
            UnsafeMutableRawPointer(copy)
                .copyMemory(from: bytes.baseAddress!, byteCount: bytes.count)
            wire.pointee.longToken = UnsafePointer(copy)
        }
    }

    /// The outcome is here: a long token's copy is not lent any more.
    func freeLongToken(_ slot: UInt32) {
        slab.push(slot).pointee.longToken?.deallocate()
        slab.push(slot).pointee.longToken = nil
    }

    private func fillBody(
        _ id: BodyID, type: PushType, of wire: UnsafeMutablePointer<WirePush>
    ) {
        if id == .none {
            let body = constantBodies[Int(type.rawValue)]
            wire.pointee.body = body.baseAddress
            wire.pointee.bodyBytes = UInt32(body.count)
            wire.pointee.collapseID = nil
            wire.pointee.collapseIDBytes = 0
        } else {
            let body = pushes.bodies.body(id)
            let collapseID = pushes.bodies.collapseID(id)
            wire.pointee.body = body.baseAddress
            wire.pointee.bodyBytes = UInt32(body.count)
            // An empty buffer has an address too, and the header would be sent without a value.
            wire.pointee.collapseID = collapseID.isEmpty ? nil : collapseID.baseAddress
            wire.pointee.collapseIDBytes = UInt8(collapseID.count)
        }
    }

    private func expiration(
        _ rule: ExpirationRule, until expiresAt: MonotonicTime, now: Now
    ) -> Int64 {
        switch rule {
        case .none: return -1
        case .immediate: return 0
        case .deadline:
            return ExpirationRule.deadlineSeconds(until: now.wall(at: expiresAt), now: now.wall)
        }
    }
}
