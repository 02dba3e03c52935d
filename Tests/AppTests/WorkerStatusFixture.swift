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
            hasJoinedGroup: true, counters: Counters(), load: .nothing)
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

extension MisplacedRecords {
    static func sample(of topic: String, _ count: Int) -> MisplacedRecords {
        var records = MisplacedRecords(topic: topic)
        (records.count, records.partition, records.offset, records.belongsIn) = (count, 3, 17, 5)
        return records
    }
}

extension CanaryStatus {
    /// Of the latest canary, written 40 s before this, there is nothing to say but how far it came.
    static func sample(
        at: WallTime, silence: Duration?, _ stage: Canary.Stage = .unread,
        proof: Canary.Stage? = nil
    ) -> CanaryStatus {
        func turn(_ number: UInt64, _ age: Duration, _ stage: Canary.Stage) -> Canary.Turn {
            Canary.Turn(
                number: number, partition: 3, writtenAt: at + (.zero - age),
                beganAt: MonotonicTime(nanoseconds: 0), stage: stage)
        }
        return CanaryStatus(
            topic: "events", app: "com.example.Home", subject: "canary", every: .seconds(60),
            silence: silence, latest: turn(9, .seconds(40), stage),
            lastProof: proof.map { turn(4, .seconds(300), $0) },
            counts: Canary.Counts(written: 9, cameThrough: 4))
    }
}
