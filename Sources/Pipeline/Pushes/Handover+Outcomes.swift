// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Delivery
internal import Intake
internal import Ledger
internal import Planning
internal import PushModel
internal import RecordFormats

/// Decides what becomes of a push that was handed over.
extension Handover {
    /// - Parameter areWalking: whether an event with a payload walks through its audience.
    /// - Returns: the pool that carried it.
    mutating func outcomeArrived(
        _ outcome: PushOutcome, areWalking: Bool, _ state: inout PipelineState,
        _ breakers: inout CircuitBreakers, _ deferral: inout DeferredPushes,
        _ outbox: inout Outbox, now: Now
    ) -> PoolID {
        let slot = outcome.slot
        let route = state.pushes.route(of: slot)
        if state.traces.isFollowing { state.trace(outcome, now: now) }
        if state.canary.isFollowing { state.canaryAnswered(outcome, now: now) }
        if case .answered = outcome.kind, outcome.status == 200 {
            recent.accepted(slot, route, state.slab, now: now)
            let push = state.pushes.accepted(slot)
            breakers.accepted(route, token: push.token, now: now.monotonic)
            if breakers.hasTokenFaults {
                breakers.recovered(UnsafeRawBufferPointer(state.slab.token(slot)), route)
            }
            accepted(
                push, slot, route: route, areWalking: areWalking, &state, &deferral, &outbox,
                now: now)
        } else {
            recent.failed(outcome, state, now: now)
            failed(
                outcome, route: route, areWalking: areWalking, &state, &breakers, &deferral,
                &outbox,
                now: now)
        }
        // The token is freed last, since all of the above needs its bytes.
        if state.slab.push(slot).pointee.longToken != nil {
            Self.freeLongToken(slot, state.slab)
        }
        return state.traits(of: route).pool
    }

    private func accepted(
        _ push: PushTable.AcceptedPush, _ slot: UInt32, route: RouteID, areWalking: Bool,
        _ state: inout PipelineState, _ deferral: inout DeferredPushes, _ outbox: inout Outbox,
        now: Now
    ) {
        state.tally.accepted(route, push.type, writtenAt: push.writtenAt, now: now.wall)
        if state.budgets.isOn { state.countAgainstBudget(slot, push, route: route, now: now) }
        if push.coalescingKey != 0 {
            deferral.payloadAccepted(slot, areWalking: areWalking, &state, &outbox, now: now)
        } else if state.pacing.isOn {
            deferral.pacedPushAccepted(
                slot, token: push.token, route: route, &state, &outbox, now: now)
        }
        state.end(slot, now: now)
    }

    // Not inlined, since every acceptance would otherwise pay for the registers that it needs.
    @inline(never)
    private mutating func failed(
        _ outcome: PushOutcome, route: RouteID, areWalking: Bool, _ state: inout PipelineState,
        _ breakers: inout CircuitBreakers, _ deferral: inout DeferredPushes,
        _ outbox: inout Outbox, now: Now
    ) {
        let slot = outcome.slot
        breakers.landed(route)
        // Time behind an open breaker and probes do not count as attempts.
        let isProbe = !breakers.areClosed(route)
        switch outcome.kind {
        case .answered:
            if state.pacing.isOn { deferral.pacedPushFailed(slot, state) }
            answered(
                outcome, route: route, isProbe: isProbe, areWalking: areWalking, &state, &breakers,
                &deferral, &outbox, now: now)
        case .unprocessed:
            let isTried = tryAgain(
                outcome, after: state.settings.sizes.resendBackoff, costsAttempt: false, &state,
                breakers, &deferral, &outbox, now: now)
            if isTried { state.counters.unprocessed += 1 }
        case .unknown:
            // Whether a probe gets no answer is all that matters, whichever connection it was on.
            if isProbe || !outcome.isOutlier {
                Self.judge(slot, .silence, state, &breakers, now: now)
            }
            let isTried = tryAgain(
                outcome, after: state.settings.sizes.resendBackoff, costsAttempt: !isProbe, &state,
                breakers, &deferral, &outbox, now: now)
            if isTried { state.counters.unanswered += 1 }
        case .expired where state.pushes.expiresAt(of: slot) > now.monotonic:
            // An event that expires later has joined it since the hand-over.
            _ = Self.requeue(slot, &state, now: now)
        case .expired:
            state.count(.expired, slot)
            state.end(slot, now: now)
        }
    }

    private static func judge(
        _ slot: UInt32, _ answer: PoolHealth.Answer, _ state: borrowing PipelineState,
        _ breakers: inout CircuitBreakers, now: Now
    ) {
        breakers.received(
            answer, state.pushes.route(of: slot), token: state.pushes.token(of: slot),
            bytes: UnsafeRawBufferPointer(state.slab.token(slot)), now: now.monotonic)
    }

