// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import PushModel

/// What a delivery thread keeps of each push it has. There is one per slot of the slab, at a
/// fixed address, so that nothing is allocated or looked up per push.
struct SlotState: BitwiseCopyable {
    /// The links of the list that the push is in; see `SlotList`.
    var next = SlotList.none
    var previous = SlotList.none
    /// How often the push was queued again because it had not been processed.
    var resends: UInt16 = 0
    /// Whether it lets others go first (`PatientShare`).
    var isPatient = false
    /// When the push was taken from the port.
    var takenAt = MonotonicTime(nanoseconds: 0)
    /// When the push began to wait in its pool, or when it was given to a connection.
    var since = MonotonicTime(nanoseconds: 0)
}

/// A list of slots, linked through their states, oldest first: the pushes that wait in a pool, or
/// those in flight on a connection. A slot is in one list at a time.
struct SlotList {
    static let none = PushSlot.max

    private(set) var first = SlotList.none
    private var last = SlotList.none
    private(set) var count = 0

    var isEmpty: Bool { first == Self.none }

    mutating func append(_ slot: PushSlot, _ states: UnsafeMutablePointer<SlotState>) {
        assert(
            slot != Self.none && slot != last,
            "a slot that is added is a real one and not in the list yet")
        states[Int(slot)].previous = last
        states[Int(slot)].next = Self.none
        if last == Self.none { first = slot } else { states[Int(last)].next = slot }
        last = slot
        count &+= 1
    }

    mutating func prepend(_ slot: PushSlot, _ states: UnsafeMutablePointer<SlotState>) {
        assert(
            slot != Self.none && slot != first,
            "a slot that is added is a real one and not in the list yet")
        states[Int(slot)].previous = Self.none
        states[Int(slot)].next = first
        if first == Self.none { last = slot } else { states[Int(first)].previous = slot }
        first = slot
        count &+= 1
    }

    mutating func remove(_ slot: PushSlot, _ states: UnsafeMutablePointer<SlotState>) {
        let (next, previous) = (states[Int(slot)].next, states[Int(slot)].previous)
        assert(count > 0, "a slot is removed only from a list that is not empty")
        assert(
            previous != Self.none || first == slot,
            "a slot without one before it is its list's first")
        assert(next != Self.none || last == slot, "a slot without one after it is its list's last")
        if previous == Self.none { first = next } else { states[Int(previous)].next = next }
        if next == Self.none { last = previous } else { states[Int(next)].previous = previous }
        count &-= 1
        assert((count == 0) == isEmpty, "a list's count is 0 exactly when it has no first slot")
    }

    mutating func popFirst(_ states: UnsafeMutablePointer<SlotState>) -> PushSlot? {
        guard first != Self.none else { return nil }
        let slot = first
        remove(slot, states)
        return slot
    }

    mutating func popLast(_ states: UnsafeMutablePointer<SlotState>) -> PushSlot? {
        guard last != Self.none else { return nil }
        let slot = last
        remove(slot, states)
        return slot
    }
}
