// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// A life in the unit of wall time. Adding a `Duration` divides 128 bits, which was 30 of the 40 ns
/// that a key-only record costs.
struct Milliseconds {
    let count: Int64

    init(count: Int64) { self.count = count }
    init(_ duration: Duration) {
        assert(duration > .zero, "a duration in an event is above zero")
        count = duration.nanoseconds / 1_000_000
    }

    static func + (time: WallTime, life: Milliseconds) -> WallTime {
        WallTime(milliseconds: time.milliseconds &+ life.count)
    }
}
