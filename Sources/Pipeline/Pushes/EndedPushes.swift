// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Deferral
package import Delivery
internal import Planning
package import PushModel
package import RecordFormats

/// A push that has ended, for the topic of outcomes.
package struct EndedPush: Sendable, Equatable {
    package var push: PushDescription
    package var outcome: OutcomeRecord.Word
    /// Of the answer that ended it; nil where none did.
    package var status: UInt16?
    /// APNs's or the worker's own; empty where there is none.
    package var reason = ""
    /// As `OutcomeField.attempts`.
    package var attempts = 0
    /// When the oldest event was written that it answers for; nil where that is not known.
    package var writtenAt: WallTime?
}

extension EndedPush {
    fileprivate init(
        _ outcome: OutcomeRecord.Word, _ push: PushDescription, _ content: PushContent
    ) {
        self.init(push: push, outcome: outcome)
        if content.writtenAt.milliseconds > 0 { writtenAt = content.writtenAt }
    }
}

extension OutcomeRecord.Word {
    /// What counts it.
    var outcome: PushTally.Outcome {
        switch self {
        case .accepted: .accepted
        case .rejected: .rejected
        case .expired: .expired
        case .suppressed: .suppressed
        case .unregistered: .unregistered
        case .deadUnconfirmed: .deadUnconfirmed
        case .dropped: .dropped
        case .unsubscribed: .unsubscribed
        }
    }
}

extension Canary.UnsentCause {
    /// Nil where it is no failure: the phone is sent something newer.
    var word: OutcomeRecord.Word? {
        switch self {
        case .expired: .expired
        case .suppressed: .suppressed
        case .superseded: nil
        case .dropped: .dropped
        }
    }
}

/// The pushes that have ended since the owner last took them: those that failed, and a sample of
/// those that were accepted. Nothing waits for them: what finds no room is counted and left out.
///
/// Where no outcomes are wanted, a failure costs a look at `isOn`, and acceptances one for a batch.
struct EndedPushes {
    let isOn: Bool
    private var list: [EndedPush] = []
    private var dropped = 0

    /// Some 2 KiB each at most, with the longest texts. The owner takes them once a turn.
    static let countMax = 4096

    init(isOn: Bool) { self.isOn = isOn }

    var isEmpty: Bool { list.isEmpty && dropped == 0 }

    /// Whether there is room for one more, which costs more to describe than to count.
    mutating func admitsOneMore() -> Bool {
        if list.count < Self.countMax { return true }
        dropped += 1
        return false
    }

    mutating func append(_ push: EndedPush) {
        assert(list.count < Self.countMax, "a push that has ended is kept only where there is room")
        list.append(push)
    }

    mutating func take() -> (pushes: [EndedPush], dropped: Int) {
        defer { (list, dropped) = ([], 0) }
        return (list, dropped)
    }
}

/// Which accepted pushes are told of: those whose `apns-id` begins with a number below a bound. Every
/// worker chooses alike, and so can whoever reads the records.
package struct OutcomeSample: Sendable, Equatable {
    /// Of the first 48 bits of an `apns-id`, its first 12 digits. The version comes behind them.
    private let below: UInt64
    private static let bits: UInt64 = 48

    /// - Parameter share: from 0, for none, to 1, for all.
    package init(share: Double) {
        precondition((0...1).contains(share), "a share is from 0 to 1")
        below = UInt64(share * Double(1 << Self.bits))
    }

    package func includes(_ apnsID: APNSID) -> Bool { apnsID.high >> (64 - Self.bits) < below }
}

extension PushPipeline {
    /// Whether pushes that end are to be noted.
    package var notesEnds: Bool { state.ended.isOn }
    package var hasEnded: Bool { !state.ended.isEmpty }

    /// Notes which of the pushes that have come back APNs has accepted. It must be called before the
    /// pipeline is told of their outcomes, as it then forgets them.
    package mutating func noteAcceptances(_ outcomes: UnsafeBufferPointer<PushOutcome>) {
        for outcome in outcomes where outcome.kind == .answered && outcome.status == 200 {
            state.noteAcceptance(outcome)
        }
    }

    /// Returns the pushes that have ended since the last call, and how many found no room.
    package mutating func takeEnded() -> (pushes: [EndedPush], dropped: Int) { state.ended.take() }
}

/// None of it is inlined: no push has anything of it where no outcomes are wanted.
extension PipelineState {
    func isSampled(_ slot: PushSlot) -> Bool {
        settings.live.outcomeSample.includes(slab.push(slot).pointee.apnsID)
    }

    mutating func noteAcceptance(_ outcome: PushOutcome) {
        if isSampled(outcome.slot) { note(.accepted, by: outcome) }
    }

    /// A push that was handed over ends in this way, which is not counted yet.
    @inline(never)
    mutating func noteEnd(_ fate: PushFate, _ outcome: PushOutcome) {
        switch fate {
        case .requeued, .prolonged, .retried: break
        // APNs documents no 2xx but 200.
        case .accepted: noteAcceptance(outcome)
        case .suppressed: note(.unregistered, by: outcome)
        case .rejected, .rejectedWithToken: note(.rejected, by: outcome)
        case .exhausted:
            note(
                .rejected, by: outcome,
                reason: DeadLetter.OwnReason.attemptsExhausted.rawValue)
        case .deadUnconfirmed: note(.deadUnconfirmed, by: outcome)
        case .expired: note(.expired, by: outcome)
        case .notOwed:
            // An answer that calls the token dead is why; any other asks for another try.
            let isDead =
                outcome.kind == .answered
                && AnswerTable.row(status: outcome.status, reason: outcome.reason).push
                    == .suppression
            note(
                pushes.isOrphaned(outcome.slot) ? .unregistered : .unsubscribed, by: outcome,
                isAnswer: isDead)
        }
    }

    /// - Parameters:
    ///   - reason: the worker's own, where it is not APNs's.
    ///   - isAnswer: whether APNs's answer, if there is one, is why.
    private mutating func note(
        _ word: OutcomeRecord.Word, by outcome: PushOutcome, reason: String? = nil,
        isAnswer: Bool = true
    ) {
        let slot = outcome.slot
        guard ended.admitsOneMore() else { return }
        var end = EndedPush(word, description(ofHandedOver: slot), pushes[slot].content)
        if isAnswer, case .answered = outcome.kind {
            end.status = outcome.status
            end.reason =
                switch outcome.reason {
                case .none: ""
                case .unknown: slab.reasonText(slot)
                default: outcome.reason.name
                }
        }
        if let reason { end.reason = reason }
        let wasSent = outcome.kind == .answered || outcome.kind == .unknown
        end.attempts = Int(pushes[slot].attempts) + (wasSent ? 1 : 0)
        ended.append(end)
    }

    /// A push ends that waited in memory, or was about to be handed over.
    @inline(never)
    mutating func noteUnsent(_ word: OutcomeRecord.Word, _ slot: PushSlot) {
        guard ended.admitsOneMore() else { return }
        var end = EndedPush(word, description(ofWaiting: slot), pushes[slot].content)
        end.attempts = Int(pushes[slot].attempts)
        ended.append(end)
    }

    /// A push ends that waited in `deferred`.
    @inline(never)
    mutating func noteUnsent(
        _ word: OutcomeRecord.Word, _ content: DeferredContent, to token: UnsafeRawBufferPointer,
        _ route: RouteID
    ) {
        guard ended.admitsOneMore() else { return }
        var end = EndedPush(word, describe(content.push, to: token, route), content.push)
        end.attempts = Int(content.past.attempts)
        ended.append(end)
    }
}
