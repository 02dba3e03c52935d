// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Rdkafka

/// Finds out where newly assigned partitions begin, in short attempts, so that the thread that
/// consumes is never away for long. Meanwhile the group waits for our answer and heartbeats go on.
///
/// One partition that cannot be asked about, for want of a leader or of a permission, does not keep
/// the others from being started: it stays in `list`, and later attempts ask for it alone. Only a
/// topic that the group has never read is begun whole (see `NewTopics`).
///
/// Offsets are asked for here and handed to the library as absolute positions, because the library
/// (to this day, issue 5586) gives up on a partition when its own question is answered once with
/// NOT_COORDINATOR, and because falling back to the beginning on an error is never right.
struct StartResolver {
    /// What has no start yet.
    private(set) var list: TopicPartitionList
    /// Why, of those of `list` that the last attempt could not start.
    private(set) var faults: [TopicPartition: RdkafkaError] = [:]
    /// Some of the partitions have started: the group has its answer, and the rest has time.
    private var isPartial = false
    private let topics: [Topic]
    /// Topics that are read from their beginning each time.
    private let replayed: Set<Int>
    private let startFrom: StartFrom
    private let openedAt: Now
    private var nextAttempt: MonotonicTime
    private var attempts = 0
    private var newTopics = NewTopics()
    /// Since when the log seems to end before what the group has committed.
    private var truncatedSince: [TopicPartition: MonotonicTime] = [:]
    private let openedTopics: Set<String>

    struct Start {
        var topic: Int
        var partition: Int32
        var decision: StartRule.Decision
        var committed: Int64?
    }

    enum Outcome {
        /// These can be read, in the order of `list`; what is left of it waits for another attempt.
        case started([Start])
        case again
        case failed(RdkafkaError)
    }

    static let attemptInterval = Duration.milliseconds(100)
    /// Of what is left behind: each attempt keeps the thread from its pushes for a moment.
    static let partialIntervalMax = Duration.seconds(5)
    /// After this the consumer is better closed and opened again.
    private static let patience = Duration.seconds(30)
    /// A new leader may know of a lower end for a moment.
    private static let truncationPatience = Duration.seconds(3)

    init(
        list: TopicPartitionList, topics: [Topic], replayed: Set<Int>, startFrom: StartFrom,
        now: Now
    ) {
        self.list = list
        self.topics = topics
        self.replayed = replayed
        self.startFrom = startFrom
        openedAt = now
        nextAttempt = now.monotonic
        openedTopics = Set(
            (0..<list.count).filter { list[$0].partition == 0 }.map { list[$0].topic })
    }

    var nextAttemptAt: MonotonicTime { nextAttempt }

    /// How long one question may keep the thread; the first that gets no answer ends the attempt.
    private var questionTimeout: Duration { isPartial ? .milliseconds(300) : .seconds(1) }

    mutating func attempt(with client: Client, now: Now) -> Outcome {
        guard now.monotonic >= nextAttempt else { return .again }
        let interval = Self.attemptInterval * (1 << min(attempts, 10))
        nextAttempt =
            now.monotonic
            + (isPartial ? min(interval, Self.partialIntervalMax) : Self.attemptInterval)
        if isPartial { attempts += 1 }
        if list.isEmpty { return .started([]) }
        // A new topic is asked about whole; what is wrong with others' partitions they tell.
        defer { if !faults.isEmpty { keepOwnFaults() } }
        do throws(RdkafkaError) {
            guard let starts = try resolve(with: client, now: now) else { return .again }
            if isPartial, starts.isEmpty { return .again }
            isPartial = true
            let started = Set(starts.map { TopicPartition($0, topics) })
            list = list.filter { !started.contains(TopicPartition($0)) }
            return .started(starts)
        } catch {
            if isPartial { return .again }
            let isOver = waited(now) >= Self.patience
            return isOver || !error.code.passesByItself ? .failed(error) : .again
        }
    }

    private mutating func keepOwnFaults() {
        let ours = Set((0..<list.count).map { TopicPartition(list[$0]) })
        faults = faults.filter { key, _ in ours.contains(key) }
    }

    /// The group has taken these back.
    mutating func remove(_ partitions: TopicPartitionList) {
        let gone = Set((0..<partitions.count).map { TopicPartition(partitions[$0]) })
        list = list.filter { !gone.contains(TopicPartition($0)) }
    }

    private func waited(_ now: Now) -> Duration { now.monotonic - openedAt.monotonic }

