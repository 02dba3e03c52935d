// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Which subjects changed within the last `registrationGrace`: an event is also owed to tokens
/// whose registration arrives within that time after it.
///
/// A table indexed by the subject's hash: 8 bytes a cell, which say when it changed and until when
/// that is worth a push; one store per event, nothing to evict. Two subjects that share a cell can
/// make it answer yes for the wrong one, which costs one superfluous "look again", and of two
/// expiries it keeps the later one; it never answers no when it should say yes.
package struct RecentSubjects: ~Copyable {
    /// The upper half of a cell is the tick of the change, the lower half the number of ticks for
    /// which it is worth a push.
    private let cells: UnsafeMutablePointer<UInt64>
    private let mask: Int
    /// The grace period in ticks, plus two: one because a tick is rounded down, so that rounding
    /// errs towards a duplicate, never a loss, and one for the tick that is left out because it would be 0.
    private let graceTicks: UInt32

    /// 16 ms a tick: 32 bits last two years.
    private static let tickShift: Int64 = 24

    /// - Parameter cells: a power of two.
    package init(cells count: Int, registrationGrace: Duration) {
        precondition(count > 0 && count & (count - 1) == 0, "the count of cells is a power of two")
        cells = .allocate(capacity: count)
        cells.initialize(repeating: 0, count: count)
        mask = count - 1
        graceTicks =
            UInt32(truncatingIfNeeded: registrationGrace.nanoseconds >> Self.tickShift) &+ 2
    }

    deinit { cells.deallocate() }

    package var bytes: Int { (mask + 1) * MemoryLayout<UInt64>.stride }

    package mutating func changed(
        hash: UInt64, expiresAt: MonotonicTime, now: MonotonicTime
    ) {
        let cell = Int(truncatingIfNeeded: hash) & mask
        let tick = Self.tick(now)
        var life = Self.life(until: expiresAt, now: now)
        let age = tick &- UInt32(truncatingIfNeeded: cells[cell] >> 32)
        let known = UInt32(truncatingIfNeeded: cells[cell])
        // Both are owed: the later expiry stands for them.
        if age <= graceTicks, known > age { life = max(life, known - age) }
        cells[cell] = UInt64(tick) << 32 | UInt64(life)
    }

    /// Until when a change of a subject of this hash, at most `registrationGrace` ago, is worth a
    /// push; never too early. Nil if there was none, or if it is worth none any more.
    package func expiry(ofChange hash: UInt64, now: MonotonicTime) -> MonotonicTime? {
        let cell = cells[Int(truncatingIfNeeded: hash) & mask]
        guard cell != 0 else { return nil }
        let age = Self.tick(now) &- UInt32(truncatingIfNeeded: cell >> 32)
        let life = UInt32(truncatingIfNeeded: cell)
        guard age <= graceTicks, life > age else { return nil }
        return MonotonicTime(nanoseconds: now.nanoseconds + Int64(life - age) << Self.tickShift)
    }

    /// The number of ticks until a time at most two years ahead, rounded up, plus two: one because
    /// the tick of the change is rounded down, and one for the tick that is left out.
    private static func life(until time: MonotonicTime, now: MonotonicTime) -> UInt32 {
        let left = max(0, time.nanoseconds &- now.nanoseconds)
        return UInt32(truncatingIfNeeded: left >> tickShift) &+ 3
    }

    /// The tick of a time; never 0, which means "never".
    private static func tick(_ time: MonotonicTime) -> UInt32 {
        max(1, UInt32(truncatingIfNeeded: time.nanoseconds >> tickShift) &+ 1)
    }
}
