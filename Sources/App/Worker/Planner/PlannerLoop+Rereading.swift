// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import KafkaLog
internal import Lifecycle
internal import LinuxIO
internal import Logging
internal import Pipeline
internal import PushModel
internal import RecordFormats

/// Reads partitions of `deferred` again, as the pipeline asks for it.
extension PlannerLoop {
    /// - Returns: whether there is more to read at once.
    mutating func readAgain(now: Now) -> Bool {
        if shadow != nil {
            readShadowAgain(now: now)
            return false
        }
        let wanted = pipeline.deferredReading
        if readers.rereader == nil {
            guard wanted != nil, now.monotonic >= readers.rereadsAt else { return false }
            openRereader(now: now)
        }
        guard let rereader = readers.rereader else { return false }
        if rereader.number != wanted?.number {
            guard let wanted else {
                rereader.stop()
                return false
            }
            logger.info(
                "reading a partition of deferred again",
                metadata: [
                    "partition": .stringConvertible(wanted.partition),
                    "offset": .stringConvertible(wanted.offset),
                ])
            rereader.begin(
                number: wanted.number, partition: wanted.partition, offset: wanted.offset,
                now: now)
        }
        let (count, end) = rereader.poll(now: now, limit: TurnBudget.tableRecords) { record in
            // The rest of a reading that is over.
            guard pipeline.deferredReading?.number == wanted?.number else { return }
            pipeline.deferredReadAgain(DeferredRecord(record), now: now)
        }
        if let end, let wanted, pipeline.deferredReading?.number == wanted.number {
            pipeline.deferredReadAgain(upTo: end, now: now)
        }
        return count == TurnBudget.tableRecords
    }

    private mutating func openRereader(now: Now) {
        do {
            let opened = try PartitionRereader(
                settings: plan.kafka, topic: plan.deferredTopic, logger: logger)
            try epoll.add(opened.wakeDescriptor, for: .read, tag: 5)
            readers.rereader = opened
        } catch {
            readers.rereadsAt = now.monotonic + .seconds(10)
            logger.warning(
                "the deferred topic cannot be read again", metadata: ["cause": "\(error)"])
        }
    }
}

extension DeferredRecord {
    init(_ record: borrowing KafkaRecord) {
        self.init(
            offset: record.offset, key: record.key, value: record.value,
            endedOffset: Self.number(DeferredPush.endedHeader, of: record),
            endedPayloadAt: Self.number(DeferredPush.endedPayloadHeader, of: record).map(
                WallTime.init(milliseconds:)),
            isDropped: record.header(named: DeferredPush.droppedHeader) != nil,
            writtenAt: record.timestampMilliseconds > 0
                ? WallTime(milliseconds: record.timestampMilliseconds) : nil)
    }

    private static func number(_ header: String, of record: borrowing KafkaRecord) -> Int64? {
        record.header(named: header).flatMap { Int64(String(decoding: $0, as: UTF8.self)) }
    }
}
