// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// A partition of a table; `topic` is a position in the reader's list of topics.
package struct TablePartition: Hashable, Sendable {
    package var topic: Int
    package var number: Int32

    package init(topic: Int, number: Int32) {
        self.topic = topic
        self.number = number
    }
}

/// A partition of a table that is not read up to where it ended some time ago.
package struct TableLag: Hashable, Sendable {
    package var partition: TablePartition
    /// How old what was read is: everything written longer ago than this has been read.
    package var age: Duration
    /// How many offsets are left up to the end; nil if the end is unknown.
    package var unread: Int64?
    /// Why the last request for the end failed; nil if it did not.
    package var cause: String?

    package init(partition: TablePartition, age: Duration, unread: Int64?, cause: String?) {
        self.partition = partition
        self.age = age
        self.unread = unread
        self.cause = cause
    }
}

/// Measures how old the copy of a table is. The ends of its partitions are requested regularly;
/// once reading has reached a reported end, the copy is as new as that request. So a partition ages
/// whether Kafka delivers no records of it or its leader does not answer.
struct TableFreshness {
    private struct Row {
        /// Everything that was in the log at this time has been read.
        var freshAt: MonotonicTime
        /// A reported end that is not reached yet, and when it was requested.
        var goal: (end: Int64, askedAt: MonotonicTime)?
        var position: Int64 = 0
        var movedAt: MonotonicTime
        /// Why the last request for the end failed; nil if it did not.
        var failure: String?
    }

    private var rows: [[Row]]

    init(topics: Int) { rows = Array(repeating: [], count: topics) }

    mutating func add(partitions count: Int, of topic: Int, now: MonotonicTime) {
        precondition(count > 0, "at least one partition is added")
        rows[topic] += Array(repeating: Row(freshAt: now, movedAt: now), count: count)
    }

    /// Notes how far a partition has been read.
    ///
    /// - Parameter position: the offset of the next record.
    mutating func read(_ partition: TablePartition, to position: Int64, now: MonotonicTime) {
        let number = Int(partition.number)
        assert(
            rows[partition.topic][number].position <= position,
            "a partition's position never goes back")
        if rows[partition.topic][number].position < position {
            rows[partition.topic][number].position = position
            rows[partition.topic][number].movedAt = now
        }
        noteIfReached(partition.topic, number)
    }

    mutating func told(end: Int64, of partition: TablePartition, askedAt: MonotonicTime) {
        let number = Int(partition.number)
        rows[partition.topic][number].failure = nil
        // An older goal is kept: it is reached sooner, and a newer one would postpone that.
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

    /// The age of the topic's oldest partition.
    func age(topic: Int, now: MonotonicTime) -> Duration {
        rows[topic].map { now - $0.freshAt }.max() ?? .zero
    }

    /// The partitions that are older than this. During the replay all are old, so none is returned
    /// unless no partition has made progress for that long.
    func lags(
        olderThan ageMax: Duration, whileReplaying isReplaying: Bool, now: MonotonicTime
    ) -> [TableLag] {
        if isReplaying, rows.joined().contains(where: { now - $0.movedAt <= ageMax }) { return [] }
        var lags: [TableLag] = []
        for topic in rows.indices {
            for (number, row) in rows[topic].enumerated() where now - row.freshAt > ageMax {
                assert(
                    row.goal.map { $0.end > row.position } ?? true,
                    "an end that is awaited lies beyond the position")
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
