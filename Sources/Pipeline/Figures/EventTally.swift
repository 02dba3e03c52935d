// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
package import PushModel

/// Counts the events that were read, by topic and by what came of them, and keeps some of the
/// subjects of those that reached nobody.
package struct EventTally: ~Copyable {
    package enum Outcome: Int, Sendable, CaseIterable {
        /// Somebody shows its subject: pushes were made, or joined.
        case matched
        /// Written again as shards, which come as events of their own; of an event of several kinds,
        /// perhaps one of these alone.
        case split
        /// Nobody showed its subject when it was read.
        case unmatched
        /// Its subject is shown, but by no token that it is for: none of its classes, its kinds, its
        /// environment and the class that its push type is sent to.
        case passedOver
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
        /// It was for more tokens than `planning.fanOutMax`, and waits as a dead letter to be
        /// released.
        case withheld
    }

    /// What an event came to whose subject is kept as an example.
    package enum SampledOutcome: Int, Sendable, CaseIterable {
        case unmatched, passedOver

        package var outcome: Outcome {
            switch self {
            case .unmatched: .unmatched
            case .passedOver: .passedOver
            }
        }
    }

    /// The latest subjects of a topic that reached nobody, each once, the newest last.
    package struct Sighting: Codable, Sendable, Equatable {
        package var subject: String
        package var at: WallTime
    }

    private var counts: Column<Int>
    private var expired = ExpiredEvents()
    /// Events under way through large audiences, of which no token has been found yet.
    private var undecided = 0
    /// By topic, and by what the events came to.
    private var samples: [[Sighting]]
    /// When the next subject of a sample may be kept.
    private var sampleDueAt: Column<MonotonicTime>
    private let byAddress = PassedByAddress()

    private static let outcomes = Outcome.allCases.count
    private static let sampledOutcomes = SampledOutcome.allCases.count
    package static let sampleMax = 16
    /// A flood of events without an audience costs next to nothing.
    private static let sampleInterval = Duration.milliseconds(100)

    init(topics: Int) {
        counts = Column(capacity: topics * Self.outcomes)
        counts.resize(to: topics * Self.outcomes, filling: 0)
        let sampled = topics * Self.sampledOutcomes
        samples = Array(repeating: [], count: sampled)
        sampleDueAt = Column(capacity: sampled)
        sampleDueAt.resize(to: sampled, filling: MonotonicTime(nanoseconds: .min))
    }

    mutating func ended(_ outcome: Outcome, topic: Int) {
        counts[topic &* Self.outcomes &+ outcome.rawValue] &+= 1
    }

    /// Events that reached nobody. Their subject is kept if none was for a while.
    @inline(never)
    mutating func reachedNobody(
        _ outcome: SampledOutcome, _ subject: UnsafeRawBufferPointer, topic: Int, count: Int = 1,
        now: Now
    ) {
        counts[topic &* Self.outcomes &+ outcome.outcome.rawValue] &+= count
        let sample = topic * Self.sampledOutcomes + outcome.rawValue
        if sampleDueAt[sample] <= now.monotonic { keep(subject, sample, now: now) }
    }

    /// An event is under way, and a fan-out will say whether a token is found for it.
    mutating func wait() { undecided += 1 }

    /// Events whose outcome is known now, or will be counted by `reachedNobody`.
    mutating func decided(_ count: Int) { undecided -= count }

    mutating func matched(_ count: Int, topic: Int) {
        counts[topic &* Self.outcomes &+ Outcome.matched.rawValue] &+= count
    }

    /// An operator has dropped events that were under way.
    mutating func dropped(_ count: Int, topic: Int) {
        counts[topic &* Self.outcomes &+ Outcome.dropped.rawValue] &+= count
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

    private mutating func keep(_ subject: UnsafeRawBufferPointer, _ sample: Int, now: Now) {
        // An event of whole kinds has no subject.
        guard !subject.isEmpty else { return }
        sampleDueAt[sample] = now.monotonic + Self.sampleInterval
        samples[sample].removeAll { $0.subject.utf8.elementsEqual(subject) }
        if samples[sample].count == Self.sampleMax { samples[sample].removeFirst() }
        samples[sample].append(
            Sighting(subject: String(decoding: subject, as: UTF8.self), at: now.wall))
    }

    // MARK: What was counted

    package func count(_ outcome: Outcome, topic: Int) -> Int {
        counts[topic * Self.outcomes + outcome.rawValue]
    }

    /// The events of all topics but those that were skipped, or counted by the owner before.
    var read: Int {
        var read = undecided
        for cell in 0..<counts.count { read += counts[cell] }
        return read - total(.skipped) - total(.remembered)
    }

    func total(_ outcome: Outcome) -> Int {
        var total = 0
        for topic in 0..<samples.count / Self.sampledOutcomes {
            total += count(outcome, topic: topic)
        }
        return total
    }

    package func sample(_ outcome: SampledOutcome, topic: Int) -> [Sighting] {
        samples[topic * Self.sampledOutcomes + outcome.rawValue]
    }
}
