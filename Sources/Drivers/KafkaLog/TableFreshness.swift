// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// A partition of a table, by its topic's position in the reader's list.
package struct TablePartition: Hashable, Sendable {
    package var topic: Int
    package var number: Int32

    package init(topic: Int, number: Int32) {
        self.topic = topic
        self.number = number
    }
}

/// A partition of which not everything is read that Kafka had some time ago.
package struct TableLag: Hashable, Sendable {
    package var partition: TablePartition
    /// Everything that was written before then is read.
    package var age: Duration
    /// Offsets up to the end; nil where nobody has told it.
    package var unread: Int64?
    /// Why its end is not known, or why Kafka gives no records of it.
    package var cause: String?

    package init(partition: TablePartition, age: Duration, unread: Int64?, cause: String?) {
        self.partition = partition
        self.age = age
        self.unread = unread
        self.cause = cause
    }
}

/// How old the copy of a table is. Its end is asked for again and again; when reading has come to an
/// end that was told, the copy is as new as the question. So a partition that Kafka gives nothing of,
/// and one whose leader answers nothing, grow old alike.
struct TableFreshness {
    private struct Row {
        /// All that was in the log then is read.
        var freshAt: MonotonicTime
        /// The end that was told last and is not reached, and when it was asked for.
        var goal: (end: Int64, askedAt: MonotonicTime)?
        var position: Int64 = 0
        var movedAt: MonotonicTime
        /// Of the last question.
        var failure: String?
    }

    private var rows: [[Row]]

    init(topics: Int) { rows = Array(repeating: [], count: topics) }

    mutating func add(partitions count: Int, of topic: Int, now: MonotonicTime) {
        precondition(count > 0, "partitions are added, or nothing is said")
        rows[topic] += Array(repeating: Row(freshAt: now, movedAt: now), count: count)
    }

    /// - Parameter position: the offset of the next record.
    mutating func read(_ partition: TablePartition, to position: Int64, now: MonotonicTime) {
        let number = Int(partition.number)
        assert(rows[partition.topic][number].position <= position, "reading goes back")
        if rows[partition.topic][number].position < position {
            rows[partition.topic][number].position = position
            rows[partition.topic][number].movedAt = now
        }
        noteIfReached(partition.topic, number)
    }

    mutating func told(end: Int64, of partition: TablePartition, askedAt: MonotonicTime) {
        let number = Int(partition.number)
        rows[partition.topic][number].failure = nil
        // The older goal is reached sooner, and says as much as has been read.
        if rows[partition.topic][number].goal == nil {
            rows[partition.topic][number].goal = (end, askedAt)
        }
        noteIfReached(partition.topic, number)
    }

    mutating func failed(_ cause: String, of partition: TablePartition) {
        rows[partition.topic][Int(partition.number)].failure = cause
    }

    private mutating func noteIfReached(_ topic: Int, _ number: Int) {
        guard let goal = rows[topic][number].goal, rows[topic][number].position >= goal.end else {
            return
        }
        rows[topic][number].freshAt = max(rows[topic][number].freshAt, goal.askedAt)
        rows[topic][number].goal = nil
    }

    /// The age of the oldest partition of a topic.
    func age(topic: Int, now: MonotonicTime) -> Duration {
        rows[topic].map { now - $0.freshAt }.max() ?? .zero
    }

    /// Partitions that are older than this; while a table is replayed, those of which nothing has
    /// come for so long, since then all of them are old.
    func lags(
        olderThan ageMax: Duration, whileReplaying isReplaying: Bool, now: MonotonicTime
    ) -> [TableLag] {
        if isReplaying, rows.joined().contains(where: { now - $0.movedAt <= ageMax }) { return [] }
        var lags: [TableLag] = []
        for topic in rows.indices {
            for (number, row) in rows[topic].enumerated() where now - row.freshAt > ageMax {
                assert(
                    row.goal.map { $0.end > row.position } ?? true,
                    "an end that was reached is still awaited")
                lags.append(
                    TableLag(
                        partition: TablePartition(topic: topic, number: Int32(number)),
                        age: now - row.freshAt, unread: row.goal.map { $0.end - row.position },
                        cause: row.failure))
            }
        }
        return lags
    }
}
