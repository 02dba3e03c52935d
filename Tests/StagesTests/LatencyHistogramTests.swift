// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@Suite struct `Latency histogram` {
    @Test func `each duration is counted in the first bucket whose bound is not below it`() throws {
        var samples: [Int64] = [
            0, 1, 249_999, 250_000, 250_001, 312_500, 312_501, 500_000, 500_001,
        ]
        var random = SplitMix64(seed: 7)
        for _ in 0..<20_000 {
            samples.append(Int64(random.next() >> UInt64(14 + random.next() % 50)))
        }
        for nanoseconds in samples {
            var histogram = LatencyHistogram()
            histogram.add(nanoseconds: nanoseconds)
            let bucket = try #require(histogram.counts.firstIndex(of: 1))
            if let bound = LatencyHistogram.bound(of: bucket) {
                #expect(.nanoseconds(nanoseconds) <= bound, "\(nanoseconds) in \(bucket)")
            }
            if bucket > 0, let below = LatencyHistogram.bound(of: bucket - 1) {
                #expect(.nanoseconds(nanoseconds) > below, "\(nanoseconds) in \(bucket)")
            }
        }
    }

    @Test func `a duration may be counted many times at once`() {
        var (one, many) = (LatencyHistogram(), LatencyHistogram())
        for _ in 0..<5 { one.add(nanoseconds: 3_000_000) }
        many.add(nanoseconds: 3_000_000, count: 5)
        #expect(one == many && many.count == 5)
    }

    @Test func `a quantile is at most a quarter above the true one`() throws {
        var histogram = LatencyHistogram()
        for millisecond in 1...1000 { histogram.add(nanoseconds: Int64(millisecond) * 1_000_000) }
        for (share, truth) in [(0.5, 500), (0.99, 990), (1, 1000)] {
            let found = try #require(histogram.quantile(share))
            #expect(found >= .milliseconds(truth) && found <= .milliseconds(truth * 5 / 4))
        }
        #expect(LatencyHistogram().quantile(0.5) == nil)
    }

    @Test func `a clock that was set back counts as no time at all`() {
        var histogram = LatencyHistogram()
        histogram.add(nanoseconds: -5)
        #expect(histogram.counts[0] == 1 && histogram.sum == 0)
    }

    @Test func `what was counted since an earlier state is the difference`() {
        var histogram = LatencyHistogram()
        histogram.add(nanoseconds: 1_000_000)
        let earlier = histogram
        histogram.add(nanoseconds: 3_000_000)
        let change = histogram.since(earlier)
        #expect(change.count == 1 && change.sum == 3_000_000)
        var sum = earlier
        sum.add(change)
        #expect(sum == histogram)
    }
}
