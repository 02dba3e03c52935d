// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import KafkaLog
internal import Pipeline
internal import PushModel

@testable internal import Worker

extension WorkerStatus {
    /// The status of a worker that does well.
    static func well(_ phase: WorkerControl.Phase = .running) -> WorkerStatus {
        var status = WorkerStatus(
            phase: phase, at: WallTime(rfc3339: "2026-11-21T06:12:00.123Z")!, index: Index(),
            hasJoinedGroup: true, counters: Counters(), load: PipelineLoad())
        status.index.tables = ["lamplighter.registrations", "lamplighter.suppressions"].map {
            Table(topic: $0, partitions: 2, unread: 0, age: .seconds(4))
        }
        status.index.elapsed = .seconds(100)
        status.earlier.elapsed = .seconds(90)
        status.earlier.readAt = .seconds(100)
        status.promptTypes = Set(PushType.allTypes)
        status.partitions = [Partition(topic: "orders", partition: 3, lag: 7)]
        status.consumedPartitions = 32
        return status
    }
}
