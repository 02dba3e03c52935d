// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Delivery
internal import Planning
internal import PushModel

/// Thinning (`planning.budget.thin`): a push without a payload to a token that was sent its budget
/// today waits in `deferred` for the end of the token's window, and all that come until then are one.
extension DeferredPushes {
    /// How long a push may take from the end of its window to APNs.
    private static var timeToSend: Duration { .seconds(60) }

    /// Whether the push must not be handed over now, since its token's budget is spent.
    mutating func waitsForWindow(
        _ slot: UInt32, _ state: inout PipelineState, now: Now
    ) -> Bool {
        let push = state.pushes[slot]
        // A further try is not a further push, and what comes from a row has waited for its window.
        guard push.coalescingKey == 0, push.attempts == 0, !push.isAnnounced,
            state.tokenGaps.longGap(of: push.route, coalescingKey: 0) == nil
        else { return false }
        let token = state.audience.tokenBytes(of: push.token)
        let type = push.content.type
        guard state.budgets.isSpent(push.token, token, type, now: now.wall) else { return false }
        let until = now.monotonic(at: state.budgets.windowEnd(token, type, now: now.wall))
        // Nothing is lost for a budget: a push that would expire, with some time to be sent in, goes
        // now, and so does one for which there is no room.
        guard push.content.expiresAt > until + Self.timeToSend, hasRoomForRecords(state),
            isWorthDeferring(slot, state, now: now)
        else { return false }
        state.counters.pushesThinned += 1
        state.pushes.putBack(slot, until: until, now: now.monotonic, &state.tracker)
        return deferUntilSendable(slot, &state, now: now)
    }
}