    /// Nil means to wait for another member, or for a leader to show its log's end.
    private mutating func resolve(
        with client: Client, now: Now
    ) throws(RdkafkaError) -> [Start]? {
        faults = [:]
        var committed = try client.committed(list, timeout: questionTimeout)
            .positions(faults: &faults)
        let neverRead = try topicsNeverRead(committed: &committed, client: client)
        for topic in neverRead { newTopics.seen(topic.name, at: now.monotonic) }
        let awaited = neverRead.filter {
            !openedTopics.contains($0.name) && newTopics.isAwaited($0.name, at: now.monotonic)
        }
        if !awaited.isEmpty, !isPartial { return nil }
        for topic in awaited { setAside(topic.name, because: Self.openerAwaited) }
        let begun = neverRead.filter { topic in !awaited.contains { $0.name == topic.name } }

        // Beside those we were given all partitions of the topics we open; and of those that we
        // begin without their opener, to know whether they are whole.
        let wanted = list.filter { faults[TopicPartition($0)] == nil }
        let ours = wanted.count
        for topic in begun where openedTopics.contains(topic.name) || startFrom != .earliest {
            for partition in 0..<topic.partitionCount {
                let key = TopicPartition(topic: topic.name, partition: partition)
                guard committed[key] == nil, faults[key] == nil else { continue }
                wanted.append(topic: topic.name, partition: partition)
            }
        }
        let evidence = try self.evidence(for: wanted, committed: committed, client: client)
        let held = hold(begun, evidence, now: now)
        var starts: [Start] = []
        var others: [Start] = []
        for index in 0..<wanted.count {
            let key = TopicPartition(wanted[index])
            guard index < ours || openedTopics.contains(key.topic), !held.contains(key.topic),
                let evidence = evidence[key]
            else { continue }
            if index < ours {
                starts.append(start(key, evidence))
            } else {
                others.append(start(key, evidence))
            }
        }
        let early = truncatedLately(starts, now: now)
        if !early.isEmpty {
            guard isPartial else { return nil }
            starts.removeAll { early.contains(TopicPartition($0, topics)) }
        }
        let refused = try commit(starts + others, client: client)
        return starts.filter { !refused.contains(TopicPartition($0, topics)) }
    }

    /// Those whose leaders are given more time to show the ends of their logs.
    private mutating func truncatedLately(_ starts: [Start], now: Now) -> Set<TopicPartition> {
        let earlier = truncatedSince
        truncatedSince = [:]
        for start in starts where start.decision.loss == .truncation {
            let key = TopicPartition(start, topics)
            truncatedSince[key] = earlier[key] ?? now.monotonic
        }
        return Set(
            truncatedSince.filter { now.monotonic - $0.value < Self.truncationPatience }.keys)
    }

    private func start(_ key: TopicPartition, _ evidence: StartEvidence) -> Start {
        let topic = topics.firstIndex { $0.name == key.topic } ?? 0
        let isReplayed = replayed.contains(topic)
        return Start(
            topic: topic, partition: key.partition,
            decision: isReplayed
                ? StartRule.Decision(offset: evidence.low, commits: false)
                : StartRule.decide(evidence, startFrom: startFrom),
            committed: isReplayed ? nil : evidence.committed)
    }

    /// Start positions are committed before the first record is read: from here on "never
    /// committed" means a partition that was added.
    /// - Returns: those that the group may not commit: they cannot be read either.
    private mutating func commit(
        _ starts: [Start], client: Client
    ) throws(RdkafkaError) -> Set<TopicPartition> {
        let list = TopicPartitionList(capacity: starts.count)
        for start in starts where start.decision.commits {
            list.append(
                topic: topics[start.topic].name, partition: start.partition,
                offset: start.decision.offset)
        }
        guard !list.isEmpty else { return [] }
        let answer = try client.commit(list, timeout: questionTimeout)
        var refused: [TopicPartition: RdkafkaError] = [:]
        _ = try answer.positions(faults: &refused)
        faults.merge(refused) { _, new in new }
        return Set(refused.keys)
    }

    // MARK: Topics the group has never read

