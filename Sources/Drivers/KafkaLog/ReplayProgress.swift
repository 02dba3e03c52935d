// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Which partitions of some topics have been read to their ends once.
struct ReplayProgress {
    /// By topic, then by partition.
    private var ended: [[Bool]]
    /// Partitions that have not.
    private var behind = 0
    /// Every partition that was known then had been. Stays true: a partition that is added later is
    /// followed like the others, and is nothing to wait for.
    private(set) var isCaughtUp = false

    init(topics: Int) { ended = Array(repeating: [], count: topics) }

    mutating func add(partitions: Int, of topic: Int) {
        precondition(partitions > 0, "partitions are added, or nothing is said")
        ended[topic] += Array(repeating: false, count: partitions)
        behind += partitions
    }

    /// May be said again.
    mutating func reachedEnd(topic: Int, partition: Int) {
        guard !ended[topic][partition] else { return }
        ended[topic][partition] = true
        behind -= 1
        precondition(behind >= 0, "more partitions have ended than there are")
        if behind == 0 { isCaughtUp = true }
    }

    /// How many partitions of the topic have been read to their ends.
    func caughtUp(topic: Int) -> Int { ended[topic].count(where: \.self) }
}
