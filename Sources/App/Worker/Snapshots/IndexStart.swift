// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import KafkaLog
internal import Logging
internal import Pipeline
internal import PushModel

/// What an index begins with, and from where its topics are read.
struct IndexStart: ~Copyable {
    /// Nil where everything is read from Kafka.
    var index: LoadedIndex?
    /// Nil where no directory is configured.
    var use: SnapshotUse?
    /// By position in `WorkerPlan.tableTopics`.
    var tables = TableStart.beginning

    /// Loads the snapshot, if there is one that may be used.
    init(_ plan: WorkerPlan, logger: Logger) {
        guard let directory = plan.snapshotDirectory else { return }
        let store = SnapshotStore(directory: directory, logger: logger)
        let conditions = SnapshotConditions.ask(plan, logger: logger)
        var use = SnapshotUse(store: store, conditions)
        if let conditions { index = store.load(plan, under: conditions) }
        if let stamp = index?.stamp, let conditions {
            use.began(with: stamp, at: conditions.now)
            tables = .positions(stamp.tables.map(\.partitions))
        }
        self.use = use
    }

    /// Gives the index away, once.
    mutating func takeIndex() -> LoadedIndex? {
        var taken: LoadedIndex?
        swap(&taken, &index)
        return taken
    }
}
