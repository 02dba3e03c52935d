// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Decides which topics of events wait in Kafka for a while, so that one that is flooded delays no
/// other.
///
/// librdkafka hands over the records of all topics in one queue, and their pushes share one room: a
/// record of a quiet topic would stand behind all that was fetched of the flooded one. So a topic of
/// which much is under way here is left alone until half of that has ended. That discards what was
/// fetched of it ahead; the rest of the queue, and of the room, is for the others.
package struct TopicTurns: Sendable {
    /// What is under way.
    package struct Load: Sendable {
        /// By topic, the events that were read and have not ended; nil where no partition is ours.
        package var events: [Int?]
        /// The pushes that there is room for.
        package var slots: Int
        /// Whether little of that room is left for further events.
        package var isShortOfRoom: Bool
        /// The pushes that have ended since the start.
        package var ended: Int

        package init(events: [Int?], slots: Int, isShortOfRoom: Bool, ended: Int) {
            self.events = events
            self.slots = slots
            self.isShortOfRoom = isShortOfRoom
            self.ended = ended
        }
    }

    /// By topic, with how many events under way it is read again; nil while it is read.
    private var resumesAt: [Int?]
    /// By topic, how often it had to wait.
    package private(set) var waits: [Int]
    private var measuredAt: MonotonicTime?
    private var endedThen = 0
    /// Pushes that ended in the last whole second.
    private var rate = 0

    private static let measured = Duration.seconds(1)

    package init(topics: Int) {
        resumesAt = Array(repeating: nil, count: topics)
        waits = Array(repeating: 0, count: topics)
    }

    package func isWaiting(_ topic: Int) -> Bool { resumesAt[topic] != nil }

    package var isAnyWaiting: Bool { resumesAt.contains { $0 != nil } }

    /// Fewer events under way than this never make a topic wait as long as there is room.
    package static func leastCrowd(slots: Int) -> Int { max(1, slots / 8) }

    /// - Returns: whether a topic waits or is read that did not or was not before.
    package mutating func next(_ load: Load, now: MonotonicTime) -> Bool {
        measure(load.ended, now: now)
        var isChanged = false
        for topic in resumesAt.indices {
            guard let resumesAt = resumesAt[topic] else { continue }
            if let events = load.events[topic], events > resumesAt { continue }
            self.resumesAt[topic] = nil
            isChanged = true
        }
        let ours = load.events.compactMap(\.self)
        // Alone it delays nobody.
        guard ours.count > 1 else { return isChanged }
        let all = ours.reduce(0, +)
        // About what ends in a second, lest it is fetched again more often than that.
        let crowd = min(max(Self.leastCrowd(slots: load.slots), rate), load.slots / 2)
        for topic in resumesAt.indices where resumesAt[topic] == nil {
            guard let events = load.events[topic], events > 0,
                events >= crowd || load.isShortOfRoom && events * 2 * ours.count >= all
            else { continue }
            resumesAt[topic] = events / 2
            waits[topic] += 1
            isChanged = true
        }
        return isChanged
    }

    private mutating func measure(_ ended: Int, now: MonotonicTime) {
        guard let measuredAt else {
            measuredAt = now
            endedThen = ended
            return
        }
        let passed = now - measuredAt
        guard passed >= Self.measured else { return }
        rate = Int(Double(ended - endedThen) / (passed / .seconds(1)))
        self.measuredAt = now
        endedThen = ended
    }
}
