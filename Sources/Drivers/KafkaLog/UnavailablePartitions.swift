// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
package import Rdkafka

/// An assigned partition that cannot be read at the moment. The consumer retries it by itself.
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

/// Records which partitions cannot be read and when to report them: not during a short leader
/// election, and then once a minute. Bounded by the number of assigned partitions.
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
        // The cause that was reported has changed, so it is reported again at once.
        if row.cause.code != cause.code, row.isTold { rows[place]!.tellAt = now }
        rows[place]!.cause = cause
    }

    /// Forgets a partition that can be read again or is no longer assigned.
    /// - Returns: whether it had been reported.
    @discardableResult
    mutating func forget(_ topic: Int, _ partition: Int32) -> Bool {
        rows.removeValue(forKey: Place(topic: topic, partition: partition))?.isTold ?? false
    }

    mutating func removeAll() { rows.removeAll() }

    /// The partitions to report now: all of them once any of them is due.
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
