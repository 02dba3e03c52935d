// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
package import Delivery
internal import Ledger
internal import Planning
package import PushModel
internal import RecordFormats

extension PushPipeline {
    /// What became of a push that was handed over.
    /// - Returns: the pool that carried it.
    @discardableResult
    package mutating func outcome(_ outcome: PushOutcome, now: Now) -> PoolID {
        let lane = pushes.lane(of: outcome.slot)
        let pool = lanes[Int(lane.rawValue)].pool
        if case .answered = outcome.kind, outcome.status == 200 {
            accepted(outcome.slot, lane: lane, pool: pool, now: now)
        } else {
            land(outcome, lane: lane, now: now)
        }
        return pool
    }

    private mutating func accepted(_ slot: UInt32, lane: LaneID, pool: PoolID, now: Now) {
        lanes[Int(lane.rawValue)].accepted(now: now.monotonic)
        pools[Int(pool.rawValue)].accepted(token: pushes.token(of: slot))
        if hasTokenFaults { noteRecovery(of: slot, pool: Int(pool.rawValue)) }
        counters.accepted += 1
        if pushes.coalescingKey(of: slot) != 0 { payloadAccepted(slot, now: now) }
        end(slot, now: now)
        if slab.push(slot).pointee.longToken != nil { freeLongToken(slot) }
    }

    private mutating func land(_ outcome: PushOutcome, lane: LaneID, now: Now) {
        let slot = outcome.slot
        let pool = Int(lanes[Int(lane.rawValue)].pool.rawValue)
        pools[pool].inFlight -= 1
        lanes[Int(lane.rawValue)].inFlight -= 1
        // Whatever is judged below is judged by the token's bytes.
        defer { if slab.push(slot).pointee.longToken != nil { freeLongToken(slot) } }
        // Parked time and probes are not attempts.
        let isProbe =
            pools[pool].gate.isShut || lanes[Int(lane.rawValue)].gate.isShut
        switch outcome.kind {
        case .answered:
            answered(outcome, lane: lane, isProbe: isProbe, now: now)
        case .unprocessed:
            counters.unprocessed += 1
            tryAgain(
                slot, after: settings.resendBackoff, outcome, costsAttempt: false, now: now)
        case .unknown:
            judge(slot, pool: pool, .silence, now: now)
            counters.resent += 1
            tryAgain(
                slot, after: settings.resendBackoff, outcome, costsAttempt: !isProbe, now: now)
        case .expired where pushes.expiresAt(of: slot) > now.monotonic:
            // An event that expires later has joined it since the hand-over.
            requeue(slot, now: now)
        case .expired:
            counters.expired += 1
            end(slot, now: now)
        }
    }

    private mutating func answered(
        _ outcome: PushOutcome, lane: LaneID, isProbe: Bool, now: Now
    ) {
        let row = AnswerTable.row(status: outcome.status, reason: outcome.reason)
        let slot = outcome.slot
        let pool = Int(lanes[Int(lane.rawValue)].pool.rawValue)
        judge(slot, pool: pool, outcome.status >= 500 ? .fault : .healthy, now: now)
        if outcome.status < 500, row.push != .openCredential { pools[pool].gate.recovered() }
        if outcome.status < 500, row.push != .openLane {
            lanes[Int(lane.rawValue)].gate.recovered()
        }
        switch row.push {
        case .accept:
            counters.accepted += 1
            if pushes.coalescingKey(of: slot) != 0 { payloadAccepted(slot, now: now) }
            end(slot, now: now)
        case .reject:
            reject(slot, outcome, now: now)
        case .rejectToken:
            tokenRejected(slot, outcome, lane: lane, now: now)
        case .verdict:
            tokenDied(slot, outcome, lane: lane, now: now)
        case .resend:
            counters.resent += 1
            tryAgain(
                slot, after: settings.resendBackoff, outcome, costsAttempt: true, now: now)
        case .coolDown:
            counters.cooledDown += 1
            tryAgain(
                slot, after: settings.coolDownBackoff, outcome, costsAttempt: true, now: now)
        case .backOff:
            counters.retried += 1
            tryAgain(
                slot, after: settings.retryBackoff, outcome, costsAttempt: !isProbe, now: now)
        case .openCredential:
            shut(pool: pool, by: .credentialRefused(outcome.reason), now: now)
            requeue(slot, now: now)
        case .openLane:
            counters.lanesShut += 1
            lanes[Int(lane.rawValue)].shutBy = .topicRefused(outcome.reason)
            lanes[Int(lane.rawValue)].gate.failed(now: now.monotonic, random: &random)
            requeue(slot, now: now)
        }
    }

