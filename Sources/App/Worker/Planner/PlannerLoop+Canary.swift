// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import KafkaLog
internal import Lifecycle
internal import Pipeline
internal import PushModel
internal import Rdkafka

/// Writes the operator's canaries to Kafka.
extension PlannerLoop {
    /// Marks the tickets of canaries, which have no outlet: one at a time is with the producer.
    static let canaryTicket: UInt64 = 1 << 63

    /// Writes the next canary, if it is due, to one of the worker's own partitions: what comes of it is
    /// seen only where it is read.
    mutating func writeCanary(now: Now) {
        guard now.monotonic >= pipeline.canaryLooksAt, let binding = plan.canaryBinding,
            let topic = plan.canariesProduced, !lifecycle.isDraining,
            let record = pipeline.nextCanary(partitions: ownPartitions(of: binding, now), now: now)
        else { return }
        let acceptance = record.value.withUnsafeBytes {
            producer.produce(
                topic: topic, partition: record.partition, key: nil, value: $0,
                ticket: Self.canaryTicket | record.number)
        }
        switch acceptance {
        case .accepted: break
        case .queueFull:
            pipeline.canaryAcknowledged(record.number, refusal: "the producer's queue is full")
        case .failed(let error): canaryAnswered(record.number, RecordAnswer(error.code))
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

    mutating func canaryAnswered(_ ticket: UInt64, _ answer: RecordAnswer) {
        let refusal: String? =
            switch answer {
            case .acknowledged: nil
            case .tooLarge: "too large"
            case .refused(let cause): cause
            }
        pipeline.canaryAcknowledged(ticket & ~Self.canaryTicket, refusal: refusal)
    }
}
