// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// The buckets of a histogram that metrics have, in Prometheus's format as in OTLP's: two for each
/// doubling, of the four that are counted, up to an hour.
struct PublishedBuckets {
    /// The upper bounds in seconds, ascending.
    static let bounds = buckets.compactMap { LatencyHistogram.bound(of: $0)?.seconds }

    /// The count of each bound's bucket, and last that of what is above all bounds.
    let counts: [UInt64]

    /// What takes longer is late by any measure, and each bucket is a series for each label's value.
    private static let boundMax = Duration.seconds(3600)

    /// The counted buckets that end at a published bound.
    private static let buckets = LatencyHistogram().counts.indices.filter { bucket in
        bucket % 2 == 0 && LatencyHistogram.bound(of: bucket).map { $0 <= boundMax } ?? false
    }

    init(_ histogram: LatencyHistogram) {
        var counts: [UInt64] = []
        counts.reserveCapacity(Self.buckets.count + 1)
        var below: UInt64 = 0
        var first = 0
        for bucket in Self.buckets {
            let count = histogram.counts[first...bucket].reduce(0, +)
            counts.append(count)
            below += count
            first = bucket + 1
        }
        self.counts = counts + [histogram.count - below]
    }
}
