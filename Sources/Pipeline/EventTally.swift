// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
package import PushModel

/// Counts the events that were read, by topic and by what came of them, and keeps some of the
/// subjects that nobody shows.
package struct EventTally: ~Copyable {
    package enum Outcome: Int, Sendable, CaseIterable {
        /// Somebody shows its subject: pushes were made, or joined.
        case matched
        /// Written again as shards, which come as events of their own; of an event of several kinds,
        /// perhaps one of these alone.
        case split
        /// Nobody showed its subject when it was read.
        case unmatched
        case unreadable
        /// Its topic's binding leaves it out: `when`, an operation, a tombstone, a missing field.
        case filtered
        /// It had expired when it was read.
        case expired
        /// The operator asked for it not to be read.
        case skipped
        /// It had ended under the owner of its partition before, and was read again for tokens that
        /// have registered since.
        case remembered
        /// An operator has dropped its topic or its subject; of an event of several subjects, all.
        case dropped
    }

    /// The latest subjects of a topic that nobody showed, each once, the newest last.
    package struct Sighting: Sendable, Equatable {
        package var subject: [UInt8]
        package var at: WallTime
    }

    private var counts: Column<Int>
    private var expired = ExpiredEvents()
    /// By topic.
    private var samples: [[Sighting]]
    /// When the next subject of a topic may be kept.
    private var sampleDueAt: Column<MonotonicTime>
    private let byAddress = PassedByAddress()

    private static let outcomes = Outcome.allCases.count
    package static let sampleMax = 16
    /// A flood of events without an audience costs next to nothing.
    private static let sampleInterval = Duration.milliseconds(100)

    init(topics: Int) {
        counts = Column(capacity: topics * Self.outcomes)
        counts.resize(to: topics * Self.outcomes, filling: 0)
        samples = Array(repeating: [], count: topics)
        sampleDueAt = Column(capacity: topics)
        sampleDueAt.resize(to: topics, filling: MonotonicTime(nanoseconds: .min))
    }

    mutating func ended(_ outcome: Outcome, topic: Int) {
        counts[topic &* Self.outcomes &+ outcome.rawValue] &+= 1
    }

    /// An event without an audience was read. Its subject is kept if none was for a while.
    @inline(never)
    mutating func unmatched(_ subject: UnsafeRawBufferPointer, topic: Int, now: Now) {
        ended(.unmatched, topic: topic)
        if sampleDueAt[topic] <= now.monotonic { keep(subject, topic, now: now) }
    }

    /// An event was read that had expired by then.
    /// - Parameter writtenAt: the record's timestamp; negative where the broker keeps none.
    @inline(never)
    mutating func expired(_ event: Event, writtenAt: WallTime, topic: Int, now: Now) {
        ended(.expired, topic: topic)
        if event.expiresAt <= writtenAt {
            expired.beforeWritten += 1
        } else {
            expired.whileWaiting += 1
            guard writtenAt.milliseconds >= 0 else { return }
            expired.waitMax = max(expired.waitMax, now.wall - writtenAt)
        }
    }

    /// Returns what has expired since the last call.
    mutating func takeExpired() -> ExpiredEvents {
        defer { expired = ExpiredEvents() }
        return expired
    }

    private mutating func keep(_ subject: UnsafeRawBufferPointer, _ topic: Int, now: Now) {
        // An event of whole kinds has no subject.
        guard !subject.isEmpty else { return }
        sampleDueAt[topic] = now.monotonic + Self.sampleInterval
        samples[topic].removeAll { $0.subject.elementsEqual(subject) }
        if samples[topic].count == Self.sampleMax { samples[topic].removeFirst() }
        samples[topic].append(Sighting(subject: Array(subject), at: now.wall))
    }

    // MARK: What was counted

    package func count(_ outcome: Outcome, topic: Int) -> Int {
        counts[topic * Self.outcomes + outcome.rawValue]
    }

    /// The events of all topics but those that were skipped, or counted by the owner before.
    var read: Int {
        Outcome.allCases.reduce(0) {
            $1 == .skipped || $1 == .remembered ? $0 : $0 + total($1)
        }
    }

    func total(_ outcome: Outcome) -> Int {
        samples.indices.reduce(0) { $0 + count(outcome, topic: $1) }
    }

    package func sample(topic: Int) -> [Sighting] { samples[topic] }
}
