// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Slots (of pushes) or rows (of deferred ones) that wait for a time: a binary heap that knows the
/// place of each, so that one can leave early.
package struct WakeHeap: ~Copyable {
    private var heap: [Entry] = []
    /// Where in `heap` a slot stands; meaningful only for slots that rest.
    private var places: [Int] = []

    private struct Entry {
        var time: MonotonicTime
        var slot: UInt32
    }

    package init() {}

    package var count: Int { heap.count }
    package var nextDue: MonotonicTime { heap.first?.time ?? .distantFuture }

    package func time(of slot: UInt32) -> MonotonicTime { heap[places[Int(slot)]].time }

    package mutating func insert(_ slot: UInt32, at time: MonotonicTime) {
        while places.count <= Int(slot) { places.append(-1) }
        heap.append(Entry(time: time, slot: slot))
        places[Int(slot)] = heap.count - 1
        siftUp(heap.count - 1)
    }

    package mutating func popDue(now: MonotonicTime) -> UInt32? {
        guard let first = heap.first, first.time <= now else { return nil }
        remove(first.slot)
        return first.slot
    }

    package mutating func remove(_ slot: UInt32) {
        let place = places[Int(slot)]
        precondition(
            heap[place].slot == slot, "a push that leaves the heap rests in it: push \(slot)")
        places[Int(slot)] = -1
        let last = heap.removeLast()
        guard place < heap.count else { return }
        heap[place] = last
        places[Int(last.slot)] = place
        siftUp(place)
        siftDown(places[Int(last.slot)])
    }

    private mutating func siftUp(_ start: Int) {
        var place = start
        while place > 0, heap[place].time < heap[(place - 1) / 2].time {
            exchange(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
    }

    private mutating func siftDown(_ start: Int) {
        var place = start
        while true {
            var least = place
            for child in [2 * place + 1, 2 * place + 2] where child < heap.count {
                if heap[child].time < heap[least].time { least = child }
            }
            if least == place { return }
            exchange(place, least)
            place = least
        }
    }

    private mutating func exchange(_ left: Int, _ right: Int) {
        heap.swapAt(left, right)
        places[Int(heap[left].slot)] = left
        places[Int(heap[right].slot)] = right
    }

    package func checkInvariants() {
        for (place, entry) in heap.enumerated() {
            precondition(
                places[Int(entry.slot)] == place,
                "the place noted for a resting push is where it stands")
            precondition(
                place == 0 || heap[(place - 1) / 2].time <= entry.time,
                "a parent is due no later than its children")
        }
    }
}
