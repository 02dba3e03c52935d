// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Ledger
internal import PushModel

extension MonotonicTime {
    /// A time of the tests' virtual clock.
    static func after(_ duration: Duration) -> MonotonicTime {
        MonotonicTime(nanoseconds: 0) + duration
    }
}

extension OffsetTracker {
    /// Reads the record at `offset` and makes a holder of it.
    mutating func read(
        _ track: TrackID, _ offset: Int64, now: MonotonicTime = .after(.zero)
    ) -> Hold {
        received(track, offset: offset, now: now)
        return hold(track)
    }

    /// The committable offset once every offset is past its grace period, however long that is.
    mutating func finalCommittableOffset(_ track: TrackID) -> Int64 {
        _ = committableOffset(track, now: .after(.seconds(1_000_000)))
        return committableOffset(track, now: .after(.seconds(2_000_000)))
    }
}
