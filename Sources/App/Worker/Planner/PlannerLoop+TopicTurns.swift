// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import KafkaLog
internal import Lifecycle
internal import Pipeline
internal import PushModel

/// Leaves the topics of events in Kafka whose turn it is not.
extension PlannerLoop {
    /// How often the topics are looked at, at most.
    private static let interval = Duration.milliseconds(5)

    /// Looks whose turn it is; called once a turn of the planner.
    mutating func takeTopicTurns(now: Now) {
        guard mayTopicsWait, turnsDueAt <= now.monotonic else { return }
        turnsDueAt = now.monotonic + Self.interval
        var events: [Int?] = plan.eventTopics.map { _ in nil }
        for (id, topic) in topicsOfEvents {
            events[topic] = (events[topic] ?? 0) + pipeline.eventsUnderWay(of: id)
        }
        if turns.next(pipeline.eventBounds(underWay: events), now: now.monotonic) {
            holdTopics(now: now)
        }
    }

    /// Whether there is anything to look at. A drain ends soon, and reads nothing meanwhile.
    private var mayTopicsWait: Bool {
        consumer != nil && plan.eventTopics.count > 1 && !lifecycle.isDraining
            && (turns.isAnyWaiting || pipeline.isShortOfRoom)
    }

    /// When to look again, whatever else happens.
    var topicTurnsDue: MonotonicTime {
        turns.isAnyWaiting && mayTopicsWait ? turnsDueAt : .distantFuture
    }

    /// Holds the partitions of the topics that wait, be it for their turn or for an operator, and
    /// releases the others.
    mutating func holdTopics(now: Now) {
        let paused = pipeline.restrictions.pausedTopics
        for (id, topic) in topicsOfEvents {
            if paused[topic] || turns.isWaiting(topic) {
                consumer?.hold(id, now: now)
            } else {
                releaseUnlessWaiting(id, now: now)
            }
        }
    }

    /// Reads the partition again, unless its topic waits or the schema of its next record is awaited.
    mutating func releaseUnlessWaiting(_ id: AssignmentID, now: Now) {
        guard let topic = topicsOfEvents[id], !held.isHeld(id), !turns.isWaiting(topic),
            !pipeline.restrictions.pausedTopics[topic]
        else { return }
        // Where nothing may be read, everything is resumed together later.
        consumer?.release(id, resumes: !lifecycle.isIntakePaused, now: now)
    }
}
