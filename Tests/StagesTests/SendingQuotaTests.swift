// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@testable internal import Delivery

@Suite struct `Sending quotas` {
    private static let start = MonotonicTime(nanoseconds: 1_000_000_000)

    /// What is earned in so many looks, each time spending all.
    private func earned(rate: Double, every interval: Duration, looks: Int) -> Int {
        var quota = SendingQuota(rate: rate, now: Self.start)
        // A new quota lets one push go.
        var total = quota.left
        quota.left = 0
        for look in 1...looks {
            quota.earn(now: Self.start + interval * look)
            total += quota.left
            quota.left = 0
        }
        return total
    }

    @Test(arguments: [0.5, 3, 7.3, 100, 12_345])
    func `a rate is earned however often it is looked at`(rate: Double) {
        for interval in [Duration.microseconds(300), .milliseconds(1), .milliseconds(70)] {
            let looks = Int(Duration.seconds(20) / interval)
            let all = earned(rate: rate, every: interval, looks: looks)
            let due = rate * (interval * looks / .seconds(1))
            // A nanosecond is lost in rounding each time.
            #expect(abs(Double(all) - due) <= max(2, rate / 1000), "every \(interval)")
        }
    }

    @Test func `what nobody spends is a tenth of a second's at most`() {
        var quota = SendingQuota(rate: 1000, now: Self.start)
        quota.earn(now: Self.start + .seconds(3600))
        #expect(quota.left == 100)
        var slow = SendingQuota(rate: 2, now: Self.start)
        slow.earn(now: Self.start + .seconds(3600))
        #expect(slow.left == 1)
        // The hour is not earned again.
        slow.left = 0
        slow.earn(now: Self.start + .seconds(3600) + .milliseconds(400))
        #expect(slow.left == 0)
    }

    @Test func `another rate keeps what is left, and earns anew`() {
        var quota = SendingQuota(rate: 1000, now: Self.start)
        quota.earn(now: Self.start + .milliseconds(50))
        let left = quota.left
        quota.adopt(rate: 500, now: Self.start + .milliseconds(50))
        #expect(quota.left == min(left, 50))
        quota.left = 0
        #expect(quota.nextAt == Self.start + .milliseconds(52))
    }

    @Test func `a part of a push that is earned stays that part under another rate`() {
        var quota = SendingQuota(rate: 2, now: Self.start)
        quota.left = 0
        // Four fifths of a push.
        let changed = Self.start + .milliseconds(400)
        quota.adopt(rate: 200, now: changed)
        quota.earn(now: changed)
        #expect(quota.left == 0)
        quota.earn(now: changed + .microseconds(900))
        #expect(quota.left == 0)
        quota.earn(now: changed + .microseconds(1100))
        #expect(quota.left == 1)
    }

    @Test func `what is unlimited stays so, and what has nothing gets nothing`() {
        for var quota in [SendingQuota.unlimited, .none] {
            let left = quota.left
            quota.earn(now: Self.start + .seconds(100))
            #expect(quota.left == left)
        }
    }
}
