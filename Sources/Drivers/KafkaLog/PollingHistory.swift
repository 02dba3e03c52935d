// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// When the consumer was polled, which decides whether a partition is silent.
struct PollingHistory {
    /// Since when polling has gone on without a gap.
    private var steadySince = MonotonicTime(nanoseconds: 0)
    private var polledAt = MonotonicTime(nanoseconds: 0)
    private var drainedAt = MonotonicTime(nanoseconds: 0)
    /// A pause in polling that counts as a gap: longer than any sleep of the polling thread.
    private static let gapMin = Duration.seconds(5)

    mutating func polled(at now: MonotonicTime) {
        if now - polledAt > Self.gapMin { steadySince = now }
        polledAt = now
    }

    mutating func drained(at now: MonotonicTime) { drainedAt = now }

    /// Whether a partition has been silent for too long. The queue must have run empty meanwhile:
    /// otherwise the partition's records may just be behind others.
    func isSilent(since: MonotonicTime, now: MonotonicTime, for silence: Duration) -> Bool {
        let begin = max(since, steadySince)
        return now - begin >= silence && drainedAt > begin && now - polledAt <= Self.gapMin
    }
}
