// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Delivery
internal import Intake
internal import Ledger
internal import Planning
internal import PushModel
internal import RecordFormats

/// What comes back of what was handed over. `PushFate` decides.
extension Handover {
    /// - Parameter isFanningOut: whether an event with a payload is being fanned out.
    /// - Returns: the pool that carried it.
    mutating func outcomeArrived(
        _ outcome: PushOutcome, isFanningOut: Bool, _ state: inout PipelineState,
        _ deferral: inout DeferredPushes, now: Now
    ) -> PoolID {
        let slot = outcome.slot
        let route = state.pushes.route(of: slot)
        if state.traces.isFollowing { state.trace(outcome, now: now) }
        if state.canary.isFollowing { state.canaryAnswered(outcome, now: now) }
        if case .answered = outcome.kind, outcome.status == 200 {
            recent.accepted(slot, route, state.slab, now: now)
            let push = state.pushes.accepted(slot)
            state.breakers.accepted(route, token: push.token, now: now.monotonic)
            if state.breakers.hasTokenFaults {
                state.breakers.recovered(UnsafeRawBufferPointer(state.slab.token(slot)), route)
            }
            accepted(push, isFanningOut: isFanningOut, &state, &deferral, now: now)
        } else if failed(outcome, &state, &deferral, now: now) == .accepted {
            accepted(
                state.pushes.accepted(slot), isFanningOut: isFanningOut, &state, &deferral, now: now
            )
        }
        // The token is freed last, since all of the above needs its bytes.
        if state.slab.push(slot).pointee.longToken != nil {
            Self.freeLongToken(slot, state.slab)
        }
        return state.traits(of: route).pool
    }

    private func accepted(
        _ push: PushTable.AcceptedPush, isFanningOut: Bool, _ state: inout PipelineState,
        _ deferral: inout DeferredPushes, now: Now
    ) {
        state.tally.accepted(push.route, push.type, writtenAt: push.writtenAt, now: now.wall)
        if state.budgets.isOn { state.countAgainstBudget(push, now: now) }
        if push.coalescingKey != 0 {
            deferral.payloadAccepted(push.slot, isFanningOut: isFanningOut, &state, now: now)
        } else if state.tokenGaps.isOn {
            deferral.pushWithGapAccepted(push, &state, now: now)
        }
        state.end(push.slot, now: now)
    }

    /// Tells the breakers, decides and carries it out, except for an acceptance.
    // Not inlined, since every acceptance would otherwise pay for the registers that it needs.
    @inline(never)
    private mutating func failed(
        _ outcome: PushOutcome, _ state: inout PipelineState, _ deferral: inout DeferredPushes,
        now: Now
    ) -> PushFate {
        let slot = outcome.slot
        let route = state.pushes.route(of: slot)
        recent.failed(outcome, state, now: now)
        state.breakers.landed(route)
        // Time behind an open breaker and probes do not count as attempts.
        let isProbe = !state.breakers.areClosed(route)
        var isBelieved = false
        if case .answered = outcome.kind {
            if state.tokenGaps.isOn { deferral.pushWithGapFailed(slot, state) }
            let action = AnswerTable.row(status: outcome.status, reason: outcome.reason).push
            Self.tellBreakers(outcome, action, isProbe: isProbe, &state, now: now)
            isBelieved = Self.isBelieved(outcome, action, &state, now: now)
        } else if case .unknown = outcome.kind, isProbe || !outcome.isOutlier {
            // Whether a probe gets no answer is all that matters, whichever connection it was on.
            Self.judge(slot, .silence, &state, now: now)
        }
        let fate = PushFate(
            of: outcome, isProbe: isProbe, isBelieved: isBelieved, state, now: now)
        if state.ended.isOn { state.noteEnd(fate, outcome) }
        perform(fate, outcome, &state, &deferral, now: now)
        return fate
    }

    // MARK: What an answer says of others

    private static func judge(
        _ slot: UInt32, _ answer: PoolHealth.Answer, _ state: inout PipelineState, now: Now
    ) {
        state.breakers.received(
            answer, state.pushes.route(of: slot), token: state.pushes.token(of: slot),
            bytes: UnsafeRawBufferPointer(state.slab.token(slot)), now: now.monotonic)
    }

    /// What the answer says of its connection, its credential and its topic.
    private static func tellBreakers(
        _ outcome: PushOutcome, _ action: AnswerTable.PushAction, isProbe: Bool,
        _ state: inout PipelineState, now: Now
    ) {
        let route = state.pushes.route(of: outcome.slot)
        if outcome.isOutlier, !isProbe {
            state.breakers.receivedFromOutlier(route)
        } else {
            judge(outcome.slot, outcome.status >= 500 ? .fault : .healthy, &state, now: now)
        }
        if outcome.status < 500, action != .openPoolBreaker {
            state.breakers.credentialTaken(route)
        }
        if outcome.status < 500, action != .openRouteBreaker { state.breakers.topicTaken(route) }
        switch action {
        case .openPoolBreaker:
            state.breakers.credentialRefused(
                route, outcome.reason,
                word: outcome.reason == .unknown ? state.slab.reasonText(outcome.slot) : nil,
                now: now.monotonic)
        case .openRouteBreaker:
            state.breakers.topicRefused(route, outcome.reason, now: now.monotonic)
        default: break
        }
    }

