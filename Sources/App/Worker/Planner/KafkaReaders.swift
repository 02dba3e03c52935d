// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import KafkaLog
internal import PushModel

/// What the planner reads of Kafka.
struct KafkaReaders {
    let tables: TableReader
    /// The consumer of events; nil until the index is complete, since the first event must find all
    /// its tokens.
    var consumer: EventConsumer?
    /// Reads partitions of `deferred` again; nil until that is needed.
    var rereader: PartitionRereader?
    /// When the rereader may be opened, after that has failed.
    var rereadsAt = MonotonicTime(nanoseconds: .min)
    /// How many partitions its topics have.
    var counting = PartitionCounting()
    /// The ID of the Kafka cluster, which commit notes belong to; without it there are none.
    let cluster: String?

    init(_ tables: TableReader) {
        self.tables = tables
        cluster = tables.clusterID
    }
}
