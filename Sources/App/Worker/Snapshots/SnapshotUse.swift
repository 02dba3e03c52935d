// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import KafkaLog
internal import Pipeline
internal import PushModel

/// What the index was begun with, and what it takes to write it.
struct SnapshotUse {
    let store: SnapshotStore
    /// Of the snapshot that the index was begun with; nil for a whole replay.
    private(set) var begunWith: SnapshotStamp?
    /// How old that was.
    private(set) var age: Duration?
    /// When the records after it must have been read.
    private var readBefore: WallTime?

    init(store: SnapshotStore) { self.store = store }

    mutating func began(with stamp: SnapshotStamp, under conditions: SnapshotConditions) {
        begunWith = stamp
        age = max(.zero, conditions.now - stamp.asOf)
        readBefore = conditions.tombstonesLast.map {
            stamp.asOf + SnapshotConditions.endOfReading(tombstonesLast: $0)
        }
    }

    /// Why the index cannot be trusted although everything was read; nil if it can.
    ///
    /// - Parameter now: by this machine's clock; the brokers' counts where it is ahead.
    func lateness(_ tables: TableReader, now: WallTime) -> String? {
        guard let readBefore else { return nil }
        let newest = tables.newestTime(topic: WorkerPlan.registrationsTable) ?? now
        guard max(now, newest) >= readBefore else { return nil }
        return "reading what was written since has taken so long that Kafka may have removed "
            + "tombstones of it"
    }

    /// Of the index as it is; a fault if it should not be written.
    func stamp(
        _ plan: WorkerPlan, _ tables: TableReader, cluster: String?, now: Now
    ) -> Result<SnapshotStamp, NotNow> {
        guard let cluster else { return .failure(NotNow(reason: "Kafka did not tell its cluster")) }
        var positions: [SnapshotStamp.Table] = []
        for (topic, name) in plan.snapshotTopics.enumerated() {
            guard tables.failure == nil, let all = tables.positions(topic: topic) else {
                return .failure(NotNow(reason: "it is not complete"))
            }
            positions.append(SnapshotStamp.Table(topic: name, partitions: all))
        }
        let isBehind = tables.lags(now: now).contains { $0.partition.topic < positions.count }
        guard !isBehind else { return .failure(NotNow(reason: "it is behind Kafka")) }
        // The latest record may be younger than what another partition has been read to.
        let newest = tables.newestTime(topic: WorkerPlan.registrationsTable).map {
            $0 + (.zero - TableReader.ageMax)
        }
        guard let asOf = [newest, begunWith?.asOf].compactMap(\.self).max() else {
            return .failure(NotNow(reason: nil))
        }
        return .success(
            SnapshotStamp(
                cluster: cluster, tables: positions, asOf: asOf, routing: plan.snapshotFingerprint))
    }

    struct NotNow: Error {
        /// Nil where there is nothing to write: no registration was ever read.
        let reason: String?
    }

    /// Whether beginning with this snapshot saves next to nothing over beginning with that one.
    static func isWorthless(_ stamp: SnapshotStamp, after other: SnapshotStamp?) -> Bool {
        guard let other, other.cluster == stamp.cluster, other.routing == stamp.routing,
            other.tables.map(\.topic) == stamp.tables.map(\.topic),
            other.tables.map(\.partitions.count) == stamp.tables.map(\.partitions.count)
        else { return false }
        var records: Int64 = 0
        for (ours, theirs) in zip(stamp.tables, other.tables) {
            for (our, their) in zip(ours.partitions, theirs.partitions) {
                guard our.next >= their.next else { return false }
                records += our.next - their.next
            }
        }
        return records <= tailMax && stamp.asOf - other.asOf < youngMax
    }

    /// A third of a second of reading.
    private static let tailMax: Int64 = 100_000
    private static let youngMax = Duration.seconds(3600)
}