    /// Whether the guards believe what the answer says of the token. They count what they are asked.
    private static func isBelieved(
        _ outcome: PushOutcome, _ action: AnswerTable.PushAction, _ state: inout PipelineState,
        now: Now
    ) -> Bool {
        let slot = outcome.slot
        let route = state.pushes.route(of: slot)
        switch action {
        case .rejectToken: return state.breakers.believesRejection(route, now: now.monotonic)
        case .suppression:
            // A canary's token may be dead: its answer proves the way as well, and so does the next.
            if state.pushes.isOrphaned(slot) || state.isOfCanary(slot) { return false }
            let diedAt = outcome.apnsTimestamp
            if diedAt >= 0, diedAt < state.pushes[slot].registeredAt.milliseconds {
                state.counters.strikes += 1
                let token = Array(state.slab.token(slot))
                guard state.breakers.struck(route, token: token, now: now.monotonic) else {
                    return false
                }
            }
            return state.breakers.believesDeath(route, now: now.monotonic)
        default: return false
        }
    }

    // MARK: What becomes of the push

    private mutating func perform(
        _ fate: PushFate, _ outcome: PushOutcome, _ state: inout PipelineState,
        _ deferral: inout DeferredPushes, now: Now
    ) {
        let slot = outcome.slot
        switch fate {
        case .accepted: break
        case .requeued, .prolonged:
            if fate == .requeued { state.counters.requeued += 1 }
            state.retry(slot, at: now.monotonic, costsAttempt: false, now: now)
        case .retried(let cause, let costsAttempt):
            state.counters[keyPath: cause.counter] += 1
            let again = now.monotonic + delay(before: outcome, cause, state)
            state.retry(slot, at: again, costsAttempt: costsAttempt, now: now)
            deferral.deferIfTooLong(slot, until: again, &state, now: now)
        case .suppressed:
            state.count(.unregistered, slot, PushTally.Reason(outcome.reason))
            let claims = Self.suppress(outcome, &state, now: now)
            state.release(claims)
        case .rejectedWithToken:
            let letter = state.letter(
                for: slot, reason: outcome.reason.name, status: outcome.status, now: now)
            state.count(.rejected, slot, PushTally.Reason(outcome.reason))
            let claims = Self.suppress(outcome, &state, now: now)
            state.draft(letter, claims: claims, now: now)
        case .deadUnconfirmed:
            state.count(.deadUnconfirmed, slot, PushTally.Reason(outcome.reason))
            state.end(slot, now: now)
        case .rejected:
            state.count(.rejected, slot, PushTally.Reason(outcome.reason))
            let reason =
                outcome.reason == .unknown ? state.slab.reasonText(slot) : outcome.reason.name
            Self.giveUp(slot, reason: reason, status: outcome.status, &state, now: now)
        case .exhausted:
            state.count(.rejected, slot, .attemptsExhausted)
            let reason = DeadLetter.OwnReason.attemptsExhausted.rawValue
            Self.giveUp(slot, reason: reason, status: 0, &state, now: now)
        case .notOwed: state.endNotOwed(slot, now: now)
        case .expired:
            state.count(.expired, slot)
            state.end(slot, now: now)
        }
    }

    private mutating func delay(
        before outcome: PushOutcome, _ cause: RetryCause, _ state: borrowing PipelineState
    ) -> Duration {
        let attempts = Int(state.pushes[outcome.slot].attempts)
        let backoff = cause.backoff(state.settings)
        // The answer may have asked for a longer delay.
        let delay = max(
            backoff.delay(attempt: attempts, random: &random),
            .seconds(Int64(outcome.retryAfterSeconds)))
        assert(delay >= .zero, "a push is tried again no earlier than now")
        return delay
    }

    /// The push ends as a dead letter.
    private static func giveUp(
        _ slot: UInt32, reason: String, status: UInt16, _ state: inout PipelineState, now: Now
    ) {
        let letter = state.letter(for: slot, reason: reason, status: status, now: now)
        let claims = state.endTakingClaims(slot, withFollowUp: false, now: now)
        state.draft(letter, claims: claims, now: now)
    }

    /// Writes a suppression, applies it, and ends the push and, if the token is suppressed now, its
    /// follow-up. The offsets wait for Kafka's acknowledgement.
    /// - Returns: further claims on the same offsets, for a dead letter beside the suppression.
    private static func suppress(
        _ outcome: PushOutcome, _ state: inout PipelineState, now: Now
    ) -> [OffsetClaim] {
        let slot = outcome.slot
        let push = state.pushes[slot]
        let route = push.route
        let suppression = Suppression(
            status: outcome.status, reason: outcome.reason.name,
            apnsTimestamp: outcome.apnsTimestamp < 0
                ? nil : WallTime(milliseconds: outcome.apnsTimestamp),
            registeredAt: push.registeredAt)
        let token = Array(state.slab.token(slot))
        // A suppression that is not newer than the known one need not be written.
        let isNews = token.withUnsafeBytes {
            state.audience.apply(
                suppression: suppression, recordedAt: now.wall, route: route, token: $0)
        }
        // A token that has registered again since is not suppressed: the follow-up is still owed.
        let isSuppressed = state.audience.isSuppressed(push.token)
        if isSuppressed, push.hasFollowUp {
            state.endUnqueued(.suppressed, route, state.pushes.followUp(of: slot).type)
        }
        let claims = state.endTakingClaims(slot, withFollowUp: isSuppressed, now: now)
        guard isNews else { return claims }
        for claim in claims { state.tracker.retain(claim) }
        state.write(suppression, route: route, token: token, claims: claims)
        return claims
    }
}
