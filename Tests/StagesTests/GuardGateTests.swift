// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel
internal import Testing

@Suite struct `The gate of a pool` {
    private static let backoff = Backoff(least: .seconds(10), most: .seconds(600))

    /// When the gate lets a probe out, asked every 100 ms from `start` on; nil after an hour.
    private func probeTime(_ gate: inout SendingGate, from start: MonotonicTime) -> MonotonicTime? {
        for step in 0..<36_000 {
            let now = start + .milliseconds(100 * step)
            if gate.allowance(now: now) > 0 { return now }
        }
        return nil
    }

    @Test func `is open without bound at first`() {
        var gate = SendingGate(backoff: Self.backoff)
        let allowance = gate.allowance(now: .after(.zero))
        #expect(allowance == .max)
        #expect(!gate.isShut)
        #expect(gate.nextChange == .distantFuture)
    }

    @Test func `is shut by a fault, then lets one probe out`() {
        var gate = SendingGate(backoff: Self.backoff)
        var random = SplitMix64(seed: 5)
        let start = MonotonicTime.after(.seconds(100))
        gate.failed(now: start, random: &random)
        #expect(gate.isShut)
        let due = gate.nextChange
        #expect(due - start >= .seconds(1))
        #expect(due - start <= .seconds(10))
        let early = gate.allowance(now: due - .nanoseconds(1))
        let probe = gate.allowance(now: due)
        let still = gate.allowance(now: due + .seconds(60))
        #expect([early, probe, still] == [0, 1, 1])
        #expect(gate.isShut)
    }

    @Test func `opens slowly after a probe that was accepted`() {
        var gate = SendingGate(backoff: Self.backoff)
        var random = SplitMix64(seed: 5)
        gate.failed(now: .after(.zero), random: &random)
        let probe = probeTime(&gate, from: .after(.zero))
        #expect(probe != nil)
        gate.recovered()
        #expect(!gate.isShut)
        let first = gate.allowance(now: .after(.seconds(20)))
        // A few, not all that have piled up; with each full round of acceptances twice as many.
        #expect((1...16).contains(first))
        for _ in 0..<first { gate.recovered() }
        let second = gate.allowance(now: .after(.seconds(20)))
        #expect(second == 2 * first)
        for _ in 0..<5_000 { gate.recovered() }
        let last = gate.allowance(now: .after(.seconds(20)))
        #expect(last == .max)
    }

    @Test func `stays shut for longer with each probe that fails`() {
        var random = SplitMix64(seed: 9)
        var averages: [Duration] = []
        for failures in 0..<8 {
            var total = Duration.zero
            for _ in 0..<40 {
                var gate = SendingGate(backoff: Self.backoff)
                var now = MonotonicTime.after(.zero)
                gate.failed(now: now, random: &random)
                for _ in 0..<failures {
                    now = gate.nextChange
                    _ = gate.allowance(now: now)
                    gate.failed(now: now, random: &random)
                }
                #expect(gate.nextChange - now <= Self.backoff.ceiling(attempt: failures))
                total += gate.nextChange - now
            }
            averages.append(total / 40)
        }
        for failures in 1..<6 { #expect(averages[failures] > averages[failures - 1] * 1.3) }
    }

    @Test func `is not shut for longer by what was in flight when it was shut`() {
        var gate = SendingGate(backoff: Self.backoff)
        var random = SplitMix64(seed: 5)
        gate.failed(now: .after(.zero), random: &random)
        let due = gate.nextChange
        for _ in 0..<100 { gate.failed(now: .after(.milliseconds(900)), random: &random) }
        #expect(gate.nextChange == due)
    }

    @Test func `begins with short times again after an acceptance`() {
        var gate = SendingGate(backoff: Self.backoff)
        var random = SplitMix64(seed: 5)
        for _ in 0..<9 {
            gate.failed(now: .after(.zero), random: &random)
            _ = gate.allowance(now: gate.nextChange)
        }
        gate.recovered()
        gate.failed(now: .after(.zero), random: &random)
        #expect(gate.nextChange - .after(.zero) <= .seconds(10))
    }

    @Test func `is opened by an acceptance even before its time`() {
        var gate = SendingGate(backoff: Self.backoff)
        var random = SplitMix64(seed: 5)
        gate.failed(now: .after(.zero), random: &random)
        gate.recovered()
        #expect(!gate.isShut)
        let allowance = gate.allowance(now: .after(.zero))
        #expect(allowance < 100)
    }
}
