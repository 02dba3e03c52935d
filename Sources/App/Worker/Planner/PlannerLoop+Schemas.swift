// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import KafkaLog
internal import Lifecycle
internal import Logging
internal import Pipeline
internal import PushModel
internal import SchemaCodecs
internal import SchemaRegistry

/// Records that cannot be read yet: their schema is not known, or this worker's clock is wrong. They wait, and with them what follows them in their
/// partition: events of one subject stay in order, and no offset passes a record that was not read.
extension PlannerLoop {
    /// Holds the record's partition if the record cannot be read yet, or if one before it could not.
    mutating func keepsUnread(
        _ record: borrowing KafkaRecord, _ event: EventRecord, of id: AssignmentID, now: Now
    ) -> Bool {
        if waits.held.isHeld(id) {
            waits.held.append(Self.kept(record, event), to: id)
        } else if let awaited = awaited(by: event, of: id, now: now) {
            waits.held.hold(id, at: Self.kept(record, event), for: awaited, now: now.monotonic)
            holds.recordWaits(of: id)
        } else {
            return false
        }
        applyHold(id, now: now)
        return true
    }

    /// What the record waits for; nil if it can be read now.
    private mutating func awaited(
        by event: EventRecord, of id: AssignmentID, now: Now
    ) -> HeldPartitions.Awaited? {
        if clockHolds(event.timestamp, of: id, now: now) { return .clock }
        guard waits.hasSchema[event.binding] else { return nil }
        return pipeline.awaitedSchema(of: event).map { .schema($0) }
    }

    private static func kept(
        _ record: borrowing KafkaRecord, _ event: EventRecord
    ) -> HeldPartitions.Record {
        HeldPartitions.Record(
            partition: record.partition, offset: record.offset,
            content: TrialRecord(
                binding: event.binding, key: event.key.map { Array($0) },
                value: event.value.map { Array($0) }, timestamp: event.timestamp,
                headers: record.headers))
    }

    /// Reads what was held and can be read now.
    /// - Returns: how many records were read, at most `limit`.
    mutating func readHeld(limit: Int, now: Now) -> Int {
        guard let consumer, !lifecycle.isIntakePaused else { return 0 }
        var read = 0
        for (id, partition) in waits.held.partitions where consumer.isReading(id) {
            var ofPartition = 0
            for record in partition.records.prefix(limit - read) {
                guard readHeld(record, of: id, now: now) else { break }
                ofPartition += 1
            }
            read += ofPartition
            if waits.held.removeFirst(ofPartition, of: id) {
                holds.recordsRead(of: id)
                applyHold(id, now: now)
            }
        }
        return read
    }

    /// - Returns: false if the record must wait longer.
    private mutating func readHeld(
        _ record: HeldPartitions.Record, of id: AssignmentID, now: Now
    ) -> Bool {
        record.content.lend { event, header in
            if plan.isSkipped(
                topic: event.binding, partition: record.partition, offset: record.offset)
            {
                pipeline.skippedRecord(of: id, offset: record.offset, now: now)
                return true
            }
            if let awaited = awaited(by: event, of: id, now: now) {
                waits.held.waits(id, for: awaited)
                return false
            }
            plan.recordInHand?.take(
                topic: event.binding, partition: record.partition, offset: record.offset)
            var event = event
            event.offset = record.offset
            pipeline.eventRecord(
                event, of: id, now: now, header: header,
                headers: { record.content.headers })
            plan.recordInHand?.putDown()
            return true
        }
    }

    /// The partitions that are held for a schema, the longest held first.
    func heldPartitions(now: Now) -> [WorkerStatus.HeldPartition] {
        waits.held.partitions.values.compactMap { partition in
            guard case .schema(let awaited) = partition.awaited else { return nil }
            return WorkerStatus.HeldPartition(
                topic: plan.consumedTopics[partition.records[0].content.binding],
                partition: partition.records[0].partition,
                offset: partition.records[0].offset, schema: awaited.schema.rawValue,
                cause: awaited.unreachable, held: now.monotonic - partition.since)
        }.sorted { $0.held > $1.held }
    }

    var schemaStatus: WorkerStatus.Schemas? {
        guard let status = waits.schemas?.status else { return nil }
        return WorkerStatus.Schemas(
            known: status.known, awaited: status.wanted, failure: status.failure,
            counts: status.counts)
    }
}

/// Logs, at once and then once a minute, that partitions wait for schemas.
struct HeldReport {
    private var nextAt: MonotonicTime?

    private static let interval = Duration.seconds(60)
    /// A registry that answers takes less.
    private static let patience = Duration.seconds(1)

    mutating func report(_ held: [WorkerStatus.HeldPartition], now: Now, logger: Logger) {
        guard let longest = held.first else {
            if nextAt != nil { logger.notice("no partition waits for a schema any more") }
            nextAt = nil
            return
        }
        guard longest.held >= Self.patience, nextAt.map({ now.monotonic >= $0 }) ?? true else {
            return
        }
        nextAt = now.monotonic + Self.interval
        logger.warning(
            "partitions are held until the schema registry gives the schemas of their records",
            metadata: [
                "partitions": .stringConvertible(held.count),
                "partition": "\(longest.topic)/\(longest.partition)/\(longest.offset)",
                "schema": .stringConvertible(longest.schema),
                "cause": "\(longest.cause ?? "it has not answered yet")",
            ])
    }
}
