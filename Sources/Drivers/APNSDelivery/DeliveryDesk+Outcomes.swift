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
        pools[pool].sizing.accepted(after: now.monotonic - places[Int(slot)].since)
    }

    /// It was sent, and nobody knows what became of it.
    mutating func unknown(_ slot: PushSlot) {
        outcomes.append(
            PushOutcome(slot: slot, kind: .unknown, sentAt: places[Int(slot)].since))
    }

    /// An answer other than 200. Returns whether it says to leave the connection it came on.
    mutating func rejected(
        _ slot: PushSlot, pool: Int, status: UInt16, retryAfterSeconds: UInt16, _ body: AnswerBody
    ) -> Bool {
        if let text = body.unknownReason { slab.keepReason(text, of: slot) }
        if status >= 500 { pools[pool].sizing.faulted(1) }
        outcomes.append(
            PushOutcome(
                slot: slot, kind: .answered, status: status, reason: body.reason,
                apnsTimestamp: body.timestamp?.milliseconds ?? -1,
                retryAfterSeconds: retryAfterSeconds,
                sentAt: places[Int(slot)].since))
        switch AnswerTable.row(status: status, reason: body.reason).connection {
        case .keep: return false
        case .retireAndRenew: renewToken(of: pool)
        case .retire: break
        }
        pools[pool].log.write(
            .answered, .warning,
            "APNs answers \(status) \(body.unknownReason ?? body.reason.name): new connection",
            at: now.monotonic)
        return true
    }

    /// Puts a push that was provably not processed back at the head of its queue.
    /// - Parameter since: from when on it counts as waiting.
    mutating func sendAgain(_ slot: PushSlot, pool: Int, waitingSince since: MonotonicTime) {
        let place = places + Int(slot)
        place.pointee.resends &+= 1
        guard phase == .running, place.pointee.resends <= Self.resendsMax else {
            outcomes.append(PushOutcome(slot: slot, kind: .unprocessed))
            return
        }
        place.pointee.since = since
        pools[pool].waiting.prepend(slot, places)
    }

    private mutating func renewToken(of pool: Int) {
        guard let token = pools[pool].token else { return }
        // An error here comes again, and is logged, when the next push wants a token.
        let decision = try? pools[pool].settings.providerTokens.refused(token, now: now)
        guard decision == .tooEarly else { return }
        pools[pool].log.write(
            .providerToken, .error,
            "APNs calls a provider token expired that is younger than 20 minutes",
            remedy: "set this machine's clock (NTP)", at: now.monotonic)
    }
}