    // MARK: Ends

    /// The push has ended. What was trailing behind it is sent now.
    mutating func end(_ slot: UInt32, now: Now) {
        let token = TokenID(rawValue: pushes.token(of: slot))
        let key = pushes.coalescingKey(of: slot)
        let isOrphaned = pushes.isOrphaned(slot)
        let goesOn = pushes.ended(slot, now: now.monotonic) { ledger.release($0) }
        if !goesOn, !isOrphaned { forget(slot, of: token, key: key) }
    }

    private mutating func reject(_ slot: UInt32, _ outcome: PushOutcome, now: Now) {
        counters.rejected += 1
        let reason =
            outcome.reason == .unknown
            ? slab.reasonText(slot) : outcome.reason.name
        let letter = letter(for: slot, reason: reason, status: outcome.status, now: now)
        var holds: [Hold] = []
        endQuietly(slot, withTrailing: false, now: now) { holds.append($0) }
        draft(letter, holds: holds, now: now)
    }

    /// Ends the push, leaving its claims with `body`.
    mutating func endQuietly(
        _ slot: UInt32, withTrailing: Bool, now: Now, _ body: (Hold) -> Void
    ) {
        let token = TokenID(rawValue: pushes.token(of: slot))
        let key = pushes.coalescingKey(of: slot)
        let isOrphaned = pushes.isOrphaned(slot)
        var goesOn = false
        if withTrailing {
            pushes.endedForGood(slot, body)
        } else {
            goesOn = pushes.ended(slot, now: now.monotonic, body)
        }
        if !goesOn, !isOrphaned { forget(slot, of: token, key: key) }
    }

    private mutating func tokenRejected(
        _ slot: UInt32, _ outcome: PushOutcome, lane: LaneID, now: Now
    ) {
        guard lanes[Int(lane.rawValue)].tokenGuard.tokenRejected(now: now.monotonic),
            !pushes.isOrphaned(slot), hasRoomForVerdicts
        else {
            reject(slot, outcome, now: now)
            return
        }
        let letter = letter(
            for: slot, reason: outcome.reason.name, status: outcome.status, now: now)
        counters.rejected += 1
        let holds = giveVerdict(slot, outcome, lane: lane, now: now)
        draft(letter, holds: holds, now: now)
    }

    private mutating func tokenDied(
        _ slot: UInt32, _ outcome: PushOutcome, lane: LaneID, now: Now
    ) {
        let row = Int(lane.rawValue)
        guard !pushes.isOrphaned(slot) else {
            counters.unregistered += 1
            end(slot, now: now)
            return
        }
        let diedAt = outcome.apnsTimestamp
        if diedAt >= 0, diedAt < pushes[slot].registeredAt.milliseconds {
            counters.strikes += 1
            let token = Array(slab.token(slot))
            guard lanes[row].strikes.strike(token: token, now: now.monotonic) else {
                counters.deadUnconfirmed += 1
                end(slot, now: now)
                return
            }
        }
        guard lanes[row].tokenGuard.tokenDied(now: now.monotonic), hasRoomForVerdicts else {
            counters.deadUnconfirmed += 1
            end(slot, now: now)
            return
        }
        counters.unregistered += 1
        _ = giveVerdict(slot, outcome, lane: lane, now: now)
    }

