// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

public import CLinux

/// A growable array at a fixed address: growing never copies and never holds two copies.
///
/// Going past `capacity` ends the process with a message: a capacity is address space, chosen so
/// far above any machine's memory that only a limit of the address space or a defect reaches it.
@usableFromInline
package struct Column<Element: BitwiseCopyable>: ~Copyable, Sendable {
    @usableFromInline let memory: Reservation
    @usableFromInline package let capacity: Int
    @usableFromInline var size = 0
    /// The largest `count` so far: pages up to there are in memory.
    @usableFromInline var peak = 0

    package init(capacity: Int) {
        memory = Reservation(bytes: capacity * MemoryLayout<Element>.stride)
        self.capacity = min(capacity, memory.bytes / MemoryLayout<Element>.stride)
    }

    @inlinable package var count: Int { size }

    /// Memory in use, rounded down to whole elements.
    package var bytes: Int { peak * MemoryLayout<Element>.stride }

    @inlinable var elements: UnsafeMutablePointer<Element> {
        memory.base.assumingMemoryBound(to: Element.self)
    }

    @inlinable
    package subscript(index: Int) -> Element {
        get {
            precondition(
                UInt(bitPattern: index) < UInt(bitPattern: size),
                "a row lies below the column's count")
            return elements[index]
        }
        _modify {
            precondition(
                UInt(bitPattern: index) < UInt(bitPattern: size),
                "a row lies below the column's count")
            yield &elements[index]
        }
    }

    /// Has the processor fetch an element, of any size.
    // Inlinable, so that the size is known: without it this cost 40 instructions a push.
    @inlinable
    package func prefetch(_ index: Int) {
        let start = UnsafeRawPointer(elements + index)
        for offset in stride(from: 0, to: MemoryLayout<Element>.stride, by: 64) {
            CLinux_prefetch(start + offset)
        }
        CLinux_prefetch(start + MemoryLayout<Element>.stride - 1)
    }

    @inlinable
    package mutating func append(_ element: Element) {
        if size >= capacity { isFull() }
        elements[size] = element
        size &+= 1
        if size > peak { peak = size }
    }

    /// Makes the column at least this long without touching memory. Elements that were never
    /// written are all zero bits, in a column that was never shortened.
    package mutating func extend(to count: Int) {
        if count > capacity { isFull() }
        size = max(size, count)
        peak = max(peak, count)
    }

    /// Drops elements from the end, or adds copies of `element`.
    @inlinable
    package mutating func resize(to count: Int, filling element: Element) {
        precondition(count >= 0, "a column's count is at least 0")
        if count > capacity { isFull() }
        var index = size
        while index < count {
            elements[index] = element
            index &+= 1
        }
        size = count
        if count > peak { peak = count }
    }

    @usableFromInline
    func isFull() -> Never { OutOfSpace.isFull(memory.bytes) }

    @inlinable
    package mutating func popLast() -> Element? {
        guard size > 0 else { return nil }
        size &-= 1
        return elements[size]
    }
}

/// Hands out row numbers, the most recently freed first, so that a column of rows stays dense.
@usableFromInline
package struct FreeList: ~Copyable, Sendable {
    @usableFromInline var freed: Column<UInt32>
    @usableFromInline var next: UInt32
    @usableFromInline let first: UInt32

    /// - Parameter first: the lowest row; 1 keeps 0 for "none".
    package init(first: UInt32, capacity: Int) {
        self.first = first
        next = first
        freed = Column(capacity: capacity)
    }

    /// The number of rows in use.
    @inlinable package var count: Int { Int(next &- first) &- freed.count }

    /// One past the highest row handed out so far: a column of rows has to reach this far.
    @inlinable package var end: Int { Int(next) }

    package var bytes: Int { freed.bytes }

    @inlinable
    package mutating func take() -> UInt32 {
        if let row = freed.popLast() { return row }
        next += 1
        return next &- 1
    }

    /// - Parameter row: in use; giving one back twice would hand it out twice.
    @inlinable
    package mutating func give(_ row: UInt32) {
        precondition(row >= first && row < next, "a row that is given back was taken")
        freed.append(row)
    }
}
