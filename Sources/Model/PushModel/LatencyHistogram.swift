// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Counts durations in buckets of fixed bounds: four to each doubling, from 250 µs to about 78 hours.
/// A count costs a few instructions and no allocation, so one may be made for every push.
///
/// The error of a quantile is at most a quarter of its value.
package struct LatencyHistogram: Sendable, Equatable {
    /// The count of each bucket. The last one counts what is above all bounds.
    package private(set) var counts = [UInt64](repeating: 0, count: Self.bucketsMax + 1)
    /// The sum of all durations in nanoseconds.
    package private(set) var sum: UInt64 = 0
    package private(set) var count: UInt64 = 0

    /// The bound of the first bucket in nanoseconds.
    private static let least: UInt64 = 250_000
    private static let doublings = 30
    package static let perDoubling = 4
    private static let bucketsMax = 1 + doublings * perDoubling

    package init() {}

    /// Counts a duration. A negative one counts as zero: the clocks of two hosts may differ.
    package mutating func add(nanoseconds: Int64) { add(nanoseconds: nanoseconds, count: 1) }

    /// Counts a duration so many times.
    package mutating func add(nanoseconds: Int64, count times: UInt64) {
        let nanoseconds = UInt64(max(0, nanoseconds))
        counts[Self.bucket(of: nanoseconds)] += times
        sum &+= nanoseconds &* times
        count += times
    }

    package mutating func add(_ other: LatencyHistogram) {
        for bucket in counts.indices { counts[bucket] += other.counts[bucket] }
        sum &+= other.sum
        count += other.count
    }

    /// Returns what was counted since an earlier state of the same histogram.
    package func since(_ earlier: LatencyHistogram) -> LatencyHistogram {
        precondition(earlier.count <= count, "a histogram only grows")
        var change = self
        for bucket in counts.indices { change.counts[bucket] -= earlier.counts[bucket] }
        change.sum &-= earlier.sum
        change.count -= earlier.count
        return change
    }

    /// The bucket with the smallest bound that is not below the duration.
    private static func bucket(of nanoseconds: UInt64) -> Int {
        guard nanoseconds > least else { return 0 }
        // In quarters of the first bound. The factor must not overflow.
        let quarters = (min(nanoseconds, 1 << 60) - 1) * UInt64(perDoubling) / least
        let doubling = UInt64.bitWidth - 3 - quarters.leadingZeroBitCount
        guard doubling < doublings else { return bucketsMax }
        return 1 + doubling * perDoubling + Int(quarters >> UInt64(doubling)) - perDoubling
    }

    /// The upper bound of a bucket; nil for the last one.
    package static func bound(of bucket: Int) -> Duration? {
        guard bucket < bucketsMax else { return nil }
        guard bucket > 0 else { return .nanoseconds(Int64(least)) }
        let (doubling, step) = (bucket - 1).quotientAndRemainder(dividingBy: perDoubling)
        let base = least << UInt64(doubling)
        return .nanoseconds(Int64(base + base * UInt64(step + 1) / UInt64(perDoubling)))
    }

    /// The bound that this share of the durations does not exceed; nil while nothing was counted.
    /// - Parameter share: from 0 to 1.
    package func quantile(_ share: Double) -> Duration? {
        guard count > 0 else { return nil }
        let wanted = max(1, UInt64((share * Double(count)).rounded(.up)))
        var seen: UInt64 = 0
        for bucket in counts.indices {
            seen += counts[bucket]
            if seen >= wanted {
                return Self.bound(of: bucket) ?? Self.bound(of: Self.bucketsMax - 1)
            }
        }
        return nil
    }
}
