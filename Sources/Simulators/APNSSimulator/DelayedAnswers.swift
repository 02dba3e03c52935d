// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// An answer that is decided and will be sent later.
struct DelayedAnswer {
    /// When to send it, in monotonic nanoseconds.
    let due: Int64
    let connection: UInt64
    let request: Int
    let serial: UInt64
    let answer: SimulatedAnswer
    /// Set by `DelayedAnswers`, so that of two answers due at the same time the one decided first
    /// is sent first.
    fileprivate var order: UInt64 = 0

    init(due: Int64, connection: UInt64, request: Int, serial: UInt64, answer: SimulatedAnswer) {
        self.due = due
        self.connection = connection
        self.request = request
        self.serial = serial
        self.answer = answer
    }

    fileprivate func precedes(_ other: DelayedAnswer) -> Bool {
        (due, order) < (other.due, other.order)
    }
}

/// A binary heap of answers in the order they are due. A client that resets streams leaves answers
/// behind, so a caller that appends must check `isCrowded` and purge.
struct DelayedAnswers {
    private var heap: [DelayedAnswer] = []
    private var appended: UInt64 = 0
    /// The count at which to purge: twice what the last purge left, so that purging costs amortised
    /// constant time per append.
    private var crowd = 4096

    var nextDue: Int64? { heap.first?.due }
    var isCrowded: Bool { heap.count >= crowd }

    mutating func append(_ answer: DelayedAnswer) {
        var answer = answer
        answer.order = appended
        appended += 1
        heap.append(answer)
        var place = heap.count - 1
        while place > 0, heap[place].precedes(heap[(place - 1) / 2]) {
            heap.swapAt(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
    }

    mutating func next(until now: Int64) -> DelayedAnswer? {
        guard let due = nextDue, due <= now else { return nil }
        heap.swapAt(0, heap.count - 1)
        let first = heap.removeLast()
        sink(from: 0)
        assert(
            nextDue.map { first.due <= $0 } ?? true,
            "answers leave in the order of their due times")
        return first
    }

    mutating func purge(keeping isWanted: (DelayedAnswer) -> Bool) {
        heap.removeAll { !isWanted($0) }
        for place in (0..<heap.count / 2).reversed() { sink(from: place) }
        crowd = max(4096, heap.count * 2)
    }

    private mutating func sink(from start: Int) {
        var place = start
        while true {
            var least = place
            for child in 2 * place + 1...2 * place + 2
            where child < heap.count && heap[child].precedes(heap[least]) {
                least = child
            }
            if least == place { return }
            heap.swapAt(place, least)
            place = least
        }
    }
}
