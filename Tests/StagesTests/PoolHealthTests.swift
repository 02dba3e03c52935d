// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel
internal import Testing

@Suite struct `A back-off` {
    private static let retry = Backoff(least: .seconds(1), most: .seconds(900))

    @Test func `a back-off doubles its ceiling up to the most`() {
        let ceilings = (0..<12).map { Self.retry.ceiling(attempt: $0) }
        #expect(
            ceilings
                == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900].map { Duration.seconds($0) })
        for attempt in [40, 63, 64, 1_000, .max] {
            #expect(Self.retry.ceiling(attempt: attempt) == .seconds(900))
        }
        #expect(Self.retry.ceiling(attempt: -1) == .seconds(1))
    }

    @Test func `a back-off stays within its bounds and spreads over them`() {
        var random = SplitMix64(seed: 3)
        for attempt in 0..<20 {
            let ceiling = Self.retry.ceiling(attempt: attempt)
            let delays = (0..<300).map { _ in Self.retry.delay(attempt: attempt, random: &random) }
            #expect(delays.allSatisfy { $0 >= ceiling / 10 && $0 <= ceiling }, "attempt \(attempt)")
            #expect(delays.min()! < ceiling / 5, "attempt \(attempt)")
            #expect(delays.max()! > ceiling / 10 * 9, "attempt \(attempt)")
        }
    }

    @Test func `a back-off is the same for the same seed and another for another`() {
        func delays(seed: UInt64) -> [Duration] {
            var random = SplitMix64(seed: seed)
            return (0..<10).map { Self.retry.delay(attempt: $0, random: &random) }
        }
        #expect(delays(seed: 1) == delays(seed: 1))
        #expect(delays(seed: 1) != delays(seed: 2))
    }

    @Test func `a back-off of no time at all stays so`() {
        var random = SplitMix64(seed: 1)
        let none = Backoff(least: .zero, most: .zero)
        #expect(none.delay(attempt: 9, random: &random) == .zero)
    }
}

@Suite struct `A pool's health` {
    @Test(arguments: [1, 3, 60])
    func `a pool's health is not lost by one token, however often it fails`(others: UInt32) {
        var health = PoolHealth()
        for number in 0..<600 as Range<UInt32> {
            let isIll =
                number % 10 == 9
                ? health.received(
                    .healthy, of: TokenID(rawValue: 1 + number / 10 % others), now: .after(.zero))
                : health.received(.fault, of: TokenID(rawValue: 0), now: .after(.zero))
            #expect(!isIll, "after \(number)")
        }
    }

    @Test func `a pool's health is lost when the only two tokens fail`() {
        var health = PoolHealth()
        for _ in 0..<60 {
            _ = health.received(.healthy, of: TokenID(rawValue: 1), now: .after(.zero))
        }
        let ill = (0..<50 as Range<UInt32>).map {
            health.received(.fault, of: TokenID(rawValue: $0 % 2), now: .after(.zero))
        }
        #expect(ill.contains(true))
    }

    @Test func `a pool's health is lost when half of the last fifty answers are faults`() {
        var health = AnswersOfMany()
        var isIll = false
        for number in 0..<50 {
            // 24 faults among the first 49 answers, and the 50th decides.
            #expect(!isIll, "after \(number)")
            isIll = health.received(number % 2 == 1 ? .fault : .healthy)
        }
        #expect(isIll)
    }

    @Test func `a pool's health survives one fault fewer`() {
        var health = AnswersOfMany()
        for number in 0..<500 {
            let isIll = health.received(number % 50 < 24 ? .fault : .healthy)
            #expect(!isIll, "after \(number)")
        }
    }

    @Test func `a pool's health is not judged before fifty answers`() {
        var health = AnswersOfMany()
        for number in 1...50 {
            let isIll = health.received(.fault)
            #expect(isIll == (number == 50))
        }
        health.reset()
        let isIll = health.received(.fault)
        #expect(!isIll)
    }

