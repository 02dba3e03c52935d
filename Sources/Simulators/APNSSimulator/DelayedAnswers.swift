// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A decided answer that waits for its time.
struct DelayedAnswer {
    /// Monotonic nanoseconds.
    let due: Int64
    let connection: UInt64
    let request: Int
    let serial: UInt64
    let answer: SimulatedAnswer
}

/// Answers in the order they were decided. A shorter delay does not let one overtake another.
/// Bounded by the open streams of the thread's connections.
struct DelayedAnswers {
    private var answers: [DelayedAnswer] = []
    private var first = 0

    mutating func append(_ answer: DelayedAnswer) { answers.append(answer) }

    var nextDue: Int64? { first < answers.count ? answers[first].due : nil }

    mutating func next(until now: Int64) -> DelayedAnswer? {
        guard let due = nextDue, due <= now else { return nil }
        defer {
            first += 1
            // Half of the room is used up: the move costs as much as the appends before it.
            if first * 2 > answers.count {
                answers.removeFirst(first)
                first = 0
            }
        }
        return answers[first]
    }
}
