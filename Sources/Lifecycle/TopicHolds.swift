// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Pipeline
package import PushModel

/// Which partitions of events are read, and what keeps the others in Kafka.
///
/// Three say no, each for its own reason and for as long as that lasts: an operator who has paused the
/// topic, the topic's turn (`TopicTurns`), and the partition's next record, which cannot be read yet.
package struct TopicHolds: Sendable {
    /// What keeps a partition from being read.
    package enum Cause: Sendable {
        case paused, turn, record
    }

    /// The partitions of events that are ours, and the position of the topic of each.
    package private(set) var topics: [AssignmentID: Int] = [:]
    /// Whose turn it is.
    package private(set) var turns: TopicTurns
    /// By topic, whether an operator has paused it.
    private var paused: [Bool]
    /// Those whose next record waits.
    private var waiting: Set<AssignmentID> = []
    private var turnsDueAt = MonotonicTime(nanoseconds: .min)

    /// How often the turns are looked at, at most.
    private static let interval = Duration.milliseconds(5)

    /// - Parameter topics: how many topics of events there are.
    package init(topics: Int) {
        turns = TopicTurns(topics: topics)
        paused = Array(repeating: false, count: topics)
    }

    // MARK: Facts

    package mutating func assigned(_ id: AssignmentID, topic: Int) { topics[id] = topic }

    package mutating func unassigned(_ id: AssignmentID) {
        topics[id] = nil
        waiting.remove(id)
    }

    /// What operators have paused now, by topic.
    package mutating func pausedTopics(_ paused: [Bool]) {
        precondition(
            paused.count == self.paused.count, "there is one value for each topic that is read")
        self.paused = paused
    }

    /// The partition's next record cannot be read yet.
    package mutating func recordWaits(of id: AssignmentID) { waiting.insert(id) }
    /// All that waited of the partition has been read.
    package mutating func recordsRead(of id: AssignmentID) { waiting.remove(id) }

    // MARK: Decisions

    /// What keeps the partition from being read; nil if it is read, or is none of ours.
    package func cause(of id: AssignmentID) -> Cause? {
        guard let topic = topics[id] else { return nil }
        if paused[topic] { return .paused }
        if turns.isWaiting(topic) { return .turn }
        return waiting.contains(id) ? .record : nil
    }

    /// Whether it is time to look whose turn it is: whether any bound on events is nearly reached, or a
    /// topic waits.
    package func isLookDue(isShortOfRoom: Bool, now: MonotonicTime) -> Bool {
        mayTopicsWait(isShortOfRoom: isShortOfRoom) && turnsDueAt <= now
    }

    /// Decides whose turn it is.
    ///
    /// - Returns: whether the cause of any partition has changed.
    package mutating func look(_ bounds: [EventBound], now: MonotonicTime) -> Bool {
        turnsDueAt = now + Self.interval
        return turns.next(bounds, now: now)
    }

    /// When to look again, whatever else happens.
    package func nextDue(isShortOfRoom: Bool) -> MonotonicTime {
        turns.isAnyWaiting && mayTopicsWait(isShortOfRoom: isShortOfRoom)
            ? turnsDueAt : .distantFuture
    }

    private func mayTopicsWait(isShortOfRoom: Bool) -> Bool {
        paused.count > 1 && (turns.isAnyWaiting || isShortOfRoom)
    }
}