    /// Where there is none, the token stays as it is: the next answer that calls it dead tells again.
    private var hasRoomForVerdicts: Bool {
        tickets.usage(of: .verdicts).count < settings.unacknowledgedMax
    }

    /// Writes a verdict, applies it, and ends the push and, if the token is suppressed now, what
    /// trails it. The offsets wait for Kafka's acknowledgement.
    /// - Returns: further claims on the same offsets, for a dead letter beside the verdict.
    private mutating func giveVerdict(
        _ slot: UInt32, _ outcome: PushOutcome, lane: LaneID, now: Now
    ) -> [Hold] {
        let push = pushes[slot]
        let verdict = Verdict(
            status: outcome.status, reason: outcome.reason.name,
            apnsTimestamp: outcome.apnsTimestamp < 0
                ? nil : WallTime(milliseconds: outcome.apnsTimestamp),
            registeredAt: push.registeredAt)
        let token = Array(slab.token(slot))
        // Never an older verdict than the one known: then nothing is left to write.
        let isNews = token.withUnsafeBytes {
            audience.apply(verdict: verdict, lane: lane, token: $0)
        }
        // A token that has registered again since is not suppressed: what trails is still owed.
        let isSuppressed = audience.isSuppressed(TokenID(rawValue: push.token))
        if isSuppressed, push.isDirty { counters.suppressed += 1 }
        var holds: [Hold] = []
        endQuietly(slot, withTrailing: isSuppressed, now: now) { holds.append($0) }
        for hold in holds { ledger.retain(hold) }
        if isNews {
            write(verdict, lane: lane, token: token, holds: holds)
        } else {
            for hold in holds { ledger.release(hold) }
        }
        if outcome.status != 410 { return holds }
        for hold in holds { ledger.release(hold) }
        return []
    }

    // MARK: Another try

    private mutating func tryAgain(
        _ slot: UInt32, after backoff: Backoff, _ outcome: PushOutcome, costsAttempt: Bool,
        now: Now
    ) {
        guard !pushes.isOrphaned(slot) else {
            counters.unregistered += 1
            end(slot, now: now)
            return
        }
        let attempts = Int(pushes[slot].attempts)
        if costsAttempt, attempts + 1 >= settings.attemptsMax {
            giveUp(slot, now: now)
            return
        }
        // Whoever answered may have asked for more patience.
        let delay = max(
            backoff.delay(attempt: attempts, random: &random),
            .seconds(Int64(outcome.retryAfterSeconds)))
        let again = now.monotonic + delay
        pushes.retry(slot, at: again, now: now.monotonic, costsAttempt: costsAttempt)
        giveBack()
        if holdsTooLong(slot, until: again), hasRoomForDeferrals {
            deferPush(slot, notBefore: again, now: now)
        }
    }

    /// Back to the end of its lane's queue: the fault is not the push's.
    private mutating func requeue(_ slot: UInt32, now: Now) {
        guard !pushes.isOrphaned(slot) else {
            counters.unregistered += 1
            end(slot, now: now)
            return
        }
        pushes.retry(slot, at: now.monotonic, now: now.monotonic, costsAttempt: false)
        giveBack()
    }

    private mutating func giveUp(_ slot: UInt32, now: Now) {
        counters.rejected += 1
        let letter = letter(
            for: slot, reason: DeadLetter.OwnReason.attemptsExhausted.rawValue, status: 0, now: now)
        var holds: [Hold] = []
        endQuietly(slot, withTrailing: false, now: now) { holds.append($0) }
        draft(letter, holds: holds, now: now)
    }

    // MARK: Pools

