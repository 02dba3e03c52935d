// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel
internal import Testing

@Suite struct `A circuit breaker` {
    private static let backoff = Backoff(least: .seconds(10), most: .seconds(600))

    /// When the breaker lets a probe out, asked every 100 ms from `start` on; nil after an hour.
    private func probeTime(_ breaker: inout CircuitBreaker, from start: MonotonicTime)
        -> MonotonicTime?
    {
        for step in 0..<36_000 {
            let now = start + .milliseconds(100 * step)
            if breaker.allowance(now: now) > 0 { return now }
        }
        return nil
    }

    @Test func `a circuit breaker is closed at first, without bound`() {
        var breaker = CircuitBreaker(backoff: Self.backoff)
        let allowance = breaker.allowance(now: .after(.zero))
        #expect(allowance == .max)
        #expect(breaker.isClosed)
        #expect(breaker.nextChange == .distantFuture)
    }

    @Test func `a circuit breaker is opened by a fault, then lets one probe out`() {
        var breaker = CircuitBreaker(backoff: Self.backoff)
        var random = SplitMix64(seed: 5)
        let start = MonotonicTime.after(.seconds(100))
        breaker.failed(now: start, random: &random)
        #expect(!breaker.isClosed)
        let due = breaker.nextChange
        #expect(due - start >= .seconds(1))
        #expect(due - start <= .seconds(10))
        let early = breaker.allowance(now: due - .nanoseconds(1))
        let probe = breaker.allowance(now: due)
        let still = breaker.allowance(now: due + .seconds(60))
        #expect([early, probe, still] == [0, 1, 1])
        #expect(!breaker.isClosed)
    }

    @Test func `a circuit breaker closes slowly after a probe that was accepted`() {
        var breaker = CircuitBreaker(backoff: Self.backoff)
        var random = SplitMix64(seed: 5)
        breaker.failed(now: .after(.zero), random: &random)
        let probe = probeTime(&breaker, from: .after(.zero))
        #expect(probe != nil)
        breaker.recovered()
        #expect(breaker.isClosed)
        let first = breaker.allowance(now: .after(.seconds(20)))
        // A few, not all that have piled up; with each full round of acceptances twice as many.
        #expect((1...16).contains(first))
        for _ in 0..<first { breaker.recovered() }
        let second = breaker.allowance(now: .after(.seconds(20)))
        #expect(second == 2 * first)
        for _ in 0..<5_000 { breaker.recovered() }
        let last = breaker.allowance(now: .after(.seconds(20)))
        #expect(last == .max)
    }

    @Test func `a circuit breaker stays open for longer with each probe that fails`() {
        var random = SplitMix64(seed: 9)
        var averages: [Duration] = []
        for failures in 0..<8 {
            var total = Duration.zero
            for _ in 0..<40 {
                var breaker = CircuitBreaker(backoff: Self.backoff)
                var now = MonotonicTime.after(.zero)
                breaker.failed(now: now, random: &random)
                for _ in 0..<failures {
                    now = breaker.nextChange
                    _ = breaker.allowance(now: now)
                    breaker.failed(now: now, random: &random)
                }
                #expect(breaker.nextChange - now <= Self.backoff.ceiling(attempt: failures))
                total += breaker.nextChange - now
            }
            averages.append(total / 40)
        }
        for failures in 1..<6 { #expect(averages[failures] > averages[failures - 1] * 1.3) }
    }

    @Test func `a circuit breaker stays open no longer for what was in flight when it opened`() {
        var breaker = CircuitBreaker(backoff: Self.backoff)
        var random = SplitMix64(seed: 5)
        breaker.failed(now: .after(.zero), random: &random)
        let due = breaker.nextChange
        for _ in 0..<100 { breaker.failed(now: .after(.milliseconds(900)), random: &random) }
        #expect(breaker.nextChange == due)
    }

    @Test func `a circuit breaker begins with short times again after an acceptance`() {
        var breaker = CircuitBreaker(backoff: Self.backoff)
        var random = SplitMix64(seed: 5)
        for _ in 0..<9 {
            breaker.failed(now: .after(.zero), random: &random)
            _ = breaker.allowance(now: breaker.nextChange)
        }
        breaker.recovered()
        breaker.failed(now: .after(.zero), random: &random)
        #expect(breaker.nextChange - .after(.zero) <= .seconds(10))
    }

    @Test func `a circuit breaker is closed by an acceptance even before its time`() {
        var breaker = CircuitBreaker(backoff: Self.backoff)
        var random = SplitMix64(seed: 5)
        breaker.failed(now: .after(.zero), random: &random)
        breaker.recovered()
        #expect(breaker.isClosed)
        let allowance = breaker.allowance(now: .after(.zero))
        #expect(allowance < 100)
    }
}
