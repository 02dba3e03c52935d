// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Delivery
internal import Pipeline
internal import PushModel

/// The answer to `GET /explain`, as JSON; docs/commands.md describes it.
package struct TokenReply: Codable, Sendable, Equatable {
    /// When the worker answered; RFC 3339, as all times here.
    package var time: String
    /// The worker's phase: while it is `replaying`, tokens may be missing.
    package var phase: String
    package var tokens: [Token]
    /// How many rows are not among `tokens`.
    package var more: Int
    /// Why tokens may be missing: `manyHandlers`.
    package var gaps: [String]
    /// Those of the topics of events; nil from a worker from before there were restrictions.
    package var restrictions: [RestrictionReply]?

    package struct Token: Codable, Sendable, Equatable {
        package var tokenID: String
        package var app: String
        package var environment: String
        package var `class`: String
        package var apnsTopic: String
        package var registrations: [Registration]
        package var registered: Bool
        package var registeredAt: String?
        package var shows: [Shown]
        /// How many rows of registrations have led to the token; `shows` has the distinct ones, not
        /// more than fifty.
        package var rows: Int
        package var state: State
        package var suppression: Suppression?
        package var pushes: [Push]
        package var breakers: [Breaker]
        package var heldUntil: String?
        /// Nil where its pushes have no budget.
        package var sentToday: SentToday?
        /// Those of its pushes and of the events of what it shows.
        package var restrictions: [RestrictionReply]?
        package var outcomes: [Outcome]

        /// Identifies the token among the answers of several workers.
        package var identity: [String] { [tokenID, environment, apnsTopic] }
    }

    /// What is with a token's pushes on this worker; the first that is true.
    package enum State: String, Codable, Sendable, CaseIterable {
        /// No registration has the token.
        case unregistered
        case suppressed
        case inFlight
        case queued
        /// Waits in memory for its time.
        case resting
        /// Waits in the topic `deferred` for its time.
        case deferred
        case idle
    }

    package struct Registration: Codable, Sendable, Equatable {
        package var installation: String
        package var handler: String

        package init(installation: String, handler: String) {
            self.installation = installation
            self.handler = handler
        }
    }

    package struct Shown: Codable, Sendable, Equatable {
        package var subject: String?
        package var kind: String?
        /// Whether an event without a payload sends a push.
        package var hearsChanges: Bool
    }

    package struct Suppression: Codable, Sendable, Equatable {
        package var status: Int
        package var reason: String
        package var since: String?
        /// The registrations that it suppresses are not later than this.
        package var registeredAt: String
        /// False once the token has registered again.
        package var holds: Bool
    }

    package struct Push: Codable, Sendable, Equatable {
        package var state: State
        package var until: String?
        package var type: String
        package var hasPayload: Bool
        package var failedTries: Int
        package var expiresAt: String
        package var hasFollowUp: Bool
    }

    package struct SentToday: Codable, Sendable, Equatable {
        package var pushes: Int
        package var budget: Int
    }

    package struct Breaker: Codable, Sendable, Equatable {
        package var name: String
        /// Why it is open, and what to do.
        package var cause: String
        package var nextProbeSeconds: Int?
    }

    package struct Outcome: Codable, Sendable, Equatable {
        package var time: String
        package var type: String?
        /// `answered`, `unprocessed`, `unknown`, `expired`, `dropped` or `unsubscribed`.
        package var outcome: String
        package var status: Int?
        package var reason: String?
        package var apnsID: String
        package var topic: String?
        package var partition: Int?
        package var offset: Int64?
        /// By which it was dropped.
        package var restriction: RestrictionReply?
    }
}

extension TokenReply {
    init(_ explanation: TokenExplanation, phase: WorkerControl.Phase, now: Now) {
        time = now.wall.rfc3339
        self.phase = "\(phase)"
        tokens = explanation.tokens.map(Token.init)
        more = explanation.more
        gaps = explanation.gaps.map(\.rawValue).sorted()
        restrictions = explanation.restrictions.map(RestrictionReply.init)
    }
}

extension TokenReply.Token {
    init(_ token: ExplainedToken) {
        tokenID = ExplainJSON.tokenID(token.id)
        app = token.app
        environment = token.environment.name
        self.class = token.tokenClass.name
        apnsTopic = token.apnsTopic
        registrations = token.places.registrations.map {
            TokenReply.Registration(installation: $0.installation, handler: $0.handler)
        }
        registered = token.isRegistered
        registeredAt = token.registeredAt?.rfc3339
        shows = token.places.shows.map {
            TokenReply.Shown(
                subject: $0.subject.map { String(decoding: $0, as: UTF8.self) },
                kind: $0.kind.isEmpty ? nil : $0.kind, hearsChanges: $0.hearsChanges)
        }
        rows = token.places.rows
        suppression = token.suppression.map {
            TokenReply.Suppression($0, holds: token.isSuppressed)
        }
        pushes = token.pushes.map(TokenReply.Push.init)
        breakers = token.breakers.map(TokenReply.Breaker.init)
        heldUntil = token.heldUntil?.rfc3339
        sentToday = token.sentToday.map {
            TokenReply.SentToday(pushes: $0.pushes, budget: $0.budget)
        }
        restrictions = token.restrictions.map(RestrictionReply.init)
        outcomes = token.outcomes.map(TokenReply.Outcome.init)
        state = .idle
        let states = Set(pushes.map(\.state))
        if !token.isRegistered {
            state = .unregistered
        } else if token.isSuppressed {
            state = .suppressed
        } else if let first = TokenReply.State.allCases.first(where: states.contains) {
            state = first
        }
    }
}

extension TokenReply.Suppression {
    init(_ suppression: RecordedSuppression, holds: Bool) {
        status = Int(suppression.status)
        reason = suppression.reason
        since = suppression.recordedAt?.rfc3339
        registeredAt = suppression.registeredAt.rfc3339
        self.holds = holds
    }
}

extension TokenReply.Push {
    init(_ push: ExplainedPush) {
        switch push.state {
        case .queued: state = .queued
        case .inFlight: state = .inFlight
        case .resting(let time):
            state = .resting
            until = time.rfc3339
        case .deferred(let time):
            state = .deferred
            until = time.rfc3339
        }
        type = push.type.name
        hasPayload = push.hasPayload
        failedTries = push.attempts
        expiresAt = push.expiresAt.rfc3339
        hasFollowUp = push.hasFollowUp
    }
}

extension TokenReply.Breaker {
    init(_ breaker: TrippedBreaker) {
        name = breaker.name
        cause = breaker.advice
        nextProbeSeconds = breaker.probeIn.map { Int($0.components.seconds) }
    }
}

extension TokenReply.Outcome {
    init(_ outcome: ExplainedOutcome) {
        time = outcome.at.rfc3339
        type = outcome.type?.name
        self.outcome = "\(outcome.kind)"
        if case .answered = outcome.kind {
            status = Int(outcome.status)
            reason = outcome.reason == .none ? nil : outcome.reason.name
        }
        apnsID = outcome.apnsID.text
        topic = outcome.event?.topic
        partition = outcome.event.map { Int($0.partition) }
        offset = outcome.event?.offset
        restriction = outcome.drop.map(RestrictionReply.init)
    }
}
