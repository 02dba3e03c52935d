// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Whether a pool (or a route) may be sent to: a circuit breaker with a slow start.
///
/// States:
/// - `closed`: everything may go; after an open time the number in flight grows from eight
///   with each acceptance. Can transition to: `open`.
/// - `open`: nothing may go until a time. Can transition to: `halfOpen`, `closed`.
/// - `halfOpen`: one push is out as a probe. Can transition to: `closed`, `open` for longer.
package struct CircuitBreaker: Sendable {
    private enum State: Sendable {
        /// At most `limit` pushes may be in flight.
        case closed(limit: Int)
        case open(until: MonotonicTime)
        case halfOpen
    }

    private var state = State.closed(limit: .max)
    /// How often the breaker has opened without an acceptance in between.
    private var failures = 0
    /// Determines how long the breaker stays open after its next failure.
    package var backoff: Backoff

    package init(backoff: Backoff) { self.backoff = backoff }

    package enum Phase: Int, Sendable, CaseIterable { case closed, halfOpen, open }

    package var phase: Phase {
        switch state {
        case .closed: .closed
        case .open: .open
        case .halfOpen: .halfOpen
        }
    }

    package var isClosed: Bool {
        if case .closed = state { true } else { false }
    }

    /// Whether nothing may be sent now, not even a probe.
    package func isBlocking(now: MonotonicTime) -> Bool {
        if case .open(let until) = state { until > now } else { false }
    }

    /// How many pushes may be in flight now. Asking when the open time is over makes the breaker
    /// half-open: the next push is the probe.
    package mutating func allowance(now: MonotonicTime) -> Int {
        switch state {
        case .closed(let limit): return limit
        case .halfOpen: return 1
        case .open(let until):
            guard until <= now else { return 0 }
            state = .halfOpen
            return 1
        }
    }

    /// When `allowance` may change without a further fact.
    package var nextChange: MonotonicTime {
        if case .open(let until) = state { until } else { .distantFuture }
    }

    /// An answer shows that the fault is gone.
    package mutating func recovered() {
        switch state {
        case .closed(limit: .max): return
        case .closed(let limit):
            // Doubles with each full round of acceptances; above 4096 the limit has no meaning.
            state = .closed(limit: limit >= 4096 ? .max : limit + 1)
        case .halfOpen, .open:
            state = .closed(limit: Self.slowStart)
        }
        failures = 0
    }

    /// The fault has probably been mended: the next probe need not wait.
    package mutating func mayProbe(now: MonotonicTime) {
        guard case .open(let until) = state else { return }
        state = .open(until: min(until, now))
        failures = 0
    }

    /// The next failure is of another cause: its wait begins at the shortest.
    package mutating func forgetFailures() { failures = 0 }

    /// The pool or route has failed: the breaker opens.
    /// - Parameters:
    ///   - least: the shortest time to stay open; later open times grow from there.
    ///   - most: the longest, where that is less than the back-off's.
    package mutating func failed(
        now: MonotonicTime, atLeast least: Duration = .zero, atMost most: Duration? = nil,
        random: inout SplitMix64
    ) {
        if case .open = state { return }
        let growing = Backoff(
            least: max(backoff.least, least * 2),
            most: max(min(backoff.most, most ?? backoff.most), least))
        let wait = max(least, growing.delay(attempt: failures, random: &random))
        state = .open(until: now + wait)
        failures += 1
    }

    /// Pushes in flight after a probe has succeeded.
    private static let slowStart = 8
}
