// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Intake
internal import Planning
internal import PushModel

/// Tells the `Canary` of what happens. None of it is inlined: the path of other pushes has nothing of it
/// but a look at a flag.
extension PipelineState {
    /// What came of the event at this position.
    @inline(never)
    mutating func canaryRead(_ outcome: ListOutcome, at position: RecordPosition) {
        canary.readToEnd(at: position, asked: pushesAsked) { isAsked in
            switch outcome {
            // Several tokens: which of them was sent a push is not known.
            case .fanningOut: .sent(last: nil)
            case .known(.matched): isAsked ? .sent(last: nil) : .withoutPush
            case .known(let outcome): .ended(outcome)
            }
        }
    }

    @inline(never)
    mutating func canaryAnswered(_ outcome: PushOutcome, now: Now) {
        guard let turn = canary.turn(at: pushes[outcome.slot].content.origin) else { return }
        switch outcome.kind {
        case .answered:
            let reason =
                outcome.reason == .unknown ? slab.reasonText(outcome.slot) : outcome.reason.name
            canary.ended(
                turn, status: outcome.status, text: "\(outcome.status) \(reason)", now: now)
        case .unprocessed: canary.ended(turn, status: nil, text: "not processed", now: now)
        case .unknown: canary.ended(turn, status: nil, text: "no answer", now: now)
        case .expired: canary.ended(turn, status: nil, text: "expired", now: now)
        }
    }

    @inline(never)
    mutating func canaryEnded(_ slot: UInt32, unsent cause: Canary.UnsentCause) {
        guard let turn = canary.turn(at: pushes[slot].content.origin) else { return }
        canary.ended(turn, unsent: cause)
    }

    /// Whether the push is of a canary, of this worker or another.
    func isOfCanary(_ slot: UInt32) -> Bool {
        guard canary.isOn else { return false }
        let content = pushes[slot].content
        let app = routing[pushes.route(of: slot)].app
        return canary.isAbout(subject(content.subject, tag: content.subjectTag, app: app), of: app)
    }
}
