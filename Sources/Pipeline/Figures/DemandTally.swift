// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Planning
package import PushModel

/// Which subjects, topics and apps ask for most pushes, in the last minute or two: an event asks for a
/// push to each entry of its subject's list. Every `stride`-th push that is asked for stands for
/// `stride` of them, so that an event of many is counted by its size, and one of few costs a
/// subtraction. About 8 KiB.
struct DemandTally {
    /// A prime, so that traffic which repeats itself is not met at the same place each time. Of small
    /// events one in so many is looked at, which costs four instructions of each.
    static let stride = 251
    static let period = Duration.seconds(60)

    private struct Period {
        var startedAt: MonotonicTime
        var pushes = 0
        var subjects = FrequentSubjects()
        /// By the topic's position.
        var topics: [Int: Int] = [:]
        var apps: [AppID: Int] = [:]
    }

    /// How many more are asked for before one is looked at.
    var left = stride
    private var current: Period?
    private var previous: Period?

    /// An event after which `left` is not positive. Not inlined: of small events few.
    ///
    /// - Parameters:
    ///   - seen: of its subject. The count is ours.
    ///   - shards: in how many parts the list is sent, of which this is one.
    @inline(never)
    mutating func look(at seen: FrequentSubjects.Entry, shards: Int, now: MonotonicTime) {
        let strides = -left / Self.stride + 1
        left += strides * Self.stride
        turn(now)
        var seen = seen
        seen.count = strides * Self.stride / shards
        current?.pushes += seen.count
        current?.subjects.count(seen)
        current?.topics[Int(seen.topic), default: 0] += seen.count
        current?.apps[seen.app, default: 0] += seen.count
    }

    /// Begins another period where the last one is over.
    private mutating func turn(_ now: MonotonicTime) {
        if let current, now - current.startedAt < Self.period { return }
        // One that is over for long is no part of the last minutes.
        previous = current.flatMap { now - $0.startedAt < Self.period * 2 ? $0 : nil }
        current = Period(startedAt: now)
    }

    /// What was asked for, and since when.
    mutating func sum(_ now: MonotonicTime) -> Sum {
        turn(now)
        let periods = [previous, current].compactMap { $0 }
        var sum = Sum(since: periods.first?.startedAt ?? now)
        for period in periods {
            sum.pushes += period.pushes
            sum.topics.merge(period.topics, uniquingKeysWith: +)
            sum.apps.merge(period.apps, uniquingKeysWith: +)
            for entry in period.subjects.entries {
                let known = sum.subjects.firstIndex {
                    $0.subject == entry.subject && $0.tag == entry.tag
                }
                var entry = entry
                if let known {
                    entry.count += sum.subjects[known].count
                    sum.subjects[known] = entry
                } else {
                    sum.subjects.append(entry)
                }
            }
        }
        return sum
    }

    struct Sum {
        var since: MonotonicTime
        var pushes = 0
        var subjects: [FrequentSubjects.Entry] = []
        var topics: [Int: Int] = [:]
        var apps: [AppID: Int] = [:]
    }
}

/// Who asks for most pushes, the first of them first. Figures are estimates: too high by as much as the
/// rarest that is told apart, and to within some hundreds.
package struct PushDemand: Codable, Sendable, Equatable {
    package struct Subject: Codable, Sendable, Equatable {
        package var app: String
        /// `subject`; or `kind` of a kind of controls and widgets, which events of whole kinds are for.
        package var unit = "subject"
        package var name: String
        /// Of the latest event.
        package var topic: String
        package var pushes: Int
        /// How many entries its list had at the latest event.
        package var audience: Int
    }

    /// A topic, or an app.
    package struct Part: Codable, Sendable, Equatable {
        package var name: String
        package var pushes: Int
    }

    /// The time that the figures are of.
    @Seconds package var over = Duration.zero
    package var pushes = 0
    package var subjects: [Subject] = []
    package var topics: [Part] = []
    package var apps: [Part] = []

    /// The most that are named of each.
    static let most = 10

    package init() {}

    private enum CodingKeys: String, CodingKey {
        case over = "overSeconds"
        case pushes, subjects, topics, apps
    }
}

extension PushPipeline {
    /// Who has asked for most pushes in the last minute or two.
    package mutating func demand(now: Now) -> PushDemand {
        let sum = fanOut.demand.sum(now.monotonic)
        var demand = PushDemand()
        demand.over = now.monotonic - sum.since
        demand.pushes = sum.pushes
        func first<Key>(_ counts: [Key: Int], _ name: (Key) -> String) -> [PushDemand.Part] {
            counts.sorted { $0.value > $1.value }.prefix(PushDemand.most)
                .map { PushDemand.Part(name: name($0.key), pushes: $0.value) }
        }
        demand.topics = first(sum.topics) { state.origins.names[$0] }
        demand.apps = first(sum.apps) { state.routing.name(of: $0) }
        for entry in sum.subjects.sorted(by: { $0.count > $1.count })
        where demand.subjects.count < PushDemand.most {
            let subject = state.name(of: entry.subject, tag: entry.tag, app: entry.app)
            // Nobody shows it any more, or it is an installation, which is not named.
            guard !subject.isEmpty else { continue }
            demand.subjects.append(
                PushDemand.Subject(
                    app: state.routing.name(of: entry.app),
                    unit: state.audience.scope(of: entry.subject) == .kindWide ? "kind" : "subject",
                    name: String(decoding: subject, as: UTF8.self),
                    topic: state.origins.names[Int(entry.topic)], pushes: entry.count,
                    audience: entry.audience))
        }
        return demand
    }
}