    private mutating func answered(
        _ outcome: PushOutcome, route: RouteID, isProbe: Bool, areWalking: Bool,
        _ state: inout PipelineState, _ breakers: inout CircuitBreakers,
        _ deferral: inout DeferredPushes, _ outbox: inout Outbox, now: Now
    ) {
        let row = AnswerTable.row(status: outcome.status, reason: outcome.reason)
        let slot = outcome.slot
        if outcome.isOutlier, !isProbe {
            breakers.receivedFromOutlier(route)
        } else {
            Self.judge(
                slot, outcome.status >= 500 ? .fault : .healthy, state, &breakers, now: now)
        }
        if outcome.status < 500, row.push != .openPoolBreaker { breakers.credentialTaken(route) }
        if outcome.status < 500, row.push != .openRouteBreaker { breakers.topicTaken(route) }
        switch row.push {
        case .accept:
            accepted(
                state.pushes.accepted(slot), slot, route: route, areWalking: areWalking, &state,
                &deferral, &outbox, now: now)
        case .reject:
            Self.reject(outcome, &state, &outbox, now: now)
        case .rejectToken:
            Self.tokenRejected(outcome, route: route, &state, &breakers, &outbox, now: now)
        case .suppression:
            Self.tokenDied(outcome, route: route, &state, &breakers, &outbox, now: now)
        case .resend:
            let isTried = tryAgain(
                outcome, after: state.settings.sizes.resendBackoff, costsAttempt: true, &state,
                breakers, &deferral, &outbox, now: now)
            if isTried { state.counters.resent += 1 }
        case .coolDown:
            let isTried = tryAgain(
                outcome, after: state.settings.live.coolDownBackoff, costsAttempt: true, &state,
                breakers, &deferral, &outbox, now: now)
            if isTried { state.counters.cooledDown += 1 }
        case .backOff:
            let isTried = tryAgain(
                outcome, after: state.settings.live.retryBackoff, costsAttempt: !isProbe, &state,
                breakers, &deferral, &outbox, now: now)
            if isTried { state.counters.retried += 1 }
        case .openPoolBreaker:
            breakers.credentialRefused(
                route, outcome.reason,
                word: outcome.reason == .unknown ? state.slab.reasonText(slot) : nil,
                now: now.monotonic)
            if Self.requeue(slot, &state, now: now) { state.counters.requeued += 1 }
        case .openRouteBreaker:
            breakers.topicRefused(route, outcome.reason, now: now.monotonic)
            if Self.requeue(slot, &state, now: now) { state.counters.requeued += 1 }
        }
    }

    // MARK: Another try

    /// - Returns: whether the push is sent again; false if it has ended instead.
    private mutating func tryAgain(
        _ outcome: PushOutcome, after backoff: Backoff, costsAttempt: Bool,
        _ state: inout PipelineState, _ breakers: borrowing CircuitBreakers,
        _ deferral: inout DeferredPushes, _ outbox: inout Outbox, now: Now
    ) -> Bool {
        let slot = outcome.slot
        if Self.endIfNotOwed(slot, &state, now: now) { return false }
        let attempts = Int(state.pushes[slot].attempts)
        let isLast = costsAttempt && attempts + 1 >= state.settings.live.attemptsMax
        // The last one is not lost to an outage: as long as APNs accepts nothing, it is tried again.
        let isSpared =
            isLast && breakers.isFailingAll(state.pushes.route(of: slot), now: now.monotonic)
        if isLast, !isSpared {
            state.count(.rejected, slot, .attemptsExhausted)
            let reason = DeadLetter.OwnReason.attemptsExhausted.rawValue
            Self.giveUp(slot, reason: reason, status: 0, &state, &outbox, now: now)
            return false
        }
        // The answer may have asked for a longer delay.
        let delay = max(
            backoff.delay(attempt: attempts, random: &random),
            .seconds(Int64(outcome.retryAfterSeconds)))
        assert(delay >= .zero, "a push is tried again in the past")
        let again = now.monotonic + delay
        state.retry(slot, at: again, costsAttempt: costsAttempt && !isSpared, now: now)
        deferral.deferIfTooLong(slot, until: again, &state, &outbox, breakers, now: now)
        return true
    }

    /// Puts the push at the end of its route's queue: the fault is not the push's.
    /// - Returns: whether the push is sent again; false if it has ended instead.
    private static func requeue(_ slot: UInt32, _ state: inout PipelineState, now: Now) -> Bool {
        if endIfNotOwed(slot, &state, now: now) { return false }
        state.retry(slot, at: now.monotonic, costsAttempt: false, now: now)
        return true
    }

