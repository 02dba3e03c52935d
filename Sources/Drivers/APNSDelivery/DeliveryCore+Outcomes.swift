// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Logging
internal import PushModel

/// Gives pushes their outcomes, or queues them again.
extension DeliveryCore {
    /// A push that had to be queued again more often than this goes back to the planner.
    private static let resendsMax = 8

    mutating func accepted(_ slot: PushSlot) {
        outcomes.append(
            PushOutcome(
                slot: slot, kind: .answered, status: 200, sentAt: states[Int(slot)].since))
    }

    /// - Parameter slot: an accepted push; of those that were answered together, any one.
    mutating func noteAnswerTime(of slot: PushSlot, pool: Int) {
        assert(
            states[Int(slot)].since <= now.monotonic,
            "a push is answered no earlier than it was sent")
        let time = now.monotonic - states[Int(slot)].since
        pools[pool].sizing.accepted(after: time)
        pools[pool].outliers.accepted(after: time)
    }

    /// Ends a push that was sent and not answered: its fate is unknown.
    /// - Parameter isOutlier: whether that is its connection's fault alone.
    mutating func unknown(_ slot: PushSlot, isOutlier: Bool = false) {
        var outcome = PushOutcome(slot: slot, kind: .unknown, sentAt: states[Int(slot)].since)
        outcome.isOutlier = isOutlier
        outcomes.append(outcome)
    }

    /// What an answer other than 200 means for its connection.
    struct AnswerEffect {
        /// Whether nothing more may be sent on the connection.
        let isToLeave: Bool
        /// Whether the answer shows that APNs has accepted the provider token.
        let isAuthenticated: Bool
        /// Whether the connection's health counts it as a failure.
        let isFailure: Bool
    }

    /// Handles an answer other than 200. It becomes the push's outcome, unless APNs refused the
    /// provider token and a newer one exists: then the push is sent again with that.
    /// - Parameter index: the index of the connection that it came on.
    mutating func rejected<Connection: PooledConnection & ~Copyable>(
        _ slot: PushSlot, status: UInt16, retryAfterSeconds: UInt16, _ body: AnswerBody,
        on index: Int, of connections: ConnectionTable<Connection>
    ) -> AnswerEffect {
        let pool = connections[index].pool
        let shown = connections[index].shownTokens
        assert(status != 200, "a rejection has a status other than 200")
        if let text = body.unknownReason { slab.keepReason(text, of: slot) }
        if status >= 500 { pools[pool].sizing.faulted(1) }
        let row = AnswerTable.row(status: status, reason: body.reason)
        let failure = Self.failure(row)
        let isOutlier = failure.map { failed($0, slot, on: index, of: connections) } ?? false
        let effect = AnswerEffect(
            isToLeave: row.connection != .keep,
            isAuthenticated: status != 403 && row.push != .openPoolBreaker,
            isFailure: failure != nil)
        if effect.isToLeave {
            pools[pool].log.write(
                .answered, .warning, "an answer ends a connection",
                ["status": "\(status)", "reason": "\(body.unknownReason ?? body.reason.name)"],
                at: now.monotonic)
        }
        if row.connection == .retireAndRenew, hasNewerToken(pool, shown) {
            sendAgain(slot, pool: pool, waitingSince: states[Int(slot)].takenAt)
            return effect
        }
        if row.push == .openPoolBreaker, status == 403, let key = shown.key {
            pools[pool].settings.providerTokens.keyRefused(key)
        }
        var outcome = PushOutcome(
            slot: slot, kind: .answered, status: status, reason: body.reason,
            apnsTimestamp: body.timestamp?.milliseconds ?? -1,
            retryAfterSeconds: retryAfterSeconds,
            sentAt: states[Int(slot)].since)
        outcome.isOutlier = isOutlier
        outcomes.append(outcome)
        return effect
    }

    /// How an answer counts among those of its connection; nil where the push is at fault, or the
    /// credential, or where the connection is left anyhow.
    private static func failure(_ row: AnswerTable.Row) -> ConnectionHealth.Failure? {
        switch row.push {
        case .backOff: .fault
        case .coolDown: .refusal
        default: nil
        }
    }

    /// Puts a push that was provably not processed back at the head of its list.
    /// - Parameter since: the time from which the push counts as waiting.
    mutating func sendAgain(_ slot: PushSlot, pool: Int, waitingSince since: MonotonicTime) {
        let state = states + Int(slot)
        state.pointee.resends += 1
        guard phase == .running, state.pointee.resends <= Self.resendsMax else {
            outcomes.append(PushOutcome(slot: slot, kind: .unprocessed))
            return
        }
        state.pointee.since = since
        pools[pool].waiting.prepend(slot, states)
    }

    /// Whether a newer provider token exists than those that APNs has called expired on a
    /// connection. Mints one if the current one is old enough.
    private mutating func hasNewerToken(_ pool: Int, _ shown: ShownProviderTokens) -> Bool {
        guard let token = pools[pool].token else { return false }
        let isOnly = shown.areOnly(key: token.keyGeneration, generation: token.generation)
        guard isOnly else { return true }
        // An error is ignored here: it recurs, and is logged, when the next push needs a token.
        let decision = try? pools[pool].settings.providerTokens.refused(token, now: now)
        guard case .tooEarly(let age) = decision else { return decision != nil }
        pools[pool].log.write(
            .providerToken, .error, "APNs calls a new provider token expired",
            ["ageSeconds": "\(age.components.seconds)"],
            remedy: "check this machine's clock (NTP)", at: now.monotonic)
        return false
    }
}
