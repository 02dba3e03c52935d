// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import PushModel
internal import Testing

@Suite struct `The budget of connects` {
    private func at(_ seconds: Double) -> MonotonicTime {
        MonotonicTime(nanoseconds: Int64(seconds * 1e9))
    }

    @Test func `the connect budget allows a burst, then so many a second, and says when to ask`()
        throws
    {
        let budget = ConnectBudget(perSecond: 2, burst: 3)
        for _ in 0..<3 { #expect(budget.take(at: at(100)) == nil) }
        let again = try #require(budget.take(at: at(100)))
        #expect(again == at(100.5))
        #expect(budget.take(at: again) == nil)
        #expect(budget.take(at: again) == at(101))
    }

    @Test func `the connect budget saves no more than a burst`() {
        let budget = ConnectBudget(perSecond: 10, burst: 2)
        for _ in 0..<2 { #expect(budget.take(at: at(3600)) == nil) }
        #expect(budget.take(at: at(3600)) != nil)
    }
}
