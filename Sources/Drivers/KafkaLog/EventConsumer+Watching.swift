// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel
internal import Rdkafka

/// What the owner asks of the consumer between polls. Nothing here makes a request.
extension EventConsumer {
    /// Partitions that should have delivered something: assigned, not paused, not at their end, and
    /// silent for `silence` although the consumer was polled and its queue ran empty. librdkafka
    /// can stop fetching a partition after some errors; restarting the consumer always helps, but where
    /// there is no broker to fetch from.
    package func stalledPartitions(
        now: Now, silence: Duration = .seconds(60)
    ) -> [AssignmentID] {
        partitions.assigned { row in
            !row.isPaused && !row.isMuted && !row.isAtEnd && !row.isRefused && !row.isOutOfReach
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

    /// How long the member has waited for the group to say which partitions are its own, and has read
    /// nothing; nil if it does not wait.
    package func groupWait(now: Now) -> Duration? { groupWait.lasted(now: now.monotonic) }

    /// The topics that are subscribed to and that Kafka does not know.
    package var missingTopics: [String] { missing.sorted().map { topics[$0] } }

    /// Looks which partitions stand before records that their brokers do not give out. To be called
    /// every few seconds. Makes no request.
    package func watchTransactions(now: Now) {
        guard let session else { return }
        for id in partitions.assigned() {
            guard let row = partitions.row(id) else { continue }
            let marks = session.client.cachedWatermarks(
                topic: topics[row.topic], partition: row.partition)
            let since = row.withheld(high: marks?.high, now: now.monotonic)
            if since != row.withheldSince { partitions.update(id) { $0.withheldSince = since } }
        }
    }

    /// The partitions of which records have not been given out for `patience`, as of the last
    /// `watchTransactions`: they belong to transactions that are not over, or follow one. The one that
    /// has stood longest comes first.
    package func openTransactions(
        now: Now, patience: Duration = .seconds(10)
    ) -> [OpenTransaction] {
        partitions.assigned().compactMap { id -> OpenTransaction? in
            guard let row = partitions.row(id), let since = row.withheldSince,
                // The records may have come and wait to be polled.
                polling.isSilent(since: since, now: now.monotonic, for: patience)
            else { return nil }
            return OpenTransaction(
                topic: topics[row.topic], partition: row.partition, offset: row.readableEnd,
                lasted: now.monotonic - since)
        }.sorted { $0.lasted > $1.lasted }
    }

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

/// A partition whose next records the brokers have and do not give out.
package struct OpenTransaction: Hashable, Sendable {
    package var topic: String
    package var partition: Int32
    /// The offset of the first record that is not given out.
    package var offset: Int64
    /// How long it has not been.
    package var lasted: Duration

    package init(topic: String, partition: Int32, offset: Int64, lasted: Duration) {
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.lasted = lasted
    }
}

extension PartitionTable.Row {
    /// Since when the broker has records that it does not give out; nil if there are none.
    ///
    /// librdkafka reports the end of what may be read, and the broker's answers carry the end of what
    /// there is. They differ where a transaction is not over. A partition that is not fetched from says
    /// nothing.
    ///
    /// - Parameter high: the offset after the last record that the broker has; nil if unknown.
    func withheld(high: Int64?, now: MonotonicTime) -> MonotonicTime? {
        let isFetched = isAtEnd && !isPaused && !isMuted && !isHeld
        guard let high, isFetched, high > readableEnd else { return nil }
        return withheldSince ?? now
    }
}
