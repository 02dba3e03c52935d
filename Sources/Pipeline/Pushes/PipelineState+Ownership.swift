// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import FlatMemory
internal import Planning
internal import PushModel
internal import RecordFormats

/// A payload is for whoever shows a subject of its event, or for the tokens of its installation. A device token stays the same when another
/// person signs in on the phone, so a payload that waits ends when its token shows none of these
/// subjects any more. A push without a payload says nothing of anybody, and is sent.
///
/// Pushes in memory are looked at when a registration shows less than before, which costs those that
/// are handed over nothing; rows of `deferred` when their turn comes, since their subjects may have
/// gone before this worker owned them.
extension PipelineState {
    /// Whether the token may be sent this payload.
    func isOwed(_ body: BodyID, to token: TokenID) -> Bool {
        pushes.bodies.isOwed(body) { audience.mayShow(token, $0, $1) }
    }

    /// A registration shows less for this token than before. A push in flight that is no longer owed
    /// ends with its outcome, and is not tried again.
    mutating func narrowed(_ token: TokenID, now: Now) {
        for slot in payloadPushes.slots(of: token) {
            if pushes[slot].hasFollowUp {
                let followUp = pushes.followUp(of: slot)
                if !isOwed(followUp.body, to: token) {
                    endUnqueued(.unsubscribed, pushes.route(of: slot), followUp.type)
                    noteUnsubscribed(followUp, slot, now: now)
                    pushes.followUpEnded(slot, &tracker)
                }
            }
            let content = pushes[slot].content
            guard pushes[slot].state != .inFlight, !isOwed(content.body, to: token) else {
                continue
            }
            count(.unsubscribed, slot)
            if ended.isOn { noteUnsent(.unsubscribed, slot) }
            noteUnsubscribed(content, slot, now: now)
            endWaiting(slot, now: now)
        }
    }

    /// Whether the push in flight may be tried again: its token is registered, and shows a subject of
    /// its payload.
    func isOwed(_ slot: UInt32) -> Bool {
        if pushes.isOrphaned(slot) { return false }
        let body = pushes[slot].content.body
        return body == .none || isOwed(body, to: pushes.token(of: slot))
    }

    /// Ends a push in flight that `isOwed` no longer.
    mutating func endNotOwed(_ slot: UInt32, now: Now) {
        if pushes.isOrphaned(slot) {
            count(.unregistered, slot)
        } else {
            count(.unsubscribed, slot)
            noteUnsubscribed(pushes[slot].content, slot, now: now)
        }
        end(slot, now: now)
    }

    private mutating func noteUnsubscribed(_ content: PushContent, _ slot: UInt32, now: Now) {
        noteUnsubscribed(
            content, to: audience.tokenBytes(of: pushes.token(of: slot)),
            pushes.route(of: slot), now: now)
    }

    /// Remembers for people that a push with this content was not sent.
    mutating func noteUnsubscribed(
        _ content: PushContent, to token: UnsafeRawBufferPointer, _ route: RouteID, now: Now
    ) {
        let unsent = unsent(content, .unsubscribed, to: token, route, now: now)
        unsubscribed.append(unsent)
    }

    /// Those of the last of them that were to this token.
    func unsubscribed(
        of token: UnsafeRawBufferPointer, _ route: RouteID
    ) -> [RecentOutcomes.Failure] {
        let start = TokenStart(of: token)
        var found: [RecentOutcomes.Failure] = []
        unsubscribed.forEach {
            if start.matches($0.token), $0.stamp.route == route { found.append($0) }
        }
        return found
    }
}
