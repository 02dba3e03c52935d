// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel
internal import Testing

@Suite struct `Guards and their limits` {
    @Test func `a pool that was parked is judged by what comes after`() {
        var health = AnswersOfMany()
        for _ in 0..<70 { _ = health.received(.fault) }
        health.reset()
        let healthy = (0..<50).map { _ in health.received(.healthy) }
        #expect(!healthy.contains(true), "no fault is left over")
        health.reset()
        let ill = (0..<50).map { _ in health.received(.fault) }
        #expect(ill == Array(repeating: false, count: 49) + [true])
    }

    @Test func `a pool that was parked forgets its oldest answer first again`() {
        var health = AnswersOfMany()
        for _ in 0..<70 { _ = health.received(.healthy) }
        health.reset()
        for _ in 0..<24 { _ = health.received(.fault) }
        for _ in 0..<26 { _ = health.received(.healthy) }
        // Each fault takes the place of one.
        let ill = (0..<24).map { _ in health.received(.fault) }
        #expect(!ill.contains(true))
    }

    @Test func `a pool that was parked may be silent for ten seconds more`() {
        var health = AnswersOfMany()
        _ = health.isSilent(inFlight: 1, now: .after(.zero))
        health.reset()
        let silent = [11, 20, 21].map { health.isSilent(inFlight: 1, now: .after(.seconds($0))) }
        #expect(silent == [false, false, true])
    }

    @Test func `a circuit breaker blocks until its time, and no longer`() {
        var breaker = CircuitBreaker(backoff: Backoff(least: .seconds(10), most: .seconds(10)))
        var random = SplitMix64(seed: 1)
        breaker.failed(now: .after(.zero), random: &random)
        let until = breaker.nextChange
        #expect(breaker.isBlocking(now: until - .nanoseconds(1)))
        #expect(
            !breaker.isBlocking(now: until), "else nobody would wake the deferred pushes behind it")
    }

    @Test func `an acceptance is fresh for the whole of its time`() {
        var limits = TokenGuard.Limits()
        limits.window = 2
        limits.badShareMax = 0.5
        for (age, isBelieved) in [(Duration.zero, true), (.nanoseconds(1), false)] {
            var guardian = TokenGuard(limits: limits)
            guardian.accepted(now: .after(.zero))
            let believed = guardian.tokenRejected(now: .after(limits.freshness + age))
            #expect(believed == isBelieved)
        }
    }

    @Test func `a thousand suppressions may be given in a minute, as documented`() {
        var guardian = TokenGuard(limits: TokenGuard.Limits())
        let believed = (0..<1200).count { _ in guardian.tokenDied(now: .after(.seconds(60))) }
        #expect(believed == 1000)
    }

    @Test func `a reason under another status than its own decides nothing`() {
        for status in [500, 503] as [UInt16] {
            let row = AnswerTable.row(status: status, reason: .badDeviceToken)
            #expect(isBackOff(row.push) && row.status == status)
        }
        let row = AnswerTable.row(status: 204, reason: .unregistered)
        guard case .accept = row.push else {
            Issue.record("a success of any kind is an acceptance")
            return
        }
    }

    private func isBackOff(_ action: AnswerTable.PushAction) -> Bool {
        if case .backOff = action { true } else { false }
    }
}
