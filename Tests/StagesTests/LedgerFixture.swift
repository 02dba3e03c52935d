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
    /// Opens an assignment of a partition; with an epoch, not the first one.
    mutating func open(
        _ ordinal: UInt32 = 0, epoch: UInt32? = nil, startOffset: Int64
    ) -> AssignmentID {
        let id = AssignmentID(ordinal: ordinal, epoch: epoch ?? ordinal + 1)
        open(id, topic: 0, partition: Int32(ordinal), startOffset: startOffset)
        return id
    }

    /// Reads the record at `offset` and claims it.
    mutating func read(
        _ assignment: AssignmentID, _ offset: Int64, now: MonotonicTime = .after(.zero)
    ) -> OffsetClaim {
        received(assignment, offset: offset, now: now)
        return claim(assignment)
    }

    /// The committable offset once every offset is past its grace period, however long that is.
    mutating func finalCommittableOffset(_ assignment: AssignmentID) -> Int64 {
        _ = committableOffset(assignment, now: .after(.seconds(1_000_000)))
        return committableOffset(assignment, now: .after(.seconds(2_000_000)))
    }
}
