// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Records which partitions of some topics have been read to their ends once.
struct ReplayProgress {
    /// Whether each partition was read to its end; by topic, then by partition.
    private var ended: [[Bool]]
    /// How many partitions have not been read to their ends.
    private var behind = 0
    /// Whether all partitions known at one time had been read to their ends. It stays true: nothing
    /// waits for a partition that is added later.
    private(set) var isCaughtUp = false

    init(topics: Int) { ended = Array(repeating: [], count: topics) }

    mutating func add(partitions: Int, of topic: Int) {
        precondition(partitions > 0, "at least one partition is added")
        ended[topic] += Array(repeating: false, count: partitions)
        behind += partitions
    }

    /// Notes that a partition was read to its end. Repeated calls have no effect.
    mutating func reachedEnd(topic: Int, partition: Int) {
        guard !ended[topic][partition] else { return }
        ended[topic][partition] = true
        behind -= 1
        precondition(behind >= 0, "no more partitions reach their ends than there are")
        if behind == 0 { isCaughtUp = true }
    }

    /// How many partitions of the topic have been read to their ends.
    func caughtUp(topic: Int) -> Int { ended[topic].count(where: \.self) }
}
