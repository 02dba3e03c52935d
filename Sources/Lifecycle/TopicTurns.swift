// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Pipeline
package import PushModel

/// Decides which topics of events wait in Kafka for a while, so that one that is flooded does not
/// take the room of the others.
///
/// librdkafka hands over the records of all topics in one queue, and a worker that has no room
/// stops taking any: a record of a quiet topic would stand behind all that was fetched of the
/// flooded one. So when one of the bounds on events is short, the topics that have taken most of it
/// are left alone. That discards what was fetched of them ahead, which is why they wait for a
/// second, or until much of that bound is free; the rest of the queue, and the room, is for the
/// others.
package struct TopicTurns: Sendable {
    private struct Wait {
        /// Which of the bounds it has taken.
        var bound: Int
        /// With how much of that taken the topic is read again, whatever the room.
        var until: Int
        var since: MonotonicTime
    }

    /// By topic; nil while it is read.
    private var waiting: [Wait?]
    /// By topic, how often it had to wait.
    package private(set) var waits: [Int]

    /// What was fetched ahead is not fetched again more often than this, as long as the room lasts.
    private static let least = Duration.seconds(1)

    package init(topics: Int) {
        waiting = Array(repeating: nil, count: topics)
        waits = Array(repeating: 0, count: topics)
    }

    package func isWaiting(_ topic: Int) -> Bool { waiting[topic] != nil }

    package var isAnyWaiting: Bool { waiting.contains { $0 != nil } }

    /// - Parameter bounds: the same ones each time, in the same order.
    /// - Returns: whether a topic waits or is read that did not or was not before.
    package mutating func next(_ bounds: [EventBound], now: MonotonicTime) -> Bool {
        var isChanged = false
        for topic in waiting.indices {
            guard let wait = waiting[topic], isOver(wait, of: topic, bounds[wait.bound], now: now)
            else { continue }
            waiting[topic] = nil
            isChanged = true
        }
        for (index, bound) in bounds.enumerated() where bound.isShort {
            let ours = bound.taken.count { $0 != nil }
            // Alone it delays nobody.
            guard ours > 1 else { break }
            for topic in waiting.indices where waiting[topic] == nil {
                guard let taken = bound.taken[topic], taken > 0, taken * 2 * ours >= bound.total
                else { continue }
                waiting[topic] = Wait(bound: index, until: taken / 2, since: now)
                waits[topic] += 1
                isChanged = true
            }
        }
        return isChanged
    }

    private func isOver(
        _ wait: Wait, of topic: Int, _ bound: EventBound, now: MonotonicTime
    ) -> Bool {
        guard let taken = bound.taken[topic] else { return true }
        // Its events may wait for something else than room, such as an acknowledgement of Kafka's.
        return bound.isHalfFree || taken <= wait.until
            || !bound.isShort && now - wait.since >= Self.least
    }
}
