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
struct RecordOutlets {
    let producer: RecordProducer
    /// By `RecordTopic`.
    private var outlets: [RecordOutlet]

    init(_ producer: RecordProducer, _ plan: WorkerPlan) {
        self.producer = producer
        outlets = RecordOutlet.all(properties: plan.kafka.properties.mapValues(\.text))
    }

    subscript(topic: RecordTopic) -> RecordOutlet {
        get { outlets[topic.rawValue] }
        _modify { yield &outlets[topic.rawValue] }
    }

    /// Gives each partition that is written to its share.
    mutating func adopt(_ plan: WorkerPlan) {
        for topic in RecordTopic.allCases where topic != .events || plan.shardBinding != nil {
            self[topic].adopt(partitions: plan.partitions(of: topic))
        }
    }

    /// Produces what the pipeline wants produced, as far as Kafka takes it.
    mutating func produce(
        _ pipeline: inout PushPipeline, _ plan: WorkerPlan, now: Now
    ) {
        for record in pipeline.takeRecords() { self[record.topic].append(record) }
        for topic in RecordTopic.allCases {
            while let record = self[topic].next(now: now) {
                guard offer(record, &pipeline, plan, now: now) else { break }
            }
        }
    }

    /// - Returns: false if the producer's queue is full, so that the record must be offered again.
    private mutating func offer(
        _ record: OutgoingRecord, _ pipeline: inout PushPipeline, _ plan: WorkerPlan,
        now: Now
    ) -> Bool {
        var headers = record.endedOffset.map { [(DeferredPush.endedHeader, "\($0)")] } ?? []
        if let readAt = record.endedPayloadAt {
            headers.append((DeferredPush.endedPayloadHeader, "\(readAt.milliseconds)"))
        }
        if let traceparent = record.traceparent {
            headers.append((EventRecord.traceparentHeader, traceparent))
        }
        assert(
            record.topic != .events || plan.shardBinding != nil,
            "shards are written only where a topic holds the worker's own events")
        let topic = plan.producedTopic(record.topic)
        let acceptance = record.key.withUnsafeBytes { key in
            (record.value ?? []).withUnsafeBytes { value in
                producer.produce(
                    topic: topic, partition: record.partition, key: key,
                    value: record.value == nil ? nil : value, headers: headers,
                    ticket: record.ticket)
            }
        }
        switch acceptance {
        case .queueFull: return false
        case .accepted:
            self[record.topic].take(isAccepted: true, now: now)
        case .failed(let error):
            self[record.topic].take(isAccepted: false, now: now)
            let answer = RecordAnswer(error.code)
            if let cause = answer.cause { self[record.topic].refused(cause: cause, now: now) }
            Self.tell(&pipeline, answer, of: record.ticket)
        }
        return true
    }

    /// Passes on what Kafka has answered.
    /// - Returns: whether there was anything.
    mutating func collectAcknowledgements(_ pipeline: inout PushPipeline, now: Now) -> Bool {
        producer.poll(now: now) { ticket, error in
            let answer = RecordAnswer(error)
            if CanaryTicket.isOne(ticket) {
                return CanaryTicket.answered(ticket, answer, &pipeline)
            }
            let outlet = outlets.indices.first {
                outlets[$0].reported(ticket, cause: answer.cause, now: now)
            }
            precondition(outlet != nil, "the producer reports only records that it was given")
            Self.tell(&pipeline, answer, of: ticket)
        } > 0
    }

    private static func tell(
        _ pipeline: inout PushPipeline, _ answer: RecordAnswer, of ticket: UInt64
    ) {
        switch answer {
        case .acknowledged: pipeline.acknowledged(ticket)
        case .tooLarge: pipeline.tooLarge(ticket)
        case .refused: pipeline.refused(ticket)
        }
    }

    /// Takes shards back from a topic that accepts no records, so that this worker fans them out
    /// itself, and stops the splitting of events. During the outlet's back-off a shard could wait
    /// until it expires.
    mutating func keepShardsMoving(_ pipeline: inout PushPipeline, now: Now) {
        for record in self[.events].withdraw(now: now) { pipeline.refused(record.ticket) }
        pipeline.shardBreaker = self[.events].breaker(now: now)
    }

    /// The topics that accept none of the worker's records at the moment.
    func troubled(
        _ pipeline: borrowing PushPipeline, _ plan: WorkerPlan, now: Now
    ) -> [TroubledTopic] {
        var troubled: [TroubledTopic] = []
        for topic in RecordTopic.allCases {
            guard let trouble = self[topic].trouble(now: now) else { continue }
            let waiting = pipeline.waiting(for: topic)
            troubled.append(
                TroubledTopic(
                    topic: topic, name: plan.producedTopics[plan.producedTopic(topic)],
                    records: waiting.records, bytes: waiting.bytes, cause: trouble.cause))
        }
        return troubled
    }
}
