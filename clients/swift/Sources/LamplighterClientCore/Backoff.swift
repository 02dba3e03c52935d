// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation

/// How long to wait before the next try, in seconds: exponential with full jitter, so that a million
/// apps do not come back at the same moment after an outage of the registrar.
public struct Backoff: Sendable {
    public var first: TimeInterval
    public var longest: TimeInterval
    /// The most that a `Retry-After` is obeyed for.
    public var retryAfterMax: TimeInterval

    public init(
        first: TimeInterval = 1, longest: TimeInterval = 300, retryAfterMax: TimeInterval = 3600
    ) {
        self.first = first
        self.longest = longest
        self.retryAfterMax = retryAfterMax
    }

    /// - Parameters:
    ///   - failures: From 1.
    ///   - random: From 0 to 1.
    func delay(failures: Int, random: Double) -> TimeInterval {
        min(longest, first * pow(2, Double(min(failures, 30) - 1))) * random
    }

    /// `Retry-After` as the earliest moment; the jitter is on top.
    func delay(retryAfter: TimeInterval, random: Double) -> TimeInterval {
        min(retryAfter, retryAfterMax) + first * random
    }
}
