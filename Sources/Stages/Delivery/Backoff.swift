// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// Exponential delays with full jitter, from the least to the most and no further.
///
/// With 1 s and 15 min: the first retry within 1 s, the 5th within 16 s, the 10th within 8.5 min,
/// the 11th and later within 15 min, which is what Apple asks of retries after a 5xx.
package struct Backoff: Sendable {
    package var least: Duration
    package var most: Duration

    package init(least: Duration, most: Duration) {
        self.least = least
        self.most = most
    }

    /// The upper end for this attempt, counted from 0, before jitter.
    package func ceiling(attempt: Int) -> Duration {
        // Capped before the shift, so that no attempt number overflows.
        let doublings = min(max(attempt, 0), 40)
        let (product, overflow) = least.nanoseconds.multipliedReportingOverflow(by: 1 << doublings)
        return overflow ? most : min(most, .nanoseconds(product))
    }

    /// Between a tenth of the ceiling and the ceiling: never at once, never all together.
    package func delay(attempt: Int, random: inout SplitMix64) -> Duration {
        let ceiling = ceiling(attempt: attempt).nanoseconds
        let tenth = ceiling / 10
        return .nanoseconds(tenth + Int64(random.next(below: UInt64(ceiling - tenth + 1))))
    }
}

/// A small generator with a seed of its own: what is random in a stage comes in as an argument.
package struct SplitMix64: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    package mutating func next(below bound: UInt64) -> UInt64 {
        next().multipliedFullWidth(by: max(bound, 1)).high
    }
}
