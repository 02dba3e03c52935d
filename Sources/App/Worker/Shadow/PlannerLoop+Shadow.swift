// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import KafkaLog
internal import Logging
internal import Pipeline
internal import PushModel
internal import RecordFormats

/// What the planner does in shadow mode, where it would otherwise send and write.
extension PlannerLoop {
    /// How often in one turn records are read back of which others come.
    private static let shadowRounds = 16

    /// Begins to read back what would be written to `deferred`.
    mutating func beginShadow(now: Now) {
        guard shadow != nil else { return }
        pipeline.deferredAssigned(Shadow.deferredPartition, partition: 0)
        pipeline.deferredReplayed(Shadow.deferredPartition, now: now)
        logger.warning(
            "nothing is sent: delivery.mode is shadow",
            metadata: ["group": "\(plan.kafka.group)"])
    }

    /// Counts the records that would be written, and acknowledges them as Kafka would: those of `deferred`
    /// are read back, and the others are gone.
    ///
    /// - Returns: whether there is more of it to do at once.
    mutating func takeShadowRecords(now: Now) -> Bool {
        for _ in 0..<Self.shadowRounds {
            let records = pipeline.takeRecords()
            if records.isEmpty { return false }
            for record in records {
                shadow!.count(record.topic)
                pipeline.acknowledged(record.ticket)
                if record.topic == .deferred { readBack(record, now: now) }
            }
        }
        return true
    }

    private mutating func readBack(_ record: OutgoingRecord, now: Now) {
        let offset = shadow!.takeOffset()
        record.key.withUnsafeBytes { key in
            (record.value ?? []).withUnsafeBytes { value in
                let problem = pipeline.deferredRecord(
                    DeferredRecord(
                        offset: offset, key: key, value: record.value == nil ? nil : value,
                        endedOffset: record.endedOffset, endedPayloadAt: record.endedPayloadAt,
                        writtenAt: now.wall),
                    of: Shadow.deferredPartition, now: now)
                assert(problem == nil, "a worker can read what it has written")
            }
        }
    }

    /// There is no topic in which rows that were forgotten for want of memory could be read again.
    mutating func readShadowAgain(now: Now) {
        guard pipeline.deferredReading != nil else { return }
        pipeline.deferredReadAgain(upTo: shadow!.nextOffset, now: now)
    }

    var shadowStatus: WorkerStatus.Shadow? {
        shadow.map { shadow in
            let counts = shadow.log?.counts
            return WorkerStatus.Shadow(
                pushes: shadow.pushes, deadLetters: shadow.deadLetters, lines: counts?.written,
                linesLost: counts?.lost ?? 0)
        }
    }
}
