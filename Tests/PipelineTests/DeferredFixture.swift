// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import PushModel
internal import RecordFormats

@testable internal import Pipeline

/// One partition of `deferred`, and the pipeline that owns it.
final class DeferredFixture {
    let pipeline: PipelineFixture
    /// The partition's log in Kafka, by offset.
    var log: [Record] = []
    private(set) var assignment: AssignmentID?
    private var position = 0
    private let partition: Int32
    /// The ordinals of assignments of `deferred` follow those of the event topics.
    private static let firstOrdinal: UInt32 = 100

    struct Record {
        var key: String
        /// The value; nil for a tombstone, which ends the push.
        var value: String?
        var endedOffset: Int64?
        /// The partition; nil for the one that the key hashes to.
        var partition: Int32?
        var endedPayloadAt: WallTime?
        var isDropped = false
        var writtenAt: WallTime?

        func contains(_ text: String) -> Bool { value?.contains(text) == true }
    }

    init(_ pipeline: PipelineFixture, partition: Int32 = 0) {
        self.pipeline = pipeline
        self.partition = partition
    }

    /// Assigns the partition to the pipeline, which reads it from its beginning.
    func assign() {
        beginAssignment()
        finishReplay()
    }

    /// Assigns the partition to the pipeline, without reading it.
    func beginAssignment() {
        position = 0
        let id = pipeline.newAssignment(ordinal: Self.firstOrdinal + UInt32(partition))
        pipeline.pipeline.deferredAssigned(id, partition: partition)
        assignment = id
    }

    func finishReplay() {
        read()
        pipeline.pipeline.deferredReplayed(assignment!, now: pipeline.now)
        pipeline.checkAfterCall()
    }

    func revoke() {
        pipeline.pipeline.unassigned([assignment!])
        assignment = nil
        pipeline.checkAfterCall()
    }

    /// Another worker, or an operator, writes a record.
    func write(_ record: Record) { log.append(record) }

    /// Lets the partition's owner read the new records.
    func read() {
        guard let assignment else { return }
        while position < log.count {
            let problem = read(log[position], of: assignment)
            precondition(problem == nil, "\(problem!)")
        }
    }

    /// Reads one more record.
    /// - Returns: why it cannot be read.
    func refusal(of record: Record) -> UnreadableRecord? {
        log.append(record)
        return read(record, of: assignment!)
    }

    private func read(_ record: Record, of id: AssignmentID) -> UnreadableRecord? {
        defer {
            position += 1
            pipeline.checkAfterCall()
        }
        return withBytes(Array(record.key.utf8)) { key in
            withBytes(record.value.map { Array($0.utf8) }) { value in
                pipeline.pipeline.deferredRecord(
                    DeferredRecord(
                        offset: Int64(position), key: key, value: value,
                        endedOffset: record.endedOffset, endedPayloadAt: record.endedPayloadAt,
                        isDropped: record.isDropped, writtenAt: record.writtenAt),
                    of: id, now: pipeline.now)
            }
        }
    }

    /// Acknowledges the records that the pipeline has produced; deferred ones are appended to the
    /// log.
    /// - Returns: the deferred ones, and the others, which are acknowledged too.
    @discardableResult
    func produce() -> (deferred: [Record], others: [ProducedRecord]) {
        let all = pipeline.takeRecords()
        let records = all.filter { $0.topic == .deferred }.map { record in
            Record(
                key: record.key, value: record.value.isEmpty ? nil : record.value,
                endedOffset: record.endedOffset, partition: record.partition,
                endedPayloadAt: record.endedPayloadAt, writtenAt: pipeline.now.wall)
        }
        log += records
        pipeline.acknowledge(all)
        return (records, all.filter { $0.topic != .deferred })
    }
}
