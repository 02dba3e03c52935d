// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.
import Worker

/// Decides how `lamplighter check --wait` goes on after each look at Kafka.
struct KafkaWait: Sendable {
    /// What a look at Kafka has found.
    enum Look: Hashable, Sendable {
        case passed
        /// Something is missing that may still come; the text says what.
        case pending(String)
        /// Something is wrong that no waiting mends.
        case wrong
    }

    enum Step: Hashable, Sendable {
        /// The last look is the result.
        case end
        /// Look again after the pause; `telling` is nil if the reason has been told.
        case again(pause: Duration, telling: String?)
    }

    private let deadline: ContinuousClock.Instant
    private let waits: Bool
    private var told: String?

    /// - Parameter limit: zero for a single look.
    init(limit: Duration, now: ContinuousClock.Instant) {
        deadline = now + limit
        waits = limit > .zero
    }

    /// The most time that a look which begins now may wait for a broker's answer.
    func lookTimeout(at now: ContinuousClock.Instant) -> Duration {
        guard waits else { return Self.lookTimeoutMax }
        return min(Self.lookTimeoutMax, max(Self.lookTimeoutMin, deadline - now))
    }

    mutating func looked(_ look: Look, at now: ContinuousClock.Instant) -> Step {
        guard case .pending(let reason) = look, now < deadline else { return .end }
        let line = reason == told ? nil : reason
        told = reason
        return .again(pause: min(Self.interval, deadline - now), telling: line)
    }

    /// As long as `TopicAdmin` waits: TLS and a login to a busy broker can take seconds.
    private static let lookTimeoutMax = Duration.seconds(10)
    /// With less, the last look would say that a broker is silent that only takes its time.
    private static let lookTimeoutMin = Duration.seconds(1)
    private static let interval = Duration.seconds(1)
}
