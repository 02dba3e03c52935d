// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

@testable internal import Lifecycle
@testable internal import Pipeline

/// Topics that wait in Kafka because they have taken most of a worker's room.
extension Simulation {
    mutating func takeTopicTurns(_ number: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        guard !worker.lifecycle.isDraining else { return }
        let local = time(of: number).monotonic
        guard worker.holds.isLookDue(isShortOfRoom: worker.pipeline.isShortOfRoom, now: local)
        else { return }
        let bounds = worker.pipeline.eventBounds(underWay: eventsUnderWay(of: number))
        let waits = worker.holds.turns.waits
        if worker.holds.look(bounds, now: local) { applyHolds(of: number) }
        for topic in SimulationWorker.topics.indices {
            if worker.holds.turns.waits[topic] > waits[topic] {
                worker.topicWaitsSince[topic] = now.monotonic
                coverage.note("topic waits", worker)
                tell("worker \(number) leaves \(SimulationWorker.topics[topic]) in Kafka")
            }
            guard worker.holds.turns.isWaiting(topic) else { continue }
            try require(
                bounds.contains(where: \.isShort)
                    || now.monotonic - worker.topicWaitsSince[topic] < .seconds(1),
                "a topic waits, and there is room for it")
        }
    }

    /// By topic; nil where the worker owns no partition of it.
    private func eventsUnderWay(of number: Int) -> [Int?] {
        let worker = workers[number]!
        var events: [Int?] = SimulationWorker.topics.map { _ in nil }
        for (partition, id) in zip(kafka.partitions, worker.assignments) {
            guard let id else { continue }
            let topic = Int(partition.topic)
            events[topic] = (events[topic] ?? 0) + worker.pipeline.eventsUnderWay(of: id)
        }
        return events
    }

    /// Leaves the partitions in Kafka that are not to be read.
    mutating func applyHolds(of number: Int) {
        let worker = workers[number]!
        worker.holds.pausedTopics(worker.pipeline.restrictions.pausedTopics)
        for (index, id) in worker.assignments.enumerated() {
            guard let id else { continue }
            worker.consumer.setHeld(worker.holds.cause(of: id) != nil, .events(index))
        }
    }
}
