// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Ledger
internal import Planning
internal import PushModel

/// Visits single tokens of an event's audience.
extension FanOut {
    /// Which offsets a push made now has to hold.
    enum Claims {
        /// The offset of the event itself.
        case event(OffsetClaim)
        /// The offsets of the events that this fan-out answers for.
        case fanOut(Int)
        /// These claims, which were taken for the push already.
        case held([OffsetClaim])
    }

    /// Makes or joins the push to one token of an event's audience, if the event is for that token.
    /// False when that needs a slot and none is free.
    // Called for each token, by a loop that keeps its arguments in registers.
    @inline(__always)
    mutating func visit(
        _ entry: AudienceEntry, _ request: FanOutRequest, claims: Claims, now: Now,
        _ state: inout PipelineState
    ) -> Bool {
        let token = entry.token
        let route = state.audience.route(of: token)
        guard case .push(let type) = Self.fate(for: entry, of: request, route: route, state) else {
            drop(claims, &state)
            return true
        }
        let cause = state.noPush(
            to: token, route, writtenIn: written(request, claims, now: now.wall, state))
        if let cause {
            state.endUnqueued(cause == .suppressed ? .suppressed : .otherSender, route, type)
            drop(claims, &state)
            return true
        }
        let content = Self.content(of: request, type, state)
        var push = PushRequest(
            token: token, route: route, content: content, heldSince: now.monotonic)
        push.coalescingKey = request.coalescingKey
        return place(push, claims: claims, now: now, &state)
    }

    /// When the events were written that this fan-out answers for.
    // Not inlined: it is asked only while an app moves from another sender to this one.
    @inline(never)
    private func written(
        _ request: FanOutRequest, _ claims: Claims, now: WallTime, _ state: borrowing PipelineState
    ) -> ClosedRange<WallTime> {
        var written = request.writtenAt
        // Late entries are of the last while, and no more is known.
        if written.milliseconds == 0 {
            written = now + (Duration.zero - state.settings.sizes.registrationGrace)
        }
        // A fan-out may stand for several events, of which only the oldest one's time is known.
        let isOfOne = if case .event = claims { request.writtenAt.milliseconds > 0 } else { false }
        return written...(isOfOne ? written : max(written, now))
    }

    /// What a push of this event says.
    @inline(__always)
    static func content(
        of request: FanOutRequest, _ type: PushType, _ state: borrowing PipelineState
    ) -> PushContent {
        var content = PushContent(
            type: type,
            priority: state.settings.live.wire.priority(type, asked: request.priority),
            expiration: request.expiration ?? state.settings.live.wire.expiration(type),
            expiresAt: request.expiresAt, origin: request.origin,
            readSequence: request.readSequence, subject: request.subject,
            subjectTag: request.subjectTag)
        content.writtenAt = request.writtenAt
        content.body = request.body
        content.notBefore = request.notBefore
        content.isBulk = request.isBulk
        return content
    }

    /// Joins the push that the token has already, or makes one.
    private mutating func place(
        _ push: PushRequest, claims: Claims, now: Now, _ state: inout PipelineState
    ) -> Bool {
        if let slot = state.existingPush(for: push.token, key: push.coalescingKey) {
            state.counters.pushesCoalesced += 1
            claim(claims, for: slot, push, isNew: false, &state)
            return true
        }
        if push.coalescingKey != 0, state.isOutdated(push) {
            state.counters.pushesCoalesced += 1
            drop(claims, &state)
            return true
        }
        guard state.freeEventSlots > 0 else { return false }
        state.counters.pushesQueued += 1
        let slot = state.add(push, now: now)
        claim(claims, for: slot, push, isNew: true, &state)
        return true
    }

    /// What the event is for this entry of one of its lists: which push its token gets, or why none.
    /// Of the token itself nothing is asked: it may be suppressed.
    static func fate(
        for entry: AudienceEntry, of request: FanOutRequest, route: RouteID,
        _ state: borrowing PipelineState
    ) -> EntryFate {
        guard request.filter.shard?.contains(state.audience.tokenBytes(of: entry.token)) ?? true
        else { return .passedOver(.otherShard) }
        let route = state.traits(of: route)
        if let environment = request.filter.environment, environment != route.environment {
            return .passedOver(.otherEnvironment)
        }
        guard request.filter.classes.contains(route.tokenClass) else {
            return .passedOver(.otherClass)
        }
        if !request.filter.kinds.isEmpty, !request.filter.kinds.contains(entry.kind) {
            // Numbers are compared first: the name costs a cache miss, and few events need it.
            guard !request.filter.unknownKinds.isEmpty,
                request.filter.isUnknownKind(
                    state.audience.nameBytes(of: entry.kind, in: route.app))
            else { return .passedOver(.otherKind) }
        }
        if let type = request.payloadType {
            guard request.payloadClasses.contains(route.tokenClass) else {
                return .passedOver(.otherPushType)
            }
            guard type != .liveActivity || entry.hearsChanges == request.startsActivity else {
                return .passedOver(request.startsActivity ? .activityRuns : .startsActivities)
            }
            return .push(type)
        }
        guard let type = route.changeType else { return .passedOver(.noPushForChange) }
        return entry.hearsChanges ? .push(type) : .passedOver(.changesUnwanted)
    }

    /// - Parameter isNew: whether the push was made of this very request, and has nothing to merge.
    private func claim(
        _ claims: Claims, for slot: UInt32, _ push: PushRequest, isNew: Bool,
        _ state: inout PipelineState
    ) {
        switch claims {
        case .event(let claim):
            state.tracker.retain(claim)
            if isNew {
                state.pushes.claim(claim, for: slot, &state.tracker)
            } else {
                _ = state.pushes.join(slot, push, claim: claim, &state.tracker)
            }
        case .fanOut(let fanOut):
            underWay.forEachClaim(of: fanOut) { claim in
                state.tracker.retain(claim)
                if isNew {
                    state.pushes.claim(claim, for: slot, &state.tracker)
                } else {
                    _ = state.pushes.join(slot, push, claim: claim, &state.tracker)
                }
            }
        case .held(let claims):
            for claim in claims { _ = state.pushes.join(slot, push, claim: claim, &state.tracker) }
        }
    }

    /// The push is not made: claims that were taken for it alone go back.
    private func drop(_ claims: Claims, _ state: inout PipelineState) {
        if case .held(let claims) = claims { state.release(claims) }
    }
}
