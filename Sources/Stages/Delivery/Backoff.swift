// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Exponential delays with jitter, which double from `least` up to `most`.
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

    /// The longest delay of this attempt, counted from 0; jitter shortens it.
    package func ceiling(attempt: Int) -> Duration {
        // Capped before the shift, so that no attempt number overflows.
        let doublings = min(max(attempt, 0), 40)
        let (product, overflow) = least.nanoseconds.multipliedReportingOverflow(by: 1 << doublings)
        return overflow ? most : min(most, .nanoseconds(product))
    }

    /// A random delay between a tenth of the ceiling and the ceiling, so that retries neither come
    /// at once nor all together.
    package func delay(attempt: Int, random: inout SplitMix64) -> Duration {
        let ceiling = ceiling(attempt: attempt).nanoseconds
        let tenth = ceiling / 10
        return .nanoseconds(tenth + Int64(random.next(below: UInt64(ceiling - tenth + 1))))
    }
}
