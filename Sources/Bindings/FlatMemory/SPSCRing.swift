// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

public import Synchronization

/// A bounded queue between exactly one producing and one consuming thread. Elements move in
/// batches: one release store and one acquire load for each batch, no lock.
@usableFromInline
package final class SPSCRing<Element: BitwiseCopyable>: @unchecked Sendable {
    // SAFETY: `tail` is written by the producer only and `head` by the consumer only; an element is
    // written before the release store that publishes it and read after the matching acquire load.
    @usableFromInline let elements: UnsafeMutablePointer<Element>
    @usableFromInline let mask: Int
    @usableFromInline let head = PaddedIndex()
    @usableFromInline let tail = PaddedIndex()

    /// - Parameter capacity: at least this many elements fit; rounded up to a power of two.
    package init(capacity: Int) {
        var size = 1
        while size < capacity { size *= 2 }
        elements = .allocate(capacity: size)
        mask = size - 1
    }

    deinit { elements.deallocate() }

    @inlinable package var capacity: Int { mask + 1 }

    /// Exact on either thread for its own side; a snapshot otherwise.
    @inlinable
    package var count: Int {
        tail.value.load(ordering: .acquiring) &- head.value.load(ordering: .acquiring)
    }

    /// Producer: appends as many of `batch` as fit and returns how many did.
    @inlinable
    package func push(_ batch: UnsafeBufferPointer<Element>) -> Int {
        let tail = self.tail.value.load(ordering: .relaxed)
        let free = capacity &- (tail &- head.value.load(ordering: .acquiring))
        let taken = min(free, batch.count)
        for index in 0..<taken { elements[(tail &+ index) & mask] = batch[index] }
        self.tail.value.store(tail &+ taken, ordering: .releasing)
        return taken
    }

    /// Producer: appends one element; false when the ring is full.
    @inlinable
    package func push(_ element: Element) -> Bool {
        let tail = self.tail.value.load(ordering: .relaxed)
        if tail &- head.value.load(ordering: .acquiring) > mask { return false }
        elements[tail & mask] = element
        self.tail.value.store(tail &+ 1, ordering: .releasing)
        return true
    }

    /// Consumer: takes up to `batch.count` elements and returns how many.
    @inlinable
    package func pop(into batch: UnsafeMutableBufferPointer<Element>) -> Int {
        let head = self.head.value.load(ordering: .relaxed)
        let available = tail.value.load(ordering: .acquiring) &- head
        let taken = min(available, batch.count)
        for index in 0..<taken { batch[index] = elements[(head &+ index) & mask] }
        self.head.value.store(head &+ taken, ordering: .releasing)
        return taken
    }
}

/// An index on a cache line of its own, so that the two threads do not share one.
@usableFromInline
package final class PaddedIndex: Sendable {
    @usableFromInline let value = Atomic<Int>(0)
    private let padding: (Int, Int, Int, Int, Int, Int) = (0, 0, 0, 0, 0, 0)
    @usableFromInline init() {}
}
