// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Logging
internal import PushModel

/// How a push ends, or waits once more.
extension DeliveryDesk {
    /// A push that could not be sent more often than this goes back to the planner.
    private static let resendsMax = 8

    mutating func accepted(_ slot: PushSlot) {
        outcomes.append(
            PushOutcome(
                slot: slot, kind: .answered, status: 200, sentAt: places[Int(slot)].since))
    }

    /// - Parameter slot: an accepted push; one of those that came together will do.
    mutating func noteAnswerTime(of slot: PushSlot, pool: Int) {
        assert(places[Int(slot)].since <= now.monotonic, "answered before it was sent")
        pools[pool].sizing.accepted(after: now.monotonic - places[Int(slot)].since)
    }

    /// It was sent, and nobody knows what became of it.
    mutating func unknown(_ slot: PushSlot) {
        outcomes.append(
            PushOutcome(slot: slot, kind: .unknown, sentAt: places[Int(slot)].since))
    }

    /// What an answer other than 200 means for the connection it came on.
    struct AnswerEffect {
        /// Send nothing more on it.
        let isToLeave: Bool
        /// APNs has taken the provider token on it.
        let isAuthenticated: Bool
    }

    /// An answer other than 200. It is the push's outcome, unless it was refused for a provider token
    /// of which there is a newer one: then it is sent again with that.
    /// - Parameter shown: the provider tokens that the connection has seen.
    mutating func rejected(
        _ slot: PushSlot, pool: Int, status: UInt16, retryAfterSeconds: UInt16, _ body: AnswerBody,
        shown: ShownProviderTokens
    ) -> AnswerEffect {
        assert(status != 200, "an accepted push is rejected")
        if let text = body.unknownReason { slab.keepReason(text, of: slot) }
        if status >= 500 { pools[pool].sizing.faulted(1) }
        let row = AnswerTable.row(status: status, reason: body.reason)
        let effect = AnswerEffect(
            isToLeave: row.connection != .keep,
            isAuthenticated: status != 403 && row.push != .openCredential)
        if effect.isToLeave {
            pools[pool].log.write(
                .answered, .warning,
                "APNs answers \(status) \(body.unknownReason ?? body.reason.name): new connection",
                at: now.monotonic)
        }
        if row.connection == .retireAndRenew, hasNewerToken(pool, shown) {
            sendAgain(slot, pool: pool, waitingSince: places[Int(slot)].takenAt)
            return effect
        }
        if row.push == .openCredential, status == 403, let key = shown.key {
            pools[pool].settings.providerTokens.keyRefused(key)
        }
        outcomes.append(
            PushOutcome(
                slot: slot, kind: .answered, status: status, reason: body.reason,
                apnsTimestamp: body.timestamp?.milliseconds ?? -1,
                retryAfterSeconds: retryAfterSeconds,
                sentAt: places[Int(slot)].since))
        return effect
    }

    /// Puts a push that was provably not processed back at the head of its queue.
    /// - Parameter since: from when on it counts as waiting.
    mutating func sendAgain(_ slot: PushSlot, pool: Int, waitingSince since: MonotonicTime) {
        let place = places + Int(slot)
        place.pointee.resends += 1
        guard phase == .running, place.pointee.resends <= Self.resendsMax else {
            outcomes.append(PushOutcome(slot: slot, kind: .unprocessed))
            return
        }
        place.pointee.since = since
        pools[pool].waiting.prepend(slot, places)
    }

    /// Whether there is a newer provider token than those that APNs has called expired on a
    /// connection; it is minted where the clocks allow it.
    private mutating func hasNewerToken(_ pool: Int, _ shown: ShownProviderTokens) -> Bool {
        guard let token = pools[pool].token else { return false }
        let isOnly = shown.areOnly(key: token.keyGeneration, generation: token.generation)
        guard isOnly else { return true }
        // An error here comes again, and is logged, when the next push wants a token.
        let decision = try? pools[pool].settings.providerTokens.refused(token, now: now)
        guard case .tooEarly(let age) = decision else { return decision != nil }
        pools[pool].log.write(
            .providerToken, .error,
            "APNs says the provider token is expired though it was made "
                + "\(age.components.seconds) s ago",
            remedy: "check this machine's clock (NTP)", at: now.monotonic)
        return false
    }
}
