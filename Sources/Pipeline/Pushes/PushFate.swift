// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Planning
internal import PushModel

/// What becomes of a push that was handed over, by its outcome. `Handover.perform` carries it out.
enum PushFate: Equatable {
    /// Accepted for delivery.
    case accepted
    /// Sent again as soon as its route may be: the fault is the credential's or the topic's.
    case requeued
    /// Sent again at once: an event that expires later has joined it since the hand-over.
    case prolonged
    /// Sent again after a while; kept in `deferred` meanwhile if that is long.
    case retried(RetryCause, costsAttempt: Bool)
    /// Ends, and its token is sent nothing any more.
    case suppressed
    /// Ends as a dead letter, and its token is sent nothing any more.
    case rejectedWithToken
    /// Ends. Its token was called dead, which is not believed.
    case deadUnconfirmed
    /// Ends as a dead letter, for the reason that APNs gave.
    case rejected
    /// Ends as a dead letter after its last attempt.
    case exhausted
    /// Ends in place of another try: its token is gone, or shows its subject no more.
    case notOwed
    /// Ends, since its time is over.
    case expired
}

/// Why a push is tried again after a while. It decides after how long.
enum RetryCause: Equatable {
    /// The request was not processed.
    case unprocessed
    /// Whether it was processed is not known.
    case unanswered
    /// The push is fine, and the connection was not.
    case resent
    /// The token is sent too much.
    case cooledDown
    /// A fault at APNs.
    case fault

    /// The delays before the next try.
    func backoff(_ settings: PipelineSettings) -> Backoff {
        switch self {
        case .unprocessed, .unanswered, .resent: settings.sizes.resendBackoff
        case .cooledDown: settings.live.coolDownBackoff
        case .fault: settings.live.retryBackoff
        }
    }

    /// What counts the tries.
    var counter: WritableKeyPath<Counters, Int> {
        switch self {
        case .unprocessed: \.unprocessed
        case .unanswered: \.unanswered
        case .resent: \.resent
        case .cooledDown: \.cooledDown
        case .fault: \.retried
        }
    }
}

extension PushFate {
    /// Decides; nothing happens yet.
    ///
    /// - Parameters:
    ///   - isProbe: whether a breaker of the route was open: the push is no attempt of its own then.
    ///   - isBelieved: where APNs called the token bad or dead, whether the guard of its route
    ///     believes that.
    init(
        of outcome: PushOutcome, isProbe: Bool, isBelieved: Bool, _ state: borrowing PipelineState,
        now: Now
    ) {
        let slot = outcome.slot
        switch outcome.kind {
        case .unprocessed:
            self = Self.retry(slot, .unprocessed, costsAttempt: false, state, now: now)
        case .unknown:
            self = Self.retry(slot, .unanswered, costsAttempt: !isProbe, state, now: now)
        case .expired where state.pushes.expiresAt(of: slot) > now.monotonic:
            self = state.isOwed(slot) ? .prolonged : .notOwed
        case .expired:
            self = .expired
        case .answered:
            switch AnswerTable.row(status: outcome.status, reason: outcome.reason).push {
            case .accept: self = .accepted
            case .reject: self = .rejected
            case .rejectToken:
                let isBad =
                    isBelieved && !state.pushes.isOrphaned(slot) && state.hasRoomForSuppressions()
                self = isBad ? .rejectedWithToken : .rejected
            case .suppression:
                if state.pushes.isOrphaned(slot) {
                    self = .notOwed
                } else {
                    // Without room the token stays as it is: the next answer that calls it dead says so
                    // again.
                    let isDead = isBelieved && state.hasRoomForSuppressions()
                    self = isDead ? .suppressed : .deadUnconfirmed
                }
            case .resend: self = Self.retry(slot, .resent, costsAttempt: true, state, now: now)
            case .coolDown:
                self = Self.retry(slot, .cooledDown, costsAttempt: true, state, now: now)
            case .backOff: self = Self.retry(slot, .fault, costsAttempt: !isProbe, state, now: now)
            case .openPoolBreaker, .openRouteBreaker:
                self = state.isOwed(slot) ? .requeued : .notOwed
            }
        }
    }

    private static func retry(
        _ slot: UInt32, _ cause: RetryCause, costsAttempt: Bool, _ state: borrowing PipelineState,
        now: Now
    ) -> PushFate {
        guard state.isOwed(slot) else { return .notOwed }
        let isLast =
            costsAttempt
            && Int(state.pushes[slot].attempts) + 1 >= state.settings.live.attemptsMax
        guard isLast else { return .retried(cause, costsAttempt: costsAttempt) }
        // The last one is not lost to an outage: as long as APNs accepts nothing, it is tried again.
        return state.breakers.isFailingAll(state.pushes.route(of: slot), now: now.monotonic)
            ? .retried(cause, costsAttempt: false) : .exhausted
    }
}
