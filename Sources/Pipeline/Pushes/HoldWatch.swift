// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Planning
internal import PushModel

/// Decides when the pipeline looks for waiting pushes that hold offsets for too long, and how many
/// it looks at.
struct HoldWatch {
    private var lapAt = MonotonicTime(nanoseconds: .min)
    private var spillAt = MonotonicTime(nanoseconds: .min)

    /// How many slots to look at now for pushes that have nearly reached `holdMax`. All are looked
    /// at within `lap`, a part of them each time.
    mutating func slotsToCheck(of slots: Int, now: MonotonicTime) -> Int {
        guard lapAt <= now else { return 0 }
        let chunk = min(slots, Self.chunk)
        lapAt = now + Self.lap * chunk / slots
        return chunk
    }

    /// Whether it is time to look for pools and routes that have more than their share.
    mutating func isSpillDue(now: MonotonicTime) -> Bool {
        guard spillAt <= now else { return false }
        spillAt = now + Self.spillInterval
        return true
    }

    /// How long a push may have waited when it is deferred. The rest of `holdMax` is for a lap of
    /// the watch and for Kafka's acknowledgement.
    static func patience(_ holdMax: Duration) -> Duration {
        holdMax - min(.seconds(2), holdMax / 5)
    }

    private static let lap = Duration.milliseconds(500)
    /// The most slots looked at in one go, which takes some hundred microseconds.
    static let chunk = 8192
    /// How many pushes of a route are kept for probes.
    static let probesKept = 4
    /// Pushes are not spilled each turn: with many apps there are thousands of routes to look at.
    private static let spillInterval = Duration.milliseconds(5)
    /// The most pushes deferred in one go for a route, or for a drain.
    static let spillMax = 1024
}
