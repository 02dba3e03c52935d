// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
package import Rdkafka

/// A partition that is ours and cannot be read at the moment. It is asked for again by itself.
package struct UnavailablePartition: Hashable, Sendable {
    /// The position of the topic in the list of subscribed topics.
    package let topic: Int
    package let partition: Int32
    package let cause: RdkafkaError

    package init(topic: Int, partition: Int32, cause: RdkafkaError) {
        self.topic = topic
        self.partition = partition
        self.cause = cause
    }
}

/// Remembers which partitions cannot be read, and when to say so: not of a leader election that is
/// over in a moment, and again as long as it lasts. Bounded by the partitions that are ours.
struct UnavailablePartitions {
    private struct Place: Hashable {
        var topic: Int
        var partition: Int32
    }

    private struct Row {
        var cause: RdkafkaError
        var tellAt: MonotonicTime
        var isTold = false
    }

    private var rows: [Place: Row] = [:]

    private static let patience = Duration.seconds(3)
    private static let interval = Duration.seconds(60)

    var isEmpty: Bool { rows.isEmpty }
    var count: Int { rows.count }

    mutating func note(_ topic: Int, _ partition: Int32, _ cause: RdkafkaError, now: MonotonicTime)
    {
        let place = Place(topic: topic, partition: partition)
        guard let row = rows[place] else {
            rows[place] = Row(cause: cause, tellAt: now + Self.patience)
            return
        }
        // What was told of is another matter now.
        if row.cause.code != cause.code, row.isTold { rows[place]!.tellAt = now }
        rows[place]!.cause = cause
    }

    /// It can be read, or is not ours any more.
    /// - Returns: whether it had been told of.
    @discardableResult
    mutating func forget(_ topic: Int, _ partition: Int32) -> Bool {
        rows.removeValue(forKey: Place(topic: topic, partition: partition))?.isTold ?? false
    }

    mutating func removeAll() { rows.removeAll() }

    /// Those that are to be told of now: all of them as soon as one of them is due.
    mutating func takeDue(now: MonotonicTime) -> [UnavailablePartition] {
        guard rows.values.contains(where: { $0.tellAt <= now }) else { return [] }
        var due: [UnavailablePartition] = []
        for (place, row) in rows {
            rows[place]!.tellAt = now + Self.interval
            rows[place]!.isTold = true
            due.append(
                UnavailablePartition(
                    topic: place.topic, partition: place.partition, cause: row.cause))
        }
        return due.sorted { ($0.topic, $0.partition) < ($1.topic, $1.partition) }
    }
}
