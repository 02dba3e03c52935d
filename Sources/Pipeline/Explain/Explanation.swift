// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Audience
package import Delivery
package import PushModel

/// Which tokens somebody asks about.
package enum TokenQuestion: Sendable, Equatable {
    /// Those that show the subject, in the app of this name or in all.
    case subject([UInt8], app: String?)
    /// Those of an installation's registrations.
    case installation(String, app: String?, environment: PushEnvironment?, handler: String?)
    /// The token with this ID: the first eight bytes of its SHA-256. It may be registered under
    /// several APNs topics.
    case token(UInt64)
}

/// What the worker knows of the tokens that somebody asked about.
package struct TokenExplanation: Sendable {
    package var tokens: [ExplainedToken] = []
    /// How many rows there are beyond those that were looked at.
    package var more = 0
    /// Those of the topics of events.
    package var restrictions: [ExplainedRestriction] = []
    /// Why the answer may lack tokens.
    package var gaps: Set<Gap> = []

    package enum Gap: String, Sendable, CaseIterable {
        /// The app has more handlers than the worker remembers: name the handler.
        case manyHandlers
    }

    /// The most tokens that are described.
    package static let tokensMax = 200
}

/// One device token under one APNs topic.
package struct ExplainedToken: Sendable {
    /// The token ID as a number.
    package var id: UInt64
    package var app: String
    package var environment: PushEnvironment
    package var tokenClass: TokenClass
    package var apnsTopic: String
    /// Where the question has found it.
    package var places: Places
    /// Whether any registration has the token; otherwise only its suppression is known.
    package var isRegistered: Bool
    package var registeredAt: WallTime?
    package var suppression: RecordedSuppression?
    /// Whether the suppression holds: no registration is later than it.
    package var isSuppressed: Bool
    package var pushes: [ExplainedPush] = []
    /// The open circuit breakers that its pushes wait for.
    package var breakers: [TrippedBreaker] = []
    /// Those of its pushes and of the events of what it shows.
    package var restrictions: [ExplainedRestriction] = []
    /// What this worker has sent it today and what it should at most, where its pushes have a budget.
    package var sentToday: (pushes: Int, budget: Int)?
    /// Until when its pushes wait because the token has a fault of its own.
    package var heldUntil: WallTime?
    /// The last outcomes of pushes to it, newest first.
    package var outcomes: [ExplainedOutcome] = []

    /// The registrations that have the token, and what it shows there, as far as the question has led
    /// to them.
    package struct Places: Sendable {
        package private(set) var registrations: [RegistrationName] = []
        package private(set) var shows: [Shown] = []
        /// How many rows there are, including those that are not in `shows`: repeated ones, and those
        /// beyond the most.
        package private(set) var rows = 0

        mutating func add(_ registration: RegistrationName) {
            if !registrations.contains(registration) { registrations.append(registration) }
        }

        /// - Parameter shown: nil for a row that shows nothing.
        mutating func add(_ shown: @autoclosure () -> Shown?) {
            rows += 1
            guard shows.count < ExplainedToken.shownMax, let shown = shown() else { return }
            if !shows.contains(shown) { shows.append(shown) }
        }
    }

    package struct RegistrationName: Sendable, Hashable {
        package var installation: String
        package var handler: String
    }

    package struct Shown: Sendable, Hashable {
        /// Nil where the target shows a kind alone.
        package var subject: [UInt8]?
        /// Empty where there is none.
        package var kind: String
        /// Whether an event without a payload sends it a push.
        package var hearsChanges: Bool
    }

    /// The most rows, pushes and outcomes of one token in an answer.
    static let shownMax = 50
    static let pushesMax = 20
    static let outcomesMax = 10

    mutating func add(_ push: ExplainedPush) {
        if pushes.count < Self.pushesMax { pushes.append(push) }
    }
}

/// A push that has not ended.
package struct ExplainedPush: Sendable {
    package enum State: Sendable, Equatable {
        /// Stands in its route's queue.
        case queued
        case inFlight
        /// Waits in memory, such as before another try.
        case resting(until: WallTime)
        /// Waits in the topic `deferred`.
        case deferred(until: WallTime)
    }

    package var state: State
    package var type: PushType
    package var hasPayload: Bool
    /// How many tries have failed.
    package var attempts: Int
    package var expiresAt: WallTime
    /// Whether it is sent once more afterwards, for a later event.
    package var hasFollowUp = false
}

/// How one try of a push ended.
package struct ExplainedOutcome: Sendable {
    package var at: WallTime
    /// Nil for an acceptance, of which less is kept.
    package var type: PushType?
    package var kind: Kind
    package var status: UInt16
    package var reason = APNSReason.none
    package var apnsID: APNSID
    /// The oldest event that the push answered for; nil for an acceptance.
    package var event: (topic: String, partition: Int32, offset: Int64)?
    /// By which a push was dropped, where that is known.
    package var drop: ExplainedRestriction?

    package enum Kind: UInt8, Sendable, BitwiseCopyable {
        case answered, unprocessed, unknown, expired
        /// An operator has dropped it.
        case dropped
        /// The token had ceased to show the subject of its payload.
        case unsubscribed

        init(_ kind: PushOutcome.Kind) {
            self =
                switch kind {
                case .answered: .answered
                case .unprocessed: .unprocessed
                case .unknown: .unknown
                case .expired: .expired
                }
        }
    }
}
