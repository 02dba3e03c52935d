// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Which subjects changed within the settling time: an event is owed also to tokens whose
/// registration arrives shortly after it.
///
/// A table of times indexed by the subject's hash: 4 bytes a cell, one store per event, nothing to
/// evict. Two subjects that share a cell can make it answer yes for the wrong one, which costs one
/// superfluous "look again"; it never answers no when it should say yes.
package struct RecentSubjects: ~Copyable {
    private let cells: UnsafeMutablePointer<UInt32>
    private let mask: Int
    private let settle: Duration

    /// 16 ms a tick: 32 bits last two years.
    private static let tickShift: Int64 = 24

    /// - Parameter cells: a power of two.
    package init(cells count: Int, settle: Duration) {
        precondition(count > 0 && count & (count - 1) == 0, "cells must be a power of two")
        cells = .allocate(capacity: count)
        cells.initialize(repeating: 0, count: count)
        mask = count - 1
        self.settle = settle
    }

    deinit { cells.deallocate() }

    package mutating func changed(hash: UInt64, now: MonotonicTime) {
        cells[Int(truncatingIfNeeded: hash) & mask] = Self.tick(now)
    }

    /// Whether a subject of this hash may have changed at most `settle` ago.
    package func hasChanged(hash: UInt64, now: MonotonicTime) -> Bool {
        let seen = cells[Int(truncatingIfNeeded: hash) & mask]
        guard seen != 0 else { return false }
        // A tick is rounded down, so one more is allowed: rather once too often.
        // And one more, for the tick that is left out because it would be zero.
        let ticks = UInt32(truncatingIfNeeded: settle.nanoseconds >> Self.tickShift) &+ 2
        return Self.tick(now) &- seen <= ticks
    }

    /// Never zero, which means "never".
    private static func tick(_ time: MonotonicTime) -> UInt32 {
        max(1, UInt32(truncatingIfNeeded: time.nanoseconds >> tickShift) &+ 1)
    }
}
