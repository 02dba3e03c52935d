// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import KafkaLog
internal import Logging
internal import Pipeline
internal import PushModel
internal import Rdkafka
internal import RecordFormats

/// Writes how pushes ended to the topic of outcomes. No offset waits for it, and it has a producer of
/// its own, so whatever becomes of the topic delays nothing else: what finds no room or is refused is
/// counted and left out.
struct OutcomeLog {
    private let producer: RecordProducer
    private(set) var tally = OutcomeTally()
    private var reportedAt: MonotonicTime?

    private static let reportInterval = Duration.seconds(60)
    /// The last outcomes may take so long at a stop.
    private static let closeTimeout = Duration.milliseconds(500)

    init(_ producer: RecordProducer) {
        precondition(producer.topics.count == 1, "all outcomes go to one topic")
        self.producer = producer
    }

    private var topic: String { producer.topics[0] }

    /// - Parameter lost: how many ended that found no room before.
    mutating func write(_ pushes: [EndedPush], lost: Int, now: Now) {
        tally.foundNoRoom(lost, now: now)
        for push in pushes {
            guard tally.hasRoom else {
                tally.foundNoRoom(1, now: now)
                continue
            }
            write(OutcomeRecord(push, at: now.wall), now: now)
        }
    }

    private mutating func write(_ record: OutcomeRecord, now: Now) {
        let (key, value) = (Array(record.tokenID.utf8), OutcomeEncoder.value(record))
        let bytes = key.count + value.count
        let acceptance = key.withUnsafeBytes { key in
            value.withUnsafeBytes { value in
                // The ticket need not tell records apart: it says how much room there is again.
                producer.produce(topic: 0, key: key, value: value, ticket: UInt64(bytes))
            }
        }
        switch acceptance {
        case .accepted: tally.offered(bytes: bytes, now: now)
        case .queueFull: tally.foundNoRoom(1, now: now)
        case .failed(let error): tally.noteRefusal(cause: error.code.name, now: now)
        }
    }

    /// Takes in what Kafka has answered.
    mutating func collect(now: Now) {
        producer.poll(now: now) { bytes, error in
            tally.answered(bytes: Int(bytes), cause: error?.name, now: now)
        }
    }

    /// Waits a moment for what was written last.
    mutating func close(now: Now, logger: Logger) {
        _ = producer.flush(timeout: Self.closeTimeout)
        collect(now: now)
        guard tally.waiting > 0 else { return }
        logger.notice(
            "the outcomes of the last pushes may not be written",
            metadata: ["records": .stringConvertible(tally.waiting), "topic": "\(topic)"])
    }

    func takeWarnings() -> [KafkaWarning] { producer.takeWarnings() }

    /// Tells that outcomes are dropped: at once, every minute, and once when they are written again.
    mutating func report(now: Now, logger: Logger) {
        guard let trouble = tally.trouble(now: now) else {
            if reportedAt != nil { logger.notice("outcomes of pushes are written again") }
            reportedAt = nil
            return
        }
        if let last = reportedAt, now.monotonic - last < Self.reportInterval { return }
        reportedAt = now.monotonic
        logger.warning(
            "outcomes of pushes are not written; pushes are sent all the same",
            metadata: [
                "topic": "\(topic)", "cause": "\(trouble.words)", "remedy": "\(trouble.remedy)",
                "dropped": .stringConvertible(tally.dropped),
            ])
    }

    func status(now: Now) -> WorkerStatus.Outcomes {
        WorkerStatus.Outcomes(
            topic: topic, written: tally.written, noRoom: tally.noRoom, refused: tally.refused,
            trouble: tally.trouble(now: now))
    }
}

extension PlannerLoop {
    mutating func writeOutcomes(now: Now) {
        outcomes!.collect(now: now)
        guard pipeline.hasEnded else { return }
        let (pushes, lost) = pipeline.takeEnded()
        outcomes!.write(pushes, lost: lost, now: now)
    }

    mutating func closeOutcomes(now: Now) {
        writeOutcomes(now: now)
        outcomes!.close(now: now, logger: logger)
    }
}

extension OutcomeRecord {
    init(_ ended: EndedPush, at time: WallTime) {
        let push = ended.push
        self.init(
            at: time, app: push.app, environment: push.environment, tokenClass: push.tokenClass,
            type: push.type, tokenID: push.tokenID, apnsID: push.apnsID, outcome: ended.outcome)
        (status, reason, attempts) = (ended.status, ended.reason, ended.attempts)
        latency = ended.writtenAt.map { time - $0 }
        (subject, eventID) = (push.subject, push.eventID)
        source = push.event.map {
            DeadLetter.Source(topic: $0.topic, partition: $0.partition, offset: $0.offset)
        }
    }
}
