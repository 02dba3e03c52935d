// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel
internal import Testing

@Suite struct `The guard on complaints about tokens` {
    private static let start = MonotonicTime.after(.seconds(1_000))

    /// A guard that has seen these answers, the newest last.
    private static func seen(accepted: Int, rejected: Int = 0) -> TokenGuard {
        var tokenGuard = TokenGuard(limits: TokenGuard.Limits())
        for _ in 0..<rejected { _ = tokenGuard.tokenRejected(now: start) }
        for _ in 0..<accepted { tokenGuard.accepted(now: start) }
        return tokenGuard
    }

    @Test func `the guard believes a single bad token of a busy, healthy route`() {
        var tokenGuard = Self.seen(accepted: 1_000)
        let believed = tokenGuard.tokenRejected(now: Self.start)
        #expect(believed)
    }

    @Test func `the guard believes nothing when every token is bad from the first`() {
        var tokenGuard = TokenGuard(limits: TokenGuard.Limits())
        for number in 0..<5_000 {
            let now = Self.start + .milliseconds(number)
            let believed = tokenGuard.tokenRejected(now: now)
            #expect(!believed, "answer \(number)")
        }
    }

    @Test func `the guard believes at most a share of a window when a deploy goes wrong later`() {
        var tokenGuard = Self.seen(accepted: 1_000)
        var believed = 0
        for _ in 0..<5_000 where tokenGuard.tokenRejected(now: Self.start) { believed += 1 }
        // 5 % of 200.
        #expect(believed == 10)
    }

    @Test func `the guard believes no 400 of a small app, whose window is not full`() {
        var tokenGuard = Self.seen(accepted: 198)
        let incomplete = tokenGuard.tokenRejected(now: Self.start)
        let complete = tokenGuard.tokenRejected(now: Self.start)
        #expect([incomplete, complete] == [false, true])
    }

    @Test func `the guard draws the line at the share: ten in two hundred, not eleven`() {
        var atLimit = Self.seen(accepted: 190, rejected: 10)
        // The oldest of the ten leaves the window as this one enters it.
        let believed = atLimit.tokenRejected(now: Self.start)
        #expect(believed)
        var over = Self.seen(accepted: 189, rejected: 10)
        let unbelieved = over.tokenRejected(now: Self.start)
        // 199 answers and this one, eleven of them bad.
        #expect(!unbelieved)
    }

    @Test func `the guard believes again when the bad answers have left the window`() {
        var tokenGuard = Self.seen(accepted: 0, rejected: 200)
        for _ in 0..<189 { tokenGuard.accepted(now: Self.start) }
        // Eleven old bad answers are left; the oldest leaves and this one enters.
        let before = tokenGuard.tokenRejected(now: Self.start)
        tokenGuard.accepted(now: Self.start)
        let after = tokenGuard.tokenRejected(now: Self.start)
        #expect([before, after] == [false, true])
    }

    @Test func `the guard believes only while acceptances are fresh`() {
        var fresh = Self.seen(accepted: 500)
        let believed = fresh.tokenRejected(now: Self.start + .seconds(599))
        var stale = Self.seen(accepted: 500)
        let unbelieved = stale.tokenRejected(now: Self.start + .seconds(601))
        #expect([believed, unbelieved] == [true, false])
    }

    @Test func `the guard believes a 410 without a window, up to so many in a minute`() {
        var limits = TokenGuard.Limits()
        limits.suppressionsPerMinuteMax = 3
        var tokenGuard = TokenGuard(limits: limits)
        var believed: [Bool] = []
        for _ in 0..<5 { believed.append(tokenGuard.tokenDied(now: Self.start)) }
        believed.append(tokenGuard.tokenDied(now: Self.start + .seconds(60) - .nanoseconds(1)))
        #expect(believed == [true, true, true, false, false, false])
        var later: [Bool] = []
        for _ in 0..<4 { later.append(tokenGuard.tokenDied(now: Self.start + .seconds(60))) }
        #expect(later == [true, true, true, false])
    }

    @Test func `the guard counts both kinds of suppression against the same minute`() {
        var limits = TokenGuard.Limits()
        limits.suppressionsPerMinuteMax = 2
        var tokenGuard = TokenGuard(limits: limits)
        for _ in 0..<400 { tokenGuard.accepted(now: Self.start) }
        let suppressions = [
            tokenGuard.tokenDied(now: Self.start), tokenGuard.tokenRejected(now: Self.start),
            tokenGuard.tokenRejected(now: Self.start), tokenGuard.tokenDied(now: Self.start),
        ]
        #expect(suppressions == [true, true, false, false])
    }

    @Test func `the guard spends no suppression on a complaint that it does not believe`() {
        var limits = TokenGuard.Limits()
        limits.suppressionsPerMinuteMax = 1
        var tokenGuard = TokenGuard(limits: limits)
        for _ in 0..<50 { _ = tokenGuard.tokenRejected(now: Self.start) }
        let believed = tokenGuard.tokenDied(now: Self.start)
        #expect(believed)
    }
}
