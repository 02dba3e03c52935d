// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Deferral
internal import Ledger
internal import Planning
internal import PushModel

/// A row that waits for the gap answers for later events of its token, without a record for each of
/// them: its record is in Kafka, and its push comes after them.
///
/// Somebody may have ended the row in a record that this worker has not read yet: an operator who
/// drops it, for one. So the event holds its offset until a mark has been read that was written after
/// the event was read (`ReadMarks`). If the row still waits then, the event is the row's, and what
/// ends the row later ends what its token was to be told. If it does not, the event gets a record of
/// its own, as it does where the mark takes long, and where partitions are given up.
extension DeferredPushes {
    /// How long an event waits before it asks again, at least.
    private static var asksAgainAfter: Duration { .milliseconds(100) }
    /// How long an event may hold its offset for a mark.
    private static func patience(_ holdMax: Duration) -> Duration {
        min(.seconds(2), HoldWatch.patience(holdMax) / 2)
    }

    /// Whether the push is left to a row, or rests until that is certain.
    mutating func joinsRow(
        _ slot: UInt32, _ state: inout PipelineState, now: Now
    ) -> Bool {
        guard state.drain == nil, let row = answeringRow(of: slot, state, now: now) else {
            return false
        }
        let content = state.pushes[slot].content
        let claim = table.claim(of: row)
        if marks.isRead(content.readSequence, of: claim.epoch) {
            table.prolong(row, until: content.expiresAt)
            state.counters.deferred += 1
            state.release(state.endTakingClaims(slot, withFollowUp: true, now: now))
            return true
        }
        let held = now.monotonic - state.pushes.heldSince(of: slot)
        guard held < Self.patience(state.settings.sizes.holdMax),
            state.pushes.restingCount * 2 < state.pushes.slots, hasRoom(state)
        else { return false }
        if marks.isDue(claim.epoch, now: now.monotonic), !table.hasUnreadRewrites(row) {
            marks.written(
                claim, saidAt: table.offset(of: row), sequence: state.sequence, now: now.monotonic)
            write(row, &state, now: now)
        }
        let until = now.monotonic + max(Self.asksAgainAfter, held)
        state.pushes.putBack(slot, until: until, now: now.monotonic, &state.tracker)
        return true
    }

    /// The row that answers for this push; nil where it needs a record of its own.
    private func answeringRow(
        of slot: UInt32, _ state: borrowing PipelineState, now: Now
    ) -> UInt32? {
        let push = state.pushes[slot]
        guard push.attempts == 0, !push.hasFollowUp, !push.isOfDeferredShare else { return nil }
        var isOfRow = false
        state.pushes.forEachClaim(of: slot) { claim in
            if state.tracker.isOfTable(claim) { isOfRow = true }
        }
        guard !isOfRow else { return nil }
        var found: UInt32?
        let token = state.audience.tokenBytes(of: push.token)
        table.forEachRow(route: push.route, token: token, coalescingKey: 0) { row in
            if table.answers(row, for: push.content, now: now.monotonic) { found = row }
        }
        return found
    }
}