    /// The member that is given a new topic's partition 0 commits the start of all its partitions.
    /// Without that, a member that is a moment late would find the first commits of the others,
    /// take its own partitions for added ones and read them from the beginning. For the same reason
    /// nothing of the topic is begun while one of its partitions is away. Should the opener not
    /// come, the others go ahead on their own; its later commit is of positions that it asked for
    /// earlier, so it moves nobody forward.
    private mutating func topicsNeverRead(
        committed: inout [TopicPartition: Int64?], client: Client
    ) throws(RdkafkaError) -> [TopicMetadata] {
        var new: [TopicMetadata] = []
        for (index, topic) in topics.enumerated() where !replayed.contains(index) {
            let ours = committed.filter { $0.key.topic == topic.name }
            guard !ours.isEmpty, ours.allSatisfy({ $0.value == nil }) else { continue }
            let metadata = try client.metadata(of: topic, timeout: questionTimeout)
            guard metadata.error == .none else {
                let error = RdkafkaError(metadata.error)
                guard error.code.concernsPartitions else { throw error }
                for key in ours.keys { faults[key] = error }
                continue
            }
            let all = TopicPartitionList(capacity: Int(metadata.partitionCount))
            for partition in 0..<metadata.partitionCount {
                all.append(topic: topic.name, partition: partition)
            }
            var unknown: [TopicPartition: RdkafkaError] = [:]
            let others = try client.committed(all, timeout: questionTimeout)
                .positions(faults: &unknown)
            if others.values.allSatisfy({ $0 == nil }) { new.append(metadata) }
            // The opener may have committed between the two questions.
            for key in ours.keys {
                if let offset = others[key] { committed.updateValue(offset, forKey: key) }
            }
        }
        return new
    }

    /// - Returns: those of which nothing is begun yet, for want of a partition.
    private mutating func hold(
        _ begun: [TopicMetadata], _ evidence: [TopicPartition: StartEvidence], now: Now
    ) -> Set<String> {
        // The beginning is where an added partition begins as well.
        guard startFrom != .earliest else { return [] }
        var held: Set<String> = []
        for topic in begun {
            let missing = (0..<topic.partitionCount).map {
                TopicPartition(topic: topic.name, partition: $0)
            }.first { evidence[$0] == nil }
            let mayBegin = newTopics.mayBegin(
                topic.name, isWhole: missing == nil,
                isOpener: openedTopics.contains(topic.name), at: now.monotonic)
            if mayBegin { continue }
            held.insert(topic.name)
            let cause = missing.map { missing in
                RdkafkaError(
                    (faults[missing] ?? Self.openerAwaited).code,
                    message: "\(missing.topic)/\(missing.partition) is away: a topic that the "
                        + "group has never read is begun whole, or after a minute without it")
            }
            setAside(topic.name, because: cause ?? Self.openerAwaited)
        }
        return held
    }

    private mutating func setAside(_ topic: String, because cause: RdkafkaError) {
        for index in 0..<list.count where list[index].topic == topic {
            faults[TopicPartition(list[index])] = cause
        }
    }

    private static let openerAwaited = RdkafkaError(
        .leaderNotAvailable, message: "the member that has partition 0 begins a new topic first")

    // MARK: Evidence

    /// Of those that could be asked about; the others are in `faults`.
    private mutating func evidence(
        for wanted: TopicPartitionList, committed: [TopicPartition: Int64?], client: Client
    ) throws(RdkafkaError) -> [TopicPartition: StartEvidence] {
        var questions = OffsetQuestions(
            topics: topics, client: client, isAskedApart: isPartial, timeout: questionTimeout)
        let lows = try questions.offsets(of: wanted, at: Offset.beginning)
        let highs = try questions.offsets(of: wanted, at: Offset.end)
        var times: [TopicPartition: Int64] = [:]
        if case .ago(let age) = startFrom, !newTopics.isEmpty {
            let since = (openedAt.wall + (.zero - age)).milliseconds
            times = try questions.offsets(of: wanted, at: max(0, since))
        }
        faults.merge(questions.faults) { _, new in new }
        var result: [TopicPartition: StartEvidence] = [:]
        for index in 0..<wanted.count {
            let key = TopicPartition(wanted[index])
            guard faults[key] == nil else { continue }
            guard let low = lows[key], let high = highs[key] else {
                faults[key] = RdkafkaError(.leaderNotAvailable)
                continue
            }
            var atTime = times[key]
            if atTime == Offset.end { atTime = try isEmbedded(client) ? low : nil }
            result[key] = StartEvidence(
                committed: committed[key] ?? nil, low: low, high: high,
                isNewTopic: newTopics.contains(key.topic), atTime: atTime)
        }
        return result
    }

    /// The mock cluster answers "none" to every time, so there that answer says nothing and the
    /// beginning is the safe reading of it. Its cluster id gives it away; a real one is a UUID.
    private func isEmbedded(_ client: Client) throws(RdkafkaError) -> Bool {
        guard let id = client.clusterID(timeout: questionTimeout) else {
            throw RdkafkaError(.timedOut, message: "the cluster did not tell its id in time")
        }
        return id.hasPrefix(Client.mockClusterIDPrefix)
    }
}

extension TopicPartition {
    fileprivate init(_ start: StartResolver.Start, _ topics: [Topic]) {
        self.init(topic: topics[start.topic].name, partition: start.partition)
    }
}
