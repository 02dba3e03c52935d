// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

@testable internal import Lifecycle
@testable internal import Pipeline

/// Topics that wait in Kafka because they have taken most of a worker's room.
extension Simulation {
    /// As the planner's loop does it.
    mutating func takeTopicTurns(_ number: Int) throws(SimulationFailure) {
        let worker = workers[number]!
        guard !worker.lifecycle.isDraining else { return }
        let bounds = worker.pipeline.eventBounds(underWay: eventsUnderWay(of: number))
        let waits = worker.turns.waits
        if worker.turns.next(bounds, now: time(of: number).monotonic) { holdTopics(of: number) }
        for topic in SimulationWorker.topics.indices {
            if worker.turns.waits[topic] > waits[topic] {
                worker.topicWaitsSince[topic] = now.monotonic
                coverage.note("topic waits", worker)
                tell("worker \(number) leaves \(SimulationWorker.topics[topic]) in Kafka")
            }
            guard worker.turns.isWaiting(topic) else { continue }
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

    /// Leaves the partitions of topics in Kafka that an operator has paused, or whose turn it is not.
    mutating func holdTopics(of number: Int) {
        let worker = workers[number]!
        let paused = worker.pipeline.restrictions.pausedTopics
        for index in kafka.partitions.indices {
            let topic = Int(kafka.partitions[index].topic)
            worker.consumer.setHeld(
                paused[topic] || worker.turns.isWaiting(topic), .events(index))
        }
    }
}
