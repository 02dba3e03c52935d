// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Whether a pool (or a lane) may be sent to: a circuit breaker with probes and a slow start.
///
/// States:
/// - `open`: everything may go; after a shut time the number in flight grows from eight with each
///   acceptance. Can transition to: `shut`.
/// - `shut`: nothing may go until a time. Can transition to: `probing`.
/// - `probing`: one push is out to see. Can transition to: `open`, `shut` for longer.
package struct SendingGate: Sendable {
    private enum State: Sendable {
        /// At most `limit` in flight.
        case open(limit: Int)
        case shut(until: MonotonicTime)
        case probing
    }

    private var state = State.open(limit: .max)
    /// How often it was shut without an acceptance in between.
    private var strikes = 0
    /// Of the next time that it is shut.
    package var backoff: Backoff

    package init(backoff: Backoff) { self.backoff = backoff }

    package var isShut: Bool {
        if case .open = state { false } else { true }
    }

    /// Nothing may go now, not even a probe.
    package func isClosed(now: MonotonicTime) -> Bool {
        if case .shut(let until) = state { until > now } else { false }
    }

    /// How many pushes may be in flight now; asking when the shut time is over makes the next one
    /// the probe.
    package mutating func allowance(now: MonotonicTime) -> Int {
        switch state {
        case .open(let limit): return limit
        case .probing: return 1
        case .shut(let until):
            guard until <= now else { return 0 }
            state = .probing
            return 1
        }
    }

    /// When `allowance` may change by itself.
    package var nextChange: MonotonicTime {
        if case .shut(let until) = state { until } else { .distantFuture }
    }

    /// Something answered that shows the fault is gone.
    package mutating func recovered() {
        switch state {
        case .open(limit: .max): return
        case .open(let limit):
            // Doubles with each full round of acceptances; above 4096 the limit has no meaning.
            state = .open(limit: limit >= 4096 ? .max : limit + 1)
        case .probing, .shut:
            state = .open(limit: Self.slowStart)
        }
        strikes = 0
    }

    /// The fault has probably been mended: the next probe need not wait.
    package mutating func mayProbe(now: MonotonicTime) {
        guard case .shut(let until) = state else { return }
        state = .shut(until: min(until, now))
        strikes = 0
    }

    /// The fault showed itself.
    /// - Parameter least: the gate is shut for no less, and for ever longer from there on.
    package mutating func failed(
        now: MonotonicTime, atLeast least: Duration = .zero, random: inout SplitMix64
    ) {
        if case .shut = state { return }
        let growing = Backoff(
            least: max(backoff.least, least * 2), most: max(backoff.most, least))
        let wait = max(least, growing.delay(attempt: strikes, random: &random))
        state = .shut(until: now + wait)
        strikes += 1
    }

    /// In flight after a probe has succeeded.
    private static let slowStart = 8
}
