// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import Rdkafka

/// What the owner asks of the consumer between polls. Nothing here makes a request.
extension EventConsumer {
    /// Partitions that should have delivered something: assigned, not paused, not at their end, and
    /// silent for `silence` although the consumer was polled and its queue ran empty. librdkafka
    /// can stop fetching a partition after some errors; restarting the consumer always helps.
    package func stalledPartitions(
        now: Now, silence: Duration = .seconds(60)
    ) -> [AssignmentID] {
        partitions.assigned { row in
            !row.isPaused && !row.isMuted && !row.isAtEnd && !row.isRefused
                && polling.isSilent(since: row.activeAt, now: now.monotonic, for: silence)
        }
    }

    /// How many records of the assigned partitions are not delivered yet, as of their last fetches,
    /// without those of replayed topics. Makes no request.
    package var unread: Int64 {
        topics.indices.reduce(0) { replayed.contains($1) ? $0 : $0 + unread(topic: $1) }
    }

    /// How many records of a topic's assigned partitions are not delivered yet, as of their last
    /// fetches. Makes no request.
    package func unread(topic: Int) -> Int64 {
        guard let session else { return 0 }
        return partitions.assigned { $0.topic == topic && !$0.isAtEnd }.reduce(0) { sum, id in
            guard let row = partitions.row(id),
                let marks = session.client.cachedWatermarks(
                    topic: topics[topic], partition: row.partition)
            else { return sum }
            return sum + max(0, marks.high - (row.received + 1))
        }
    }

    /// How many records were delivered that had been delivered before in an earlier assignment,
    /// without those of replayed topics.
    package var redelivered: Int { partitions.redelivered }

    /// Whether the consumer is a member of its group, with partitions or without.
    package var isGroupMember: Bool { session?.client.isGroupMember ?? false }

    /// The partitions that are ours, by the topics' positions in the list.
    package var assignedPartitions: [(topic: Int, partition: Int32)] {
        partitions.assigned().map { id in
            let (topic, partition) = partitions.partition(of: id)
            return (topic, partition)
        }
    }

    /// How many records of the assigned partitions are not committed yet, as of their last fetches,
    /// without those of replayed topics. Makes no request.
    package var lag: Int64 {
        assignedPartitions.reduce(0) { sum, place in
            replayed.contains(place.topic)
                ? sum : sum + (lag(topic: place.topic, partition: place.partition) ?? 0)
        }
    }

    /// The distance between the stored offset and the end of the partition. Nil if the partition is
    /// not assigned or nothing was fetched yet. Makes no request.
    package func lag(topic: Int, partition: Int32) -> Int64? {
        guard let session, let row = partitions[topic, partition], row.isAssigned,
            let marks = session.client.cachedWatermarks(
                topic: topics[topic], partition: partition)
        else { return nil }
        return max(0, marks.high - row.stored)
    }
}
