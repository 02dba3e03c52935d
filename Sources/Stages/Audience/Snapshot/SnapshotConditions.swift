// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// What Kafka says of a topic whose records are in a snapshot.
package struct SnapshotTopic: Equatable, Sendable {
    package var name: String
    /// The first offset in the log of each partition, and the one after the last.
    package var logs: [Range<Int64>]
    /// For how long Kafka keeps a tombstone after it has compacted the log; nil where it does not say.
    package var tombstonesLast: Duration?
    /// Whether the broker gives records their time; nil where it does not say.
    package var hasBrokerTimes: Bool?

    package init(
        name: String, logs: [Range<Int64>], tombstonesLast: Duration?, hasBrokerTimes: Bool?
    ) {
        self.name = name
        self.logs = logs
        self.tombstonesLast = tombstonesLast
        self.hasBrokerTimes = hasBrokerTimes
    }
}

/// Under what a snapshot may be read, and the records after it, instead of everything.
///
/// Compaction removes a tombstone once it is `delete.retention.ms` old. Whoever reads on from an older
/// place never hears that a phone was removed, and pushes to it for ever. So a snapshot must be younger
/// than that for as long as its tail is read; it is begun with at half of it, which leaves the other half
/// to slow reading and wrong clocks.
package struct SnapshotConditions: Sendable {
    /// The ID of the Kafka cluster; nil where it does not say.
    package var cluster: String?
    /// Registrations and suppressions, in this order.
    package var topics: [SnapshotTopic]
    package var routing: StableHash.Value
    /// By this machine's clock.
    package var now: WallTime

    package init(
        cluster: String?, topics: [SnapshotTopic], routing: StableHash.Value, now: WallTime
    ) {
        self.cluster = cluster
        self.topics = topics
        self.routing = routing
        self.now = now
    }

    /// How far this machine's clock may be behind the brokers'.
    package static let clockLagMax = Duration.seconds(300)

    /// The age below which a snapshot may be begun with.
    package static func ageMax(tombstonesLast: Duration) -> Duration { tombstonesLast / 2 }

    /// The age at which the records after the snapshot must have been read.
    package static func endOfReading(tombstonesLast: Duration) -> Duration {
        tombstonesLast * 3 / 4
    }

    /// For how long the tombstones of all topics last; nil where Kafka does not say of one.
    package var tombstonesLast: Duration? {
        let durations = topics.map(\.tombstonesLast)
        return durations.contains(nil) ? nil : durations.compactMap(\.self).min()
    }

    /// Why nobody can say at the moment whether the snapshot may be used; nil if it can be said. That is no
    /// fault of the snapshot. Part of a sentence whose subject is the snapshot.
    package func doubt(of stamp: SnapshotStamp) -> String? {
        guard cluster != nil else { return "the cluster that it is of cannot be compared" }
        guard tombstonesLast != nil else {
            return "delete.retention.ms of its topics is not known: give this user the right "
                + "DESCRIBE_CONFIGS on them"
        }
        let age = now - stamp.asOf
        guard age >= .zero - Self.clockLagMax else {
            return
                "it is from the future: this machine's clock is \(Self.text(.zero - age)) behind "
                + "the brokers'"
        }
        // The age is that of a registration: suppressions have the time of the worker that wrote them.
        if let first = topics.first, first.hasBrokerTimes == false {
            return "the times in \(first.name) are its producers', so nobody knows how old it is"
        }
        return nil
    }

    /// Why the snapshot may not be used, now or later; nil if it may, where there is no `doubt`. Part of a
    /// sentence whose subject is the snapshot.
    package func refusal(of stamp: SnapshotStamp) -> String? {
        guard stamp.cluster == cluster else { return "it is of another Kafka cluster" }
        guard stamp.routing == routing else {
            return "it was made with other apps, environments or settings"
        }
        guard stamp.tables.map(\.topic) == topics.map(\.name) else {
            return "it is of other topics"
        }
        for (table, topic) in zip(stamp.tables, topics) {
            if let refusal = Self.refusal(of: table, in: topic) { return refusal }
        }
        return refusal(ofAgeOf: stamp)
    }

    private static func refusal(
        of table: SnapshotStamp.Table, in topic: SnapshotTopic
    ) -> String? {
        guard table.partitions.count == topic.logs.count else {
            return "\(topic.name) has \(topic.logs.count) partitions, and had "
                + "\(table.partitions.count)"
        }
        for (number, position) in table.partitions.enumerated() {
            let log = topic.logs[number]
            guard position.next <= log.upperBound else {
                return "\(topic.name) ends before it in partition \(number)"
            }
            // Reading begins with the last record, by which the log is recognised.
            guard position.last?.offset ?? position.next >= log.lowerBound else {
                return "\(topic.name) has lost records after it in partition \(number)"
            }
        }
        return nil
    }

    private func refusal(ofAgeOf stamp: SnapshotStamp) -> String? {
        guard let lasted = stamp.tombstonesLast else {
            return "delete.retention.ms of its topics was not known when it was written"
        }
        let lasting = min(lasted, tombstonesLast ?? lasted)
        let (age, most) = (now - stamp.asOf, Self.ageMax(tombstonesLast: lasting))
        guard age < most else {
            return "it is \(Self.text(age)) old, and may be \(Self.text(most)): half of "
                + "delete.retention.ms"
        }
        return nil
    }

    private static func text(_ duration: Duration) -> String {
        let seconds = duration.components.seconds
        return seconds < 7200 ? "\(seconds) s" : "\(seconds / 3600) h"
    }
}
