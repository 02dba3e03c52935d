// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import FlatMemory
internal import PushModel

@testable internal import Pipeline

/// An index that a worker has written, and how much of the logs was in it.
struct SimulatedSnapshot {
    var bytes: [UInt8]
    var registrations: Int
    var suppressions: Int
    /// What its writer has read: of a compacted log that is less than what was in it, and a token's time of
    /// registration, of which the greatest counts, can be another.
    var heard: [SimulatedTableRecord]

    private final class Memory { var bytes: [UInt8] = [] }

    /// Nil where the worker writes none.
    init?(_ worker: SimulationWorker, _ kafka: SimulatedKafka) {
        (registrations, suppressions) = (worker.registrationsRead, worker.suppressionsRead)
        heard = worker.heard
        var positions = [TablePosition(next: 0, last: nil), TablePosition(next: 0, last: nil)]
        for record in kafka.registrations.prefix(registrations) {
            // Behind the last record the log has what is no record, as the end of a transaction.
            positions[Int(record.partition)] = TablePosition(
                next: record.offset + 2,
                last: TablePosition.LastRecord(
                    offset: record.offset, hash: StableHash.Value(high: 0, low: 0)))
        }
        let stamp = SnapshotStamp(
            cluster: "simulated",
            tables: [
                SnapshotStamp.Table(topic: "registrations", partitions: positions),
                SnapshotStamp.Table(topic: "suppressions", partitions: []),
            ], asOf: WallTime(milliseconds: 0),
            routing: PushPipeline.fingerprint(
                routing: SimulationWorker.routing, settings: worker.settings), tombstonesLast: nil)
        let memory = Memory()
        guard worker.pipeline.suppressionsFault == nil else { return nil }
        do throws(SnapshotFault) {
            try worker.pipeline.writeIndex(stamp) { memory.bytes.append(contentsOf: $0) }
        } catch {
            preconditionFailure("an index that may be written is written: \(error)")
        }
        bytes = memory.bytes
    }

    func load(_ settings: PipelineSettings) throws(SimulationFailure) -> LoadedIndex {
        let bytes = bytes
        do throws(SnapshotFault) {
            return try LoadedIndex(
                SnapshotReader(bytes: bytes.count) { offset, buffer in
                    buffer.copyBytes(from: bytes[offset..<offset + buffer.count])
                }, routing: SimulationWorker.routing, settings: settings)
        } catch {
            throw SimulationFailure(text: "the index was not loaded: \(error)")
        }
    }
}

/// Most starts are with a snapshot of some age, if there is any.
extension Simulation {
    /// Begins with a snapshot, of which the model hears record by record.
    ///
    /// - Returns: how many records of registrations and of suppressions the worker has read by that.
    mutating func beginWithSnapshot(
        _ number: Int
    ) throws(SimulationFailure) -> (registrations: Int, suppressions: Int) {
        // Some read everything, as ever.
        guard !snapshots.isEmpty, snapshotDice.next(below: 5) > 0 else { return (0, 0) }
        let snapshot = snapshots[Int(snapshotDice.next(below: UInt64(snapshots.count)))]
        let worker = workers[number]!
        let age = kafka.registrations.count - snapshot.registrations
        tell("worker \(number) begins with a snapshot that is \(age) registrations old")
        worker.pipeline.begin(with: try snapshot.load(worker.settings))
        worker.pipeline.checkInvariants()
        let now = time(of: number)
        for record in snapshot.heard { worker.hear(record, world: kafka, now: now) }
        coverage.snapshotStarts += 1
        return (snapshot.registrations, snapshot.suppressions)
    }

    /// A worker's index becomes a file with which any worker may begin.
    mutating func keepIndex(_ number: Int) {
        // Not while a suppression is in no topic.
        guard let snapshot = SimulatedSnapshot(workers[number]!, kafka) else { return }
        snapshots.append(snapshot)
        guard snapshots.count > 4 else { return }
        snapshots.remove(at: Int(snapshotDice.next(below: UInt64(snapshots.count))))
    }
}
