// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Which events are traced, and how much of it is kept.
package struct TraceSettings: Sendable {
    /// The share, from 0 to 1, of the events without a `traceparent` that are traced. One with a
    /// `traceparent` is traced if that says so.
    package var ratio: Double
    /// Names a device token to people.
    package var tokenName: @Sendable (UnsafeBufferPointer<UInt8>) -> String
    /// The most events that are traced at a time; others are not, and are counted.
    package var eventsMax = 256
    /// The most requests of one event that become spans; the others are counted in its own span.
    package var requestsMax = 16
    /// The most finished spans that wait to be taken; others are dropped, and are counted.
    package var spansMax = 2048
    /// An event that takes longer ends its span then, unfinished: one that waits for Kafka or for a
    /// deferred push must not keep others from being traced.
    package var ageMax = Duration.seconds(60)

    package init(
        ratio: Double, tokenName: @escaping @Sendable (UnsafeBufferPointer<UInt8>) -> String
    ) {
        precondition((0...1).contains(ratio), "a ratio is from 0 to 1")
        self.ratio = ratio
        self.tokenName = tokenName
    }
}

/// What became of events that were to be traced.
package struct TraceCounts: Sendable, Equatable {
    package var eventsTraced = 0
    /// Sampled events that were not traced because too many were under way.
    package var eventsLeftOut = 0
    package var spansDropped = 0

    package init() {}
}
