// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Decides which topics of events wait in Kafka for a while, so that one that is flooded does not
/// take the room of the others.
///
/// librdkafka hands over the records of all topics in one queue, and a worker that has no room stops
/// taking any: a record of a quiet topic would stand behind all that was fetched of the flooded one.
/// So when room is short, the topics that have taken most of it are left alone. That discards what
/// was fetched of them ahead, which is why they wait for a second, or until much room is free; the
/// rest of the queue, and the room, is for the others.
package struct TopicTurns: Sendable {
    package struct Load: Sendable {
        /// By topic, the events that were read and have not ended; nil where no partition is ours.
        package var events: [Int?]
        /// Whether hardly another event fits.
        package var isShortOfRoom: Bool
        /// Whether half of the room is free.
        package var isHalfFree: Bool

        package init(events: [Int?], isShortOfRoom: Bool, isHalfFree: Bool) {
            self.events = events
            self.isShortOfRoom = isShortOfRoom
            // Payloads may be short of room while there are slots. Then a topic would be left and read
            // again in each turn.
            self.isHalfFree = isHalfFree && !isShortOfRoom
        }
    }

    private struct Wait {
        /// With how many events under way the topic is read again, whatever the room.
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

    /// - Returns: whether a topic waits or is read that did not or was not before.
    package mutating func next(_ load: Load, now: MonotonicTime) -> Bool {
        var isChanged = false
        for topic in waiting.indices {
            guard let wait = waiting[topic], isOver(wait, load.events[topic], load, now: now)
            else { continue }
            waiting[topic] = nil
            isChanged = true
        }
        let ours = load.events.compactMap(\.self)
        // Alone it delays nobody.
        guard load.isShortOfRoom, ours.count > 1 else { return isChanged }
        let all = ours.reduce(0, +)
        for topic in waiting.indices where waiting[topic] == nil {
            guard let events = load.events[topic], events > 0, events * 2 * ours.count >= all
            else { continue }
            waiting[topic] = Wait(until: events / 2, since: now)
            waits[topic] += 1
            isChanged = true
        }
        return isChanged
    }

    private func isOver(
        _ wait: Wait, _ events: Int?, _ load: Load, now: MonotonicTime
    ) -> Bool {
        guard let events else { return true }
        // Its events may wait for something else than room, such as an acknowledgement of Kafka's.
        return load.isHalfFree || events <= wait.until
            || !load.isShortOfRoom && now - wait.since >= Self.least
    }
}