    private mutating func judge(
        _ slot: UInt32, pool: Int, _ answer: PoolHealth.Answer, now: Now
    ) {
        let isIll = pools[pool].health.received(answer, of: pushes.token(of: slot))
        if answer == .healthy {
            noteRecovery(of: slot, pool: pool)
        } else if answer == .fault || pools[pool].gate.isShut {
            pools[pool].tokenHealth.faulted(
                tokenHash(of: slot), accepted: pools[pool].accepted,
                backoff: settings.retryBackoff, now: now.monotonic, random: &random)
            hasTokenFaults = true
        }
        if pools[pool].gate.isShut, answer != .healthy {
            // A probe failed.
            fail(pool: pool, now: now)
        } else if isIll {
            shut(pool: pool, by: .ill, now: now)
        }
    }

    private mutating func noteRecovery(of slot: UInt32, pool: Int) {
        guard !pools[pool].tokenHealth.isEmpty else { return }
        pools[pool].tokenHealth.recovered(tokenHash(of: slot))
        // Nearly all of these are other tokens' pushes, and there may be many pools.
        if pools[pool].tokenHealth.isEmpty { lookForTokenFaults() }
    }

    mutating func lookForTokenFaults() {
        hasTokenFaults = pools.contains { !$0.tokenHealth.isEmpty }
    }

    private mutating func shut(pool: Int, by cause: ShutGate.Cause, now: Now) {
        if !pools[pool].gate.isShut { counters.poolsShut += 1 }
        pools[pool].shutBy = cause
        fail(pool: pool, now: now)
        pools[pool].health.reset()
    }

    private mutating func fail(pool: Int, now: Now) {
        // What was in flight when it was shut says nothing new.
        guard !pools[pool].gate.isClosed(now: now.monotonic) else { return }
        var least = Duration.zero
        if case .credentialRefused(let reason) = pools[pool].shutBy {
            least = AnswerTable.credentialWaitMin(reason)
        }
        pools[pool].gate.failed(now: now.monotonic, atLeast: least, random: &random)
        pools[pool].tokenHealth.parked(until: pools[pool].gate.nextChange)
    }

    /// The pool signs with another key. Where its key had been refused it is asked again at once.
    package mutating func keyChanged(of pool: PoolID, now: Now) {
        guard case .credentialRefused = pools[Int(pool.rawValue)].shutBy else { return }
        pools[Int(pool.rawValue)].gate.mayProbe(now: now.monotonic)
    }

    mutating func parkSilentPools(now: Now) {
        for pool in pools.indices where !pools[pool].gate.isShut {
            if pools[pool].health.isSilent(inFlight: pools[pool].inFlight, now: now.monotonic) {
                shut(pool: pool, by: .silent, now: now)
            }
        }
    }

    /// The bulkheads that let nothing through at the moment but their probes.
    package func shutGates(now: Now) -> [ShutGate] {
        let ofPools = pools.indices.filter { pools[$0].gate.isShut }.map { index in
            let pool = routing.pools[index]
            return ShutGate(
                name: "credential \(pool.credential) in \(pool.environment.name)",
                cause: pools[index].shutBy, probeIn: probeIn(pools[index].gate, now))
        }
        let ofLanes = lanes.indices.filter { lanes[$0].gate.isShut }.map { index in
            let lane = routing[LaneID(rawValue: UInt16(index))]
            return ShutGate(
                name: "APNs topic \(lane.apnsTopic) in \(lane.environment.name)",
                cause: lanes[index].shutBy, probeIn: probeIn(lanes[index].gate, now))
        }
        return ofPools + ofLanes
    }

    private func probeIn(_ gate: SendingGate, _ now: Now) -> Duration? {
        let next = gate.nextChange
        return next == .distantFuture ? nil : max(.zero, next - now.monotonic)
    }
}

/// A bulkhead that is shut.
package struct ShutGate: Sendable, Equatable {
    package enum Cause: Sendable, Equatable {
        case credentialRefused(APNSReason)
        case topicRefused(APNSReason)
        /// Half of the last answers were 5xx or did not come.
        case ill
        case silent
    }

    /// For people.
    package var name: String
    package var cause: Cause
    /// Nil while a probe is out.
    package var probeIn: Duration?
}
