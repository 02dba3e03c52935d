// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import KafkaLog
internal import Lifecycle
internal import Pipeline
internal import PushModel
internal import Rdkafka

/// Writes the operator's canaries to Kafka.
extension PlannerLoop {
    /// Writes the next canary, if it is due, to one of the worker's own partitions: what comes of it is
    /// seen only where it is read.
    mutating func writeCanary(now: Now) {
        guard now.monotonic >= pipeline.canaryLooksAt, let binding = plan.canaryBinding,
            let topic = plan.canariesProduced, !lifecycle.isDraining,
            let record = pipeline.nextCanary(partitions: ownPartitions(of: binding, now), now: now)
        else { return }
        let acceptance = record.value.withUnsafeBytes {
            records.producer.produce(
                topic: topic, partition: record.partition, key: nil, value: $0,
                ticket: CanaryTicket.of(record.number))
        }
        switch acceptance {
        case .accepted: break
        case .queueFull:
            pipeline.canaryAcknowledged(record.number, refusal: "the producer's queue is full")
        case .failed(let error):
            CanaryTicket.answered(record.number, RecordAnswer(error.code), &pipeline)
        }
    }

    /// Those of an events topic, in order; nil while the group has not said which are this worker's.
    private func ownPartitions(of topic: Int, _ now: Now) -> [Int32]? {
        guard let consumer else { return [] }
        let all = consumer.assignedPartitions
        let isSaid = consumer.isGroupMember && consumer.groupWait(now: now) == nil
        guard isSaid || !all.isEmpty else { return nil }
        return all.filter { $0.topic == topic }.map(\.partition).sorted()
    }

    func canaryStatus(now: Now) -> CanaryStatus? {
        guard let binding = plan.canaryBinding, let settings = plan.pipeline.canary else {
            return nil
        }
        let canary = pipeline.canary
        return CanaryStatus(
            topic: plan.eventTopics[binding], app: settings.app, subject: settings.subject,
            every: settings.every, silence: canary.silence(now: now), latest: canary.latest,
            lastProof: canary.lastProof, counts: canary.counts)
    }
}

/// The tickets of canaries, which have no outlet: one at a time is with the producer.
enum CanaryTicket {
    private static let mark: UInt64 = 1 << 63

    static func of(_ number: UInt64) -> UInt64 { mark | number }
    static func isOne(_ ticket: UInt64) -> Bool { ticket & mark != 0 }

    static func answered(
        _ ticket: UInt64, _ answer: RecordAnswer, _ pipeline: inout PushPipeline
    ) {
        let refusal: String? =
            switch answer {
            case .acknowledged: nil
            case .tooLarge: "too large"
            case .refused(let cause): cause
            }
        pipeline.canaryAcknowledged(ticket & ~mark, refusal: refusal)
    }
}