    /// Ends the push in place of another try if its token is gone, or shows its subject no more.
    private static func endIfNotOwed(_ slot: UInt32, _ state: inout PipelineState, now: Now) -> Bool
    {
        state.endIfOrphaned(slot, now: now) || state.endIfUnsubscribed(slot, now: now)
    }

    // MARK: No further try

    private static func reject(
        _ outcome: PushOutcome, _ state: inout PipelineState, _ outbox: inout Outbox, now: Now
    ) {
        let reason =
            outcome.reason == .unknown
            ? state.slab.reasonText(outcome.slot) : outcome.reason.name
        state.count(.rejected, outcome.slot, PushTally.Reason(outcome.reason))
        giveUp(
            outcome.slot, reason: reason, status: outcome.status, &state, &outbox, now: now)
    }

    /// The push ends as a dead letter.
    private static func giveUp(
        _ slot: UInt32, reason: String, status: UInt16, _ state: inout PipelineState,
        _ outbox: inout Outbox, now: Now
    ) {
        let letter = state.letter(for: slot, reason: reason, status: status, now: now)
        let holds = state.endTakingClaims(slot, withFollowUp: false, now: now)
        outbox.draft(letter, holds: holds, &state, now: now)
    }

    private static func tokenRejected(
        _ outcome: PushOutcome, route: RouteID, _ state: inout PipelineState,
        _ breakers: inout CircuitBreakers, _ outbox: inout Outbox, now: Now
    ) {
        let slot = outcome.slot
        guard breakers.believesRejection(route, now: now.monotonic),
            !state.pushes.isOrphaned(slot), outbox.hasRoomForSuppressions(state)
        else { return reject(outcome, &state, &outbox, now: now) }
        let letter = state.letter(
            for: slot, reason: outcome.reason.name, status: outcome.status, now: now)
        state.count(.rejected, slot, PushTally.Reason(outcome.reason))
        let holds = suppress(outcome, route: route, &state, &outbox, now: now)
        outbox.draft(letter, holds: holds, &state, now: now)
    }

    private static func tokenDied(
        _ outcome: PushOutcome, route: RouteID, _ state: inout PipelineState,
        _ breakers: inout CircuitBreakers, _ outbox: inout Outbox, now: Now
    ) {
        let slot = outcome.slot
        if state.endIfOrphaned(slot, now: now) { return }
        // A canary's token may be dead: its answer proves the way as well, and so does the next.
        if state.isOfCanary(slot) {
            state.count(.deadUnconfirmed, slot, PushTally.Reason(outcome.reason))
            return state.end(slot, now: now)
        }
        // Without room the token stays as it is: the next answer that calls it dead says so again.
        guard isDeathBelieved(outcome, route: route, &state, &breakers, now: now),
            outbox.hasRoomForSuppressions(state)
        else {
            state.count(.deadUnconfirmed, slot, PushTally.Reason(outcome.reason))
            return state.end(slot, now: now)
        }
        state.count(.unregistered, slot, PushTally.Reason(outcome.reason))
        let holds = suppress(outcome, route: route, &state, &outbox, now: now)
        state.release(holds)
    }

    private static func isDeathBelieved(
        _ outcome: PushOutcome, route: RouteID, _ state: inout PipelineState,
        _ breakers: inout CircuitBreakers, now: Now
    ) -> Bool {
        let diedAt = outcome.apnsTimestamp
        let registeredAt = state.pushes[outcome.slot].registeredAt.milliseconds
        if diedAt >= 0, diedAt < registeredAt {
            state.counters.strikes += 1
            let token = Array(state.slab.token(outcome.slot))
            guard breakers.struck(route, token: token, now: now.monotonic) else { return false }
        }
        return breakers.believesDeath(route, now: now.monotonic)
    }

    /// Writes a suppression, applies it, and ends the push and, if the token is suppressed now, its
    /// follow-up. The offsets wait for Kafka's acknowledgement.
    /// - Returns: further claims on the same offsets, for a dead letter beside the suppression.
    private static func suppress(
        _ outcome: PushOutcome, route: RouteID, _ state: inout PipelineState,
        _ outbox: inout Outbox,
        now: Now
    ) -> [OffsetClaim] {
        let slot = outcome.slot
        let push = state.pushes[slot]
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
        let holds = state.endTakingClaims(slot, withFollowUp: isSuppressed, now: now)
        guard isNews else { return holds }
        for hold in holds { state.tracker.retain(hold) }
        outbox.write(suppression, route: route, token: token, holds: holds, &state)
        return holds
    }
}
