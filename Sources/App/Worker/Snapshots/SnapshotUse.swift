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
    /// When the records after it must have been read; nil once they have.
    private var readBefore: WallTime?
    /// For how long the tombstones of its topics lasted at the start; nil where Kafka did not say.
    private let tombstonesLast: Duration?
    /// When the worker was asked to stop.
    private(set) var stopBegan: MonotonicTime?

    /// - Parameter conditions: nil where Kafka has not answered.
    init(store: SnapshotStore, _ conditions: SnapshotConditions?) {
        self.store = store
        tombstonesLast = conditions?.tombstonesLast
    }

    mutating func began(with stamp: SnapshotStamp, at now: WallTime) {
        begunWith = stamp
        age = max(.zero, now - stamp.asOf)
        let lasting = [tombstonesLast, stamp.tombstonesLast].compactMap(\.self).min()
        readBefore = lasting.map {
            stamp.asOf + SnapshotConditions.endOfReading(tombstonesLast: $0)
        }
    }

    mutating func stopBegan(at now: MonotonicTime) {
        if stopBegan == nil { stopBegan = now }
    }

    /// The records after the snapshot have been read in time.
    mutating func tailWasRead() { readBefore = nil }

    /// The index is not what the snapshot said.
    mutating func wasWrong() { (begunWith, age, readBefore) = (nil, nil, nil) }

    /// Why the index cannot be trusted although everything was read; nil if it can.
    ///
    /// - Parameters:
    ///   - newest: the time of the newest registration that was read since; nil if none was.
    ///   - now: by this machine's clock; the brokers' counts where it is ahead.
    func lateness(newest: WallTime?, now: WallTime) -> String? {
        guard let readBefore, max(now, newest ?? now) >= readBefore else { return nil }
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
        // A record may have a time to come, from a producer's clock.
        return .success(
            SnapshotStamp(
                cluster: cluster, tables: positions, asOf: min(asOf, now.wall),
                routing: plan.snapshotFingerprint, tombstonesLast: tombstonesLast))
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
                // What the other has read beyond this one is no reason to replace it.
                records += max(0, our.next - their.next)
            }
        }
        return records <= tailMax && stamp.asOf - other.asOf < youngMax
    }

    /// A third of a second of reading.
    private static let tailMax: Int64 = 100_000
    private static let youngMax = Duration.seconds(3600)
}
