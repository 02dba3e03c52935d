// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import KafkaLog
internal import Lifecycle
internal import Pipeline
internal import PushModel

/// Leaves partitions of events in Kafka, as `TopicHolds` decides.
extension PlannerLoop {
    /// Looks whose turn it is; called once a turn of the planner. A drain ends soon, and reads nothing
    /// meanwhile.
    mutating func takeTopicTurns(now: Now) {
        guard consumer != nil, !lifecycle.isDraining,
            holds.isLookDue(isShortOfRoom: pipeline.isShortOfRoom, now: now.monotonic)
        else { return }
        var events: [Int?] = plan.eventTopics.map { _ in nil }
        for (id, topic) in holds.topics {
            events[topic] = (events[topic] ?? 0) + pipeline.eventsUnderWay(of: id)
        }
        if holds.look(pipeline.eventBounds(underWay: events), now: now.monotonic) {
            applyHolds(now: now)
        }
    }

    /// When to look again, whatever else happens.
    var topicTurnsDue: MonotonicTime {
        consumer == nil || lifecycle.isDraining
            ? .distantFuture : holds.nextDue(isShortOfRoom: pipeline.isShortOfRoom)
    }

    /// Holds the partitions that are not to be read, and releases the others.
    mutating func applyHolds(now: Now) {
        for id in holds.topics.keys { applyHold(id, now: now) }
    }

    mutating func applyHold(_ id: AssignmentID, now: Now) {
        if holds.cause(of: id) == nil {
            // Where nothing may be read, everything is resumed together later.
            consumer?.release(id, resumes: !lifecycle.isIntakePaused, now: now)
        } else {
            consumer?.hold(id, now: now)
        }
    }
}
