// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

public import CLinux

/// Which units blocks take and where blocks begin, a bit each. It finds blocks that overlap, and with
/// `count` units that no block has. The rows of a table are blocks of one unit.
@usableFromInline
package struct BlockMap: ~Copyable {
    /// Of each 64 units two words, so that both are in one cache line: which are taken, and in which
    /// blocks in use begin.
    @usableFromInline var words: Column<UInt64>
    @usableFromInline package let size: Int
    /// How many units are taken.
    @usableFromInline package var count = 0

    /// - Parameter size: the units have numbers below this.
    package init(size: Int) {
        let length = 2 * (size / 64 + 1)
        words = Column(capacity: length)
        words.extend(to: length)
        self.size = size
    }

    /// Takes the units of a block in use. Returns false, and then may have taken some, if one was taken
    /// already or is too large.
    // Inlinable as it is called for each record of an index that is loaded.
    @inlinable
    package mutating func claim(_ first: UInt32, count: UInt64) -> Bool {
        guard claimFree(first, count: count) else { return false }
        words[Int(first) >> 6 &* 2 &+ 1] |= 1 << UInt64(first & 63)
        return true
    }

    /// Takes the units of a free block.
    @inlinable
    package mutating func claimFree(_ first: UInt32, count: UInt64) -> Bool {
        guard count < 1 << 40, UInt64(first) &+ count <= UInt64(size) else { return false }
        self.count &+= Int(count)
        var place = Int(first)
        var left = Int(count)
        while left > 0 {
            let bit = place & 63
            let taken = min(left, 64 &- bit)
            let mask = (taken == 64 ? UInt64.max : (1 << UInt64(taken)) &- 1) << UInt64(bit)
            if words[place >> 6 &* 2] & mask != 0 { return false }
            words[place >> 6 &* 2] |= mask
            place &+= taken
            left &-= taken
        }
        return true
    }

    /// Whether a block in use begins here.
    @inlinable
    package func begins(_ number: UInt32) -> Bool {
        Int(number) < size && words[Int(number) >> 6 &* 2 &+ 1] & (1 << UInt64(number & 63)) != 0
    }

    /// Has the processor fetch what `claim` and `begins` look at. The number may be any.
    @inlinable
    package func prefetch(_ number: UInt32) {
        CLinux_prefetch(words.elements + (Int(number) >> 6 &* 2))
    }

    /// Where the first block in use begins that does not begin below this.
    package func first(from number: UInt32) -> UInt32? {
        guard Int(number) < size else { return nil }
        var place = Int(number) >> 6
        var word = words[2 * place + 1] & (UInt64.max << UInt64(number & 63))
        while word == 0 {
            place += 1
            guard 2 * place < words.count else { return nil }
            word = words[2 * place + 1]
        }
        return UInt32(place << 6 + word.trailingZeroBitCount)
    }
}
