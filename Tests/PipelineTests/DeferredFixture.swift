// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel
internal import RecordFormats

@testable internal import Pipeline

/// One partition of `deferred`, and the pipeline that owns it.
final class DeferredFixture {
    let pipeline: PipelineFixture
    /// By offset; what Kafka has.
    var log: [Record] = []
    private var track: TrackID?
    private var position = 0
    private let partition: Int32

    struct Record {
        var key: String
        /// Nil ends a wait.
        var value: String?
        var endedOffset: Int64?
        /// Nil lets the key choose.
        var partition: Int32?
        var endedPayloadAt: WallTime?

        func contains(_ text: String) -> Bool { value?.contains(text) == true }
    }

    init(_ pipeline: PipelineFixture, partition: Int32 = 0) {
        self.pipeline = pipeline
        self.partition = partition
    }

    /// The partition is given to the pipeline, which reads it from its beginning.
    func assign() {
        beginAssignment()
        finishReplay()
    }

    /// The partition is given to the pipeline, and nothing of it has been read yet.
    func beginAssignment() {
        position = 0
        track = pipeline.pipeline.deferredAssigned(partition: partition)
    }

    func finishReplay() {
        read()
        pipeline.pipeline.deferredReplayed(track!, now: pipeline.now)
        pipeline.checkInvariants()
    }

    func revoke() {
        pipeline.pipeline.deferredUnassigned(track!)
        track = nil
        pipeline.checkInvariants()
    }

    /// Another worker, or an operator, writes a record.
    func write(_ record: Record) { log.append(record) }

    /// Whoever has the partition reads on.
    func read() {
        guard let track else { return }
        while position < log.count {
            let problem = read(log[position], on: track)
            precondition(problem == nil, "\(problem!)")
        }
    }

    /// Reads a record that cannot be read.
    /// - Returns: why.
    func refusal(of record: Record) -> UnreadableRecord? {
        log.append(record)
        return read(record, on: track!)
    }

    private func read(_ record: Record, on track: TrackID) -> UnreadableRecord? {
        defer {
            position += 1
            pipeline.checkInvariants()
        }
        return withBytes(Array(record.key.utf8)) { key in
            withBytes(record.value.map { Array($0.utf8) }) { value in
                pipeline.pipeline.deferredRecord(
                    DeferredRecord(
                        offset: Int64(position), key: key, value: value,
                        endedOffset: record.endedOffset, endedPayloadAt: record.endedPayloadAt),
                    track: track, now: pipeline.now)
            }
        }
    }

    /// Kafka takes what the pipeline has produced: deferred records go into the log.
    /// - Returns: the deferred ones, and the others, which are acknowledged too.
    @discardableResult
    func produce() -> (deferred: [Record], others: [ProducedRecord]) {
        let all = pipeline.takeRecords()
        let records = all.filter { $0.topic == .deferred }.map { record in
            Record(
                key: record.key, value: record.value.isEmpty ? nil : record.value,
                endedOffset: record.endedOffset, partition: record.partition,
                endedPayloadAt: record.endedPayloadAt)
        }
        log += records
        pipeline.acknowledge(all)
        return (records, all.filter { $0.topic != .deferred })
    }
}
