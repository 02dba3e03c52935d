// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Planning
internal import PushModel
internal import Testing

@Suite struct `Subjects that changed recently` {
    private static let settle = Duration.seconds(2)

    @Test func `are remembered for the whole settling time, whenever they changed`() {
        var dice = SplitMix64(seed: 11)
        for round in 0..<2_000 {
            var recent = RecentSubjects(cells: 64, settle: Self.settle)
            let hash = dice.next()
            let changedAt = MonotonicTime(nanoseconds: Int64(dice.next(below: 1 << 62)))
            recent.changed(hash: hash, now: changedAt)
            for age in [Duration.zero, .seconds(1), Self.settle] {
                let answer = recent.hasChanged(hash: hash, now: changedAt + age)
                #expect(answer, "round \(round), changed at \(changedAt), age \(age)")
            }
        }
    }

    @Test func `are remembered across the time at which the ticks begin anew`() {
        // 2^32 ticks of 2^24 ns: two years and some months after the machine has started.
        let turn = MonotonicTime(nanoseconds: 1 << 56)
        for milliseconds in stride(from: -100, through: 100, by: 3) {
            var recent = RecentSubjects(cells: 4, settle: Self.settle)
            let changedAt = turn + .milliseconds(milliseconds)
            recent.changed(hash: 1, now: changedAt)
            for age in [Duration.zero, .milliseconds(50), Self.settle] {
                let answer = recent.hasChanged(hash: 1, now: changedAt + age)
                #expect(answer, "changed \(milliseconds) ms from the turn, age \(age)")
            }
        }
    }

    @Test func `are forgotten soon after`() {
        var recent = RecentSubjects(cells: 64, settle: Self.settle)
        let changedAt = MonotonicTime.after(.seconds(50))
        recent.changed(hash: 5, now: changedAt)
        // A tick is 17 ms, and a few of them are allowed.
        let answer = recent.hasChanged(hash: 5, now: changedAt + Self.settle + .milliseconds(100))
        #expect(!answer)
    }

    @Test func `are not those that never changed`() {
        var recent = RecentSubjects(cells: 64, settle: Self.settle)
        recent.changed(hash: 5, now: .after(.zero))
        for hash in (0..<64 as Range<UInt64>) where hash != 5 {
            let answer = recent.hasChanged(hash: hash, now: .after(.zero))
            #expect(!answer)
        }
    }

    @Test func `that share a cell are remembered too`() {
        var recent = RecentSubjects(cells: 8, settle: Self.settle)
        recent.changed(hash: 3, now: .after(.seconds(1)))
        recent.changed(hash: 3 + 8, now: .after(.seconds(2)))
        for hash in [3, 11] as [UInt64] {
            let answer = recent.hasChanged(hash: hash, now: .after(.seconds(3)))
            #expect(answer)
        }
    }
}
