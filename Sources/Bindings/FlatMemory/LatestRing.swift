// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The elements that were appended last. To append is a store; the oldest element makes room.
@usableFromInline
package struct LatestRing<Element: BitwiseCopyable>: ~Copyable, @unchecked Sendable {
    // SAFETY: not copyable, so whoever holds it is the one owner of the memory that `next` and `end`
    // point into.
    private let memory: Reservation
    /// Where the next element goes. A pointer rather than a number saved 2 of 16 instructions.
    @usableFromInline var next: UnsafeMutablePointer<Element>
    @usableFromInline let first: UnsafeMutablePointer<Element>
    @usableFromInline let end: UnsafeMutablePointer<Element>
    /// Whether every place has an element.
    @usableFromInline var isFull = false

    package init(capacity: Int) {
        precondition(capacity > 0, "a ring has room for at least one element")
        let bytes = capacity * MemoryLayout<Element>.stride
        memory = Reservation(bytes: bytes)
        precondition(
            memory.bytes >= bytes, "the address space that was reserved holds the whole ring")
        first = memory.base.assumingMemoryBound(to: Element.self)
        next = first
        end = first + capacity
    }

    /// The memory of a full ring.
    package var bytes: Int { memory.bytes }

    @inlinable
    package mutating func append(_ element: Element) {
        next.pointee = element
        next += 1
        if next == end { startAgain() }
    }

    @usableFromInline
    mutating func startAgain() {
        next = first
        isFull = true
    }

    /// Calls `body` with each element, in no particular order.
    package func forEach(_ body: (Element) -> Void) {
        var place = first
        while place < (isFull ? end : next) {
            body(place.pointee)
            place += 1
        }
    }
}
