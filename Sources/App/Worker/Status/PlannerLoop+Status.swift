// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Audience
internal import KafkaLog
internal import OTLPExporter
internal import Pipeline
internal import PushModel

/// Makes the `WorkerStatus` that listeners ask for.
extension PlannerLoop {
    func status(now: Now) -> WorkerStatus {
        var status = WorkerStatus(
            phase: control.currentPhase, at: now.wall, index: indexStatus(now: now),
            hasJoinedGroup: consumer?.isGroupMember ?? false, counters: pipeline.counters,
            load: pipeline.load)
        status.partitions = (consumer?.assignedPartitions ?? []).map { topic, partition in
            WorkerStatus.Partition(
                topic: plan.consumedTopics[topic], partition: partition,
                lag: topic == plan.deferredConsumed
                    ? nil : consumer?.lag(topic: topic, partition: partition))
        }
        status.unavailablePartitions = consumer?.unavailableCount ?? 0
        status.breakers = pipeline.trippedBreakers(now: now)
        status.troubledTopics = troubledTopics(now: now)
        status.transports = ports.map(\.counters.snapshot)
        status.roundTrips = roundTrips
        status.consumedTopics = plan.consumedTopics
        status.producedTopics = plan.producedTopics
        status.hasRoomForEvents = pipeline.hasRoomForEvents
        status.holdMax = max(plan.pipeline.holdMax, plan.pipeline.registrationGrace)
        status.export = pipeline.traceCounts.map { counts in
            var export = WorkerStatus.Export()
            export.traced = counts
            export.spansDropped = counts.spansDropped + control.spans.dropped
            return export
        }
        return status
    }

    private func indexStatus(now: Now) -> WorkerStatus.Index {
        let statistics = pipeline.audience.statistics
        var index = WorkerStatus.Index()
        index.tables = tables.topics.indices.map { topic in
            let progress = tables.progress(topic: topic)
            return WorkerStatus.Table(
                topic: tables.topics[topic], partitions: progress.partitions,
                unread: progress.remaining, age: tables.age(topic: topic, now: now))
        }
        index.recordsRead = tables.recordsRead
        index.tokens = statistics.tokens
        index.subjects = statistics.subjects
        index.subscriptions = statistics.subscriptions
        index.installations = statistics.registrations
        index.bytes = statistics.totalBytes
        index.elapsed = now.monotonic - startedAt
        index.connectionFailure = tables.connectionFailure
        return index
    }
}
