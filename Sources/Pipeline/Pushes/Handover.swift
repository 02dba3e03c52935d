// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Deferral
internal import Delivery
internal import FlatMemory
internal import Planning
internal import PushModel

/// The hand-over to delivery: pushes that are ready are handed over, complete in the slab, and each
/// comes back with one outcome, which decides what becomes of it.
struct Handover: ~Copyable {
    /// The body of a push without a payload, indexed by push type.
    private let constantBodies: [UnsafeBufferPointer<UInt8>]
    /// Jitters the back-off of single pushes.
    var random: SplitMix64
    /// The last outcomes, for people.
    var recent = RecentOutcomes()
    /// How many pushes were taken and held back since the turn began.
    private var heldBack = 0
    /// Whether this turn's limit of held-back pushes is reached.
    var isCutShort: Bool { heldBack >= HoldWatch.spillMax }
    private let byAddress = PassedByAddress()

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
        constantBodies = PushType.all.map { row in
            let body = Array((row.emptyBody ?? "").utf8)
            let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: body.count)
            _ = copy.initialize(from: body)
            return UnsafeBufferPointer(copy)
        }
    }

    mutating func beginTurn() { heldBack = 0 }

    deinit { for body in constantBodies { body.deallocate() } }

    /// Fills `batch` with pushes of one line that are to be handed to delivery now, at most as many
    /// as fit and the pool's breaker allows. Each is complete in the slab. Of what a breaker that is
    /// half-open or starts slowly and an operator's quota allow nothing is kept for the other line.
    mutating func take(
        _ line: PoolLine, into batch: UnsafeMutableBufferPointer<PushSlot>,
        _ state: inout PipelineState,
        _ deferral: inout DeferredPushes, now: Now
    ) -> Int {
        let pool = line.pool
        var most = min(batch.count, state.breakers.allowance(of: pool, now: now.monotonic))
        var taken = 0
        let mayHoldBack =
            state.breakers.hasTokenFaults || state.tokenGaps.isOn || state.budgets.isThinning
        // One push ahead: its token's row is fetched from memory while the one before is filled in.
        var next = most > 0 ? takeOne(from: line, &state, now: now) : nil
        while let slot = next {
            next = taken + 1 < most ? takeOne(from: line, &state, now: now) : nil
            guard mayBeSent(slot, &state, deferral, now: now),
                !mayHoldBack
                    || !isHeldBack(slot, &state, &deferral, now: now)
            else {
                if isCutShort { most = taken + (next == nil ? 0 : 1) }
                // The allowance that this push was taken on is free again, so another one may be
                // taken.
                if next == nil, taken < most {
                    next = takeOne(from: line, &state, now: now)
                }
                continue
            }
            fill(slot, &state, now: now)
            batch[taken] = slot
            taken += 1
        }
        assert(taken <= most, "no more pushes are taken than the breaker of their pool allows")
        state.breakers.handedOver(taken, of: pool, now: now.monotonic)
        state.counters.handedOver += taken
        return taken
    }

    private func takeOne(
        from line: PoolLine, _ state: inout PipelineState,
        now: Now
    ) -> UInt32? {
        let taken = state.pushes.take(
            from: line, sequence: state.sequence, now: now.monotonic
        ) { !state.breakers.allowsOneMore($0, now: now.monotonic) }
        guard let slot = taken else { return nil }
        state.breakers.taken(state.pushes.route(of: slot))
        state.audience.prefetch(state.pushes.token(of: slot))
        return slot
    }

    /// Whether the push may be sent. One that has expired, whose token is known dead by now, or
    /// whose payload a newer one has overtaken ends here, unsent.
    private mutating func mayBeSent(
        _ slot: UInt32, _ state: inout PipelineState,
        _ deferral: borrowing DeferredPushes, now: Now
    ) -> Bool {
        let cause: Canary.UnsentCause
        if state.pushes.expiresAt(of: slot) <= now.monotonic {
            cause = .expired
            state.count(.expired, slot)
            recent.expiredUnsent(slot, state, now: now)
        } else if state.audience.isSuppressed(state.pushes.token(of: slot)) {
            cause = .suppressed
            state.count(.suppressed, slot)
        } else if state.pushes.coalescingKey(of: slot) != 0, !state.payloadOrder.isEmpty,
            state.isSuperseded(slot)
        {
            cause = .superseded
            state.count(.superseded, slot)
        } else if state.breakers.hasDrops, state.breakers.isDropping(state.pushes.route(of: slot)) {
            cause = .dropped
            state.count(.dropped, slot)
            recent.droppedUnsent(slot, state, now: now)
        } else {
            return true
        }
        if state.canary.isFollowing { state.canaryEnded(slot, unsent: cause) }
        if state.ended.isOn, let word = cause.word { state.noteUnsent(word, slot) }
        state.breakers.notSent(state.pushes.route(of: slot))
        state.end(slot, now: now)
        return false
    }

    /// Whether the push must wait because its token has a fault of its own, was sent another one
    /// a short time ago, or was sent enough today; the next push goes instead.
    // Not inlined, since no push needs it as long as no token has a fault and no route a gap.
    @inline(never)
    private mutating func isHeldBack(
        _ slot: UInt32, _ state: inout PipelineState,
        _ deferral: inout DeferredPushes, now: Now
    ) -> Bool {
        if state.breakers.hasTokenFaults,
            isFaulty(slot, &state, &deferral, now: now)
        {
            heldBack += 1
            return true
        }
        let route = state.pushes.route(of: slot)
        guard
            state.budgets.isThinning
                && deferral.waitsForWindow(slot, &state, now: now)
                || state.tokenGaps.isOn
                    && deferral.keepsDistance(slot, &state, now: now)
        else { return false }
        state.breakers.notSent(route)
        heldBack += 1
        return true
    }

    /// Whether the push must wait because its token has a fault of its own. A push that was deferred
    /// goes back to its row, behind those of other tokens.
    private func isFaulty(
        _ slot: UInt32, _ state: inout PipelineState,
        _ deferral: inout DeferredPushes, now: Now
    ) -> Bool {
        let route = state.pushes.route(of: slot)
        let token = state.audience.tokenBytes(of: state.pushes.token(of: slot))
        guard let until = state.breakers.heldOrHandedOver(token, route, now: now.monotonic) else {
            return false
        }
        state.breakers.notSent(route)
        state.retry(slot, at: until, costsAttempt: false, now: now)
        deferral.deferIfTooLong(
            slot, until: until, givingBackRows: true, &state, now: now)
        return true
    }

    // MARK: The slab

    private func fill(_ slot: UInt32, _ state: inout PipelineState, now: Now) {
        let token = state.pushes.token(of: slot)
        state.pushes.setRegisteredAt(state.audience.registeredAt(of: token), of: slot)
        let wire = state.slab.push(slot)
        wire.pointee.route = state.pushes.route(of: slot)
        wire.pointee.type = state.pushes[slot].content.type
        wire.pointee.priority = state.pushes[slot].content.priority
        wire.pointee.expiresAt = state.pushes[slot].content.expiresAt
        wire.pointee.expiration = Self.expiration(
            state.pushes[slot].content.expiration, until: state.pushes[slot].content.expiresAt,
            now: now)
        Self.fillToken(state.audience.tokenBytes(of: token), slot: slot, state.slab)
        fillBody(
            state.pushes[slot].content.body, type: state.pushes[slot].content.type, of: wire, state)
        wire.pointee.apnsID = state.apnsID(
            state.pushes[slot].content.origin, token: UnsafeRawBufferPointer(state.slab.token(slot))
        )
    }

    private static func fillToken(
        _ bytes: UnsafeRawBufferPointer, slot: UInt32, _ slab: PushSlab
    ) {
        precondition(!bytes.isEmpty, "a push has a token")
        let wire = slab.push(slot)
        wire.pointee.tokenBytes = UInt16(bytes.count)
        if bytes.count <= PushSlab.inlineTokenBytes {
            wire.pointee.longToken = nil
            UnsafeMutableRawPointer(slab.inlineToken(slot))
                .copyMemory(from: bytes.baseAddress!, byteCount: bytes.count)
        } else {
            fillLongToken(bytes, slot: slot, slab)
        }
    }

    @inline(never)
    private static func fillLongToken(
        _ bytes: UnsafeRawBufferPointer, slot: UInt32, _ slab: PushSlab
    ) {
        // Copied, because the audience may forget the token while the push is in flight.
        let copy = UnsafeMutablePointer<UInt8>.allocate(capacity: bytes.count)
        UnsafeMutableRawPointer(copy)
            .copyMemory(from: bytes.baseAddress!, byteCount: bytes.count)
        slab.push(slot).pointee.longToken = UnsafePointer(copy)
        // For `PushSlab.tokenStart`.
        UnsafeMutableRawPointer(slab.inlineToken(slot))
            .copyMemory(from: bytes.baseAddress!, byteCount: PushSlab.inlineTokenBytes)
    }

    /// Frees the copy of a long token: it is no longer lent once the outcome is here.
    static func freeLongToken(_ slot: UInt32, _ slab: PushSlab) {
        slab.push(slot).pointee.longToken?.deallocate()
        slab.push(slot).pointee.longToken = nil
    }

    private func fillBody(
        _ id: BodyID, type: PushType, of wire: UnsafeMutablePointer<WirePush>,
        _ state: borrowing PipelineState
    ) {
        if id == .none {
            let body = constantBodies[Int(type.rawValue)]
            wire.pointee.body = body.baseAddress
            wire.pointee.bodyBytes = UInt32(body.count)
            wire.pointee.collapseID = nil
            wire.pointee.collapseIDBytes = 0
        } else {
            let body = state.pushes.bodies.body(id)
            let collapseID = state.pushes.bodies.collapseID(id)
            wire.pointee.body = body.baseAddress
            wire.pointee.bodyBytes = UInt32(body.count)
            // An empty buffer has an address too, and the header would be sent without a value.
            assert(
                !body.isEmpty && collapseID.count <= 64,
                "a push has a body, and a collapse ID of at most 64 bytes")
            wire.pointee.collapseID = collapseID.isEmpty ? nil : collapseID.baseAddress
            wire.pointee.collapseIDBytes = UInt8(collapseID.count)
        }
    }

    private static func expiration(
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
