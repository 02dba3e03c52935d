// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The latest latencies, from which percentiles are computed.
struct LatencyWindow {
    private struct Sample {
        var at: Int64
        var latency: Duration
    }

    private var samples: [Sample] = []
    /// The position of the next sample once the window is full.
    private var next = 0

    /// The most samples: at 2,000 a second, those of the last 8 s.
    private static let samplesMax = 16_384

    /// Adds a latency.
    ///
    /// - Parameter at: nanoseconds since 1970.
    mutating func add(_ latency: Duration, at: Int64) {
        let sample = Sample(at: at, latency: latency)
        if samples.count < Self.samplesMax {
            samples.append(sample)
        } else {
            samples[next] = sample
            next = (next + 1) % Self.samplesMax
        }
    }

    /// The nearest-rank percentiles of the samples since a time; nil if there are none.
    func percentiles(_ wanted: [Int], since: Int64) -> [Duration]? {
        let recent = samples.lazy.filter { $0.at >= since }.map(\.latency).sorted()
        guard !recent.isEmpty else { return nil }
        return wanted.map { recent[max((recent.count * $0 + 99) / 100, 1) - 1] }
    }
}
