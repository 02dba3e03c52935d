// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Intake
internal import KafkaLog
internal import Pipeline
internal import PushModel
internal import Rdkafka
internal import RecordFormats

/// Writes the worker's own records: suppressions, dead letters, deferred pushes and shards. Each
/// topic has an outlet of its own, and in it each partition a share, so that what accepts nothing
/// does not delay the records of others.
extension PlannerLoop {
    mutating func produceRecords(now: Now) {
        for record in pipeline.takeRecords() { outlets[record.topic.rawValue].append(record) }
        for topic in RecordTopic.allCases {
            while let record = outlets[topic.rawValue].next(now: now) {
                guard produce(record, now: now) else { break }
            }
        }
    }

    /// Gives each partition that is written to its share.
    mutating func sharePartitions() {
        for topic in RecordTopic.allCases where topic != .events || plan.shardBinding != nil {
            outlets[topic.rawValue].adopt(partitions: plan.partitions(of: topic))
        }
        pipeline.adopt(deferredPartitions: plan.partitions(of: .deferred))
    }

    /// Offers a record to the producer.
    ///
    /// - Returns: false if the producer's queue is full, so that the record must be offered again.
    private mutating func produce(_ record: OutgoingRecord, now: Now) -> Bool {
        let outlet = record.topic.rawValue
        var headers = record.endedOffset.map { [(DeferredPush.endedHeader, "\($0)")] } ?? []
        if let readAt = record.endedPayloadAt {
            headers.append((DeferredPush.endedPayloadHeader, "\(readAt.milliseconds)"))
        }
        if let traceparent = record.traceparent {
            headers.append((EventRecord.traceparentHeader, traceparent))
        }
        let acceptance = record.key.withUnsafeBytes { key in
            (record.value ?? []).withUnsafeBytes { value in
                producer.produce(
                    topic: plan.producedTopic(record.topic), partition: record.partition, key: key,
                    value: record.value == nil ? nil : value, headers: headers,
                    ticket: record.ticket)
            }
        }
        switch acceptance {
        case .queueFull: return false
        case .accepted:
            outlets[outlet].take(isAccepted: true, now: now)
        case .failed(let error):
            outlets[outlet].take(isAccepted: false, now: now)
            let answer = RecordAnswer(error.code)
            if let cause = answer.cause { outlets[outlet].refused(cause: cause, now: now) }
            tell(answer, of: record.ticket)
        }
        return true
    }

    mutating func collectAcknowledgements(now: Now) -> Bool {
        producer.poll(now: now) { ticket, error in
            let answer = RecordAnswer(error)
            if ticket & Self.canaryTicket != 0 {
                return canaryAnswered(ticket, answer)
            }
            let outlet = outlets.indices.first {
                outlets[$0].reported(ticket, cause: answer.cause, now: now)
            }
            precondition(outlet != nil, "the producer reports a record that it was not given")
            tell(answer, of: ticket)
        } > 0
    }

    private mutating func tell(_ answer: RecordAnswer, of ticket: UInt64) {
        switch answer {
        case .acknowledged: pipeline.acknowledged(ticket)
        case .tooLarge: pipeline.tooLarge(ticket)
        case .refused: pipeline.refused(ticket)
        }
    }

    /// Takes shards back from a topic that accepts no records, so that this worker fans them out
    /// itself, and stops the splitting of events. During the outlet's back-off a shard could wait
    /// until it expires.
    mutating func keepShardsMoving(now: Now) {
        let outlet = RecordTopic.events.rawValue
        for record in outlets[outlet].withdraw(now: now) { pipeline.refused(record.ticket) }
        pipeline.shardBreaker = outlets[outlet].breaker(now: now)
    }

    /// The topics that accept none of the worker's records at the moment.
    func troubledTopics(now: Now) -> [TroubledTopic] {
        RecordTopic.allCases.compactMap { topic in
            guard let trouble = outlets[topic.rawValue].trouble(now: now) else { return nil }
            let waiting = pipeline.waiting(for: topic)
            return TroubledTopic(
                topic: topic, name: plan.producedTopics[plan.producedTopic(topic)],
                records: waiting.records, bytes: waiting.bytes, cause: trouble.cause)
        }
    }
}
