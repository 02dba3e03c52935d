// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Planning
internal import PushModel
internal import Testing

@Suite struct `Subjects that changed recently` {
    private static let registrationGrace = Duration.seconds(2)

    @Test func `changed subjects are remembered for the whole grace period, whenever they changed`()
    {
        var dice = SplitMix64(seed: 11)
        for round in 0..<2_000 {
            var recent = RecentSubjects(cells: 64, registrationGrace: Self.registrationGrace)
            let hash = dice.next()
            let changedAt = MonotonicTime(nanoseconds: Int64(dice.next(below: 1 << 62)))
            recent.changed(hash: hash, now: changedAt)
            for age in [Duration.zero, .seconds(1), Self.registrationGrace] {
                let answer = recent.hasChanged(hash: hash, now: changedAt + age)
                #expect(answer, "round \(round), changed at \(changedAt), age \(age)")
            }
        }
    }

    @Test func `changed subjects are remembered across the time at which the ticks begin anew`() {
        // 2^32 ticks of 2^24 ns: two years and some months after the machine has started.
        let turn = MonotonicTime(nanoseconds: 1 << 56)
        for milliseconds in stride(from: -100, through: 100, by: 3) {
            var recent = RecentSubjects(cells: 4, registrationGrace: Self.registrationGrace)
            let changedAt = turn + .milliseconds(milliseconds)
            recent.changed(hash: 1, now: changedAt)
            for age in [Duration.zero, .milliseconds(50), Self.registrationGrace] {
                let answer = recent.hasChanged(hash: 1, now: changedAt + age)
                #expect(answer, "changed \(milliseconds) ms from the turn, age \(age)")
            }
        }
    }

    @Test func `subjects that changed are forgotten soon after`() {
        var recent = RecentSubjects(cells: 64, registrationGrace: Self.registrationGrace)
        let changedAt = MonotonicTime.after(.seconds(50))
        recent.changed(hash: 5, now: changedAt)
        // A tick is 17 ms, and a few of them are allowed.
        let answer = recent.hasChanged(
            hash: 5, now: changedAt + Self.registrationGrace + .milliseconds(100))
        #expect(!answer)
    }

    @Test func `subjects that never changed are not remembered`() {
        var recent = RecentSubjects(cells: 64, registrationGrace: Self.registrationGrace)
        recent.changed(hash: 5, now: .after(.zero))
        for hash in (0..<64 as Range<UInt64>) where hash != 5 {
            let answer = recent.hasChanged(hash: hash, now: .after(.zero))
            #expect(!answer)
        }
    }

    @Test func `subjects that changed and share a cell are remembered too`() {
        var recent = RecentSubjects(cells: 8, registrationGrace: Self.registrationGrace)
        recent.changed(hash: 3, now: .after(.seconds(1)))
        recent.changed(hash: 3 + 8, now: .after(.seconds(2)))
        for hash in [3, 11] as [UInt64] {
            let answer = recent.hasChanged(hash: hash, now: .after(.seconds(3)))
            #expect(answer)
        }
    }

    @Test(arguments: [1, 100, 3000, 86_400_000])
    func `subjects that changed are worth a push until they expire, and hardly longer`(
        milliseconds: Int64
    ) throws {
        let life = Duration.milliseconds(milliseconds)
        var dice = SplitMix64(seed: 12)
        for _ in 0..<500 {
            var recent = RecentSubjects(cells: 4, registrationGrace: Self.registrationGrace)
            let changedAt = MonotonicTime(nanoseconds: Int64(dice.next(below: 1 << 60)))
            let now = changedAt + .milliseconds(Int64(dice.next(below: 900)))
            recent.changed(hash: 1, expiresAt: changedAt + life, now: changedAt)
            guard let expiry = recent.expiry(ofChange: 1, now: now) else {
                #expect(now >= changedAt + life)
                continue
            }
            #expect(expiry >= changedAt + life)
            #expect(expiry <= max(now, changedAt + life) + .milliseconds(70))
        }
    }

    @Test func `subjects that changed are worth a push until the last of their changes expires`()
        throws
    {
        for lives in [[50, 9], [9, 50], [50, 9, 9]] as [[Int64]] {
            var recent = RecentSubjects(cells: 4, registrationGrace: Self.registrationGrace)
            for (second, life) in lives.enumerated() {
                let now = MonotonicTime.after(.milliseconds(second * 500))
                recent.changed(hash: 1, expiresAt: .after(.seconds(life)), now: now)
            }
            let known = recent.expiry(ofChange: 1, now: .after(.seconds(1)))
            let expiry = try #require(known)
            #expect(expiry >= .after(.seconds(50)) && expiry < .after(.milliseconds(50_100)))
        }
    }

    @Test func `subjects that changed have expiries of their own after the grace period`() throws {
        var recent = RecentSubjects(cells: 4, registrationGrace: Self.registrationGrace)
        recent.changed(hash: 1, expiresAt: .after(.seconds(50)), now: .after(.zero))
        recent.changed(hash: 1, expiresAt: .after(.seconds(9)), now: .after(.seconds(4)))
        let known = recent.expiry(ofChange: 1, now: .after(.seconds(4)))
        let expiry = try #require(known)
        #expect(expiry < .after(.seconds(10)))
    }
}

extension RecentSubjects {
    /// For a day.
    fileprivate mutating func changed(hash: UInt64, now: MonotonicTime) {
        changed(hash: hash, expiresAt: now + .seconds(86_400), now: now)
    }

    fileprivate func hasChanged(hash: UInt64, now: MonotonicTime) -> Bool {
        expiry(ofChange: hash, now: now) != nil
    }
}