    /// A pool that is sent little.
    @Test func `a pool's health is lost when there are only faults for ten seconds`() {
        var health = PoolHealth()
        func ill(_ token: UInt32, at seconds: Double) -> Bool {
            health.received(
                .fault, of: TokenID(rawValue: token), now: .after(.seconds(seconds)))
        }
        let early = [0.0, 1, 2, 4, 9.999].enumerated().map { ill(UInt32($0 % 2), at: $1) }
        #expect(!early.contains(true) && health.faultsInARow == 5)
        #expect(!health.isFailingAll(now: .after(.seconds(9.999))))
        let late = ill(1, at: 10)
        #expect(late && health.isFailingAll(now: .after(.seconds(10))))
        // One good answer, and they are counted anew.
        let isIll = health.received(
            .healthy, of: TokenID(rawValue: 2), now: .after(.seconds(11)))
        #expect(!isIll && health.faultsInARow == 0)
        #expect(
            [ill(0, at: 12), ill(1, at: 60), ill(0, at: 61), ill(1, at: 62)] == [
                false, false, false, false,
            ])
        #expect(ill(0, at: 63))
    }

    @Test
    func `a pool's health is not lost by a token that is alone, nor beside more that are well`() {
        var health = PoolHealth()
        for second in 0..<100 {
            let isIll = health.received(
                .fault, of: TokenID(rawValue: 1), now: .after(.seconds(second)))
            #expect(!isIll)
        }
        #expect(health.isFailingAll(now: .after(.seconds(100))))
        health = PoolHealth()
        for token in 10..<13 as Range<UInt32> {
            _ = health.received(.healthy, of: TokenID(rawValue: token), now: .after(.zero))
        }
        for second in 0..<20 {
            let token = TokenID(rawValue: UInt32(second % 2))
            let isIll = health.received(.fault, of: token, now: .after(.seconds(second)))
            #expect(!isIll)
        }
    }

    @Test(arguments: [50, 51, 99, 130])
    func `a pool's health forgets what is older than the last fifty`(healthy: Int) {
        var health = AnswersOfMany()
        for _ in 0..<24 { _ = health.received(.fault) }
        for _ in 0..<healthy { _ = health.received(.healthy) }
        var faults = 0
        while !health.received(.fault), faults < 100 { faults += 1 }
        #expect(faults == 24)
    }

    @Test func `a pool's health takes silence for a fault`() {
        var health = AnswersOfMany()
        var isIll = false
        for number in 0..<50 { isIll = health.received(number < 25 ? .silence : .healthy) }
        #expect(isIll)
    }

    @Test func `a pool's health is lost after ten seconds in which nothing answers`() {
        var health = AnswersOfMany()
        var isSilent: [Bool] = []
        for time in [Duration.zero, .seconds(10) - .nanoseconds(1), .seconds(10)] {
            isSilent.append(health.isSilent(inFlight: 3, now: .after(.seconds(70) + time)))
        }
        #expect(isSilent == [false, false, true])
    }

    @Test(arguments: [PoolHealth.Answer.healthy, .fault])
    func `a pool's health counts ten seconds anew from an answer`(answer: PoolHealth.Answer) {
        var health = AnswersOfMany()
        _ = health.isSilent(inFlight: 1, now: .after(.zero))
        _ = health.received(answer)
        let soon = health.isSilent(inFlight: 1, now: .after(.seconds(12)))
        let later = health.isSilent(inFlight: 1, now: .after(.seconds(22)))
        #expect([soon, later] == [false, true])
    }

    @Test func `a pool's health tells how long nothing has answered while something should`() {
        var health = PoolHealth()
        #expect(health.silence(now: .after(.zero)) == nil)
        _ = health.isSilent(inFlight: 1, now: .after(.zero))
        #expect(health.silence(now: .after(.seconds(3))) == .seconds(3))
        _ = health.received(.fault, of: TokenID(rawValue: 1), now: .after(.zero))
        #expect(health.silence(now: .after(.seconds(4))) == nil)
        _ = health.isSilent(inFlight: 1, now: .after(.seconds(4)))
        #expect(health.silence(now: .after(.seconds(9))) == .seconds(5))
        _ = health.isSilent(inFlight: 0, now: .after(.seconds(9)))
        #expect(health.silence(now: .after(.seconds(10))) == nil)
    }

    @Test func `a pool's health does not take a time-out for an answer`() {
        var health = AnswersOfMany()
        _ = health.isSilent(inFlight: 1, now: .after(.zero))
        _ = health.received(.silence)
        let isSilent = health.isSilent(inFlight: 1, now: .after(.seconds(10)))
        #expect(isSilent)
    }

    @Test func `a pool's health is never lost while nothing is in flight`() {
        var health = AnswersOfMany()
        _ = health.isSilent(inFlight: 1, now: .after(.zero))
        let idle = health.isSilent(inFlight: 0, now: .after(.seconds(20)))
        let busy = health.isSilent(inFlight: 1, now: .after(.seconds(21)))
        #expect([idle, busy] == [false, false])
    }
}
