// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Rdkafka

/// Finds the start offsets of newly assigned partitions, in short attempts, so that the consuming
/// thread is never blocked for long. Meanwhile the group waits for this member's answer, and
/// heartbeats go on.
///
/// A partition without a leader or without permission does not prevent the others from being
/// started: it stays in `list`, and later attempts ask for it alone. Only a topic that the group
/// has never read starts as a whole (see `NewTopics`).
///
/// Offsets are requested here and handed to librdkafka as absolute positions, because librdkafka
/// gives up on a partition when its own request gets NOT_COORDINATOR once (issue 5586), and because
/// falling back to the beginning on an error is never right.
struct StartResolver {
    /// The partitions that are not started yet.
    private(set) var list: TopicPartitionList
    /// Why the last attempt could not start partitions of `list`.
    private(set) var faults: [TopicPartition: RdkafkaError] = [:]
    /// Whether some partitions have started. Then the group has its answer, and the others are not
    /// urgent.
    private var isPartial = false
    private let topics: [Topic]
    /// The positions in `topics` of those that are read from their beginning in every assignment.
    private let replayed: Set<Int>
    private let startFrom: StartFrom
    private let openedAt: Now
    private var nextAttempt: MonotonicTime
    private var attempts = 0
    private var newTopics = NewTopics()
    /// Since when the log of a partition seems to end below its committed offset.
    private var truncatedSince: [TopicPartition: MonotonicTime] = [:]
    private let openedTopics: Set<String>

    struct Start {
        var topic: Int
        var partition: Int32
        var decision: StartRule.Decision
        var committed: Int64?
        /// The metadata of the committed offset, if reading starts there.
        var metadata: String?
        /// The offset after the newest record.
        var logEnd: Int64
    }

    enum Outcome {
        /// These partitions can be read, in the order of `list`. The rest of `list` waits for
        /// another attempt.
        case started([Start])
        case again
        case failed(RdkafkaError)
    }

    static let attemptInterval = Duration.milliseconds(100)
    /// The longest interval between attempts once some partitions have started, since each attempt
    /// blocks the thread for a moment.
    static let partialIntervalMax = Duration.seconds(5)
    /// How long attempts may fail before the consumer is restarted.
    private static let patience = Duration.seconds(30)
    /// How long a log may seem truncated: a new leader may report a lower end for a moment.
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

    /// How long one request may block the thread. The first that gets no answer ends the attempt.
    private var questionTimeout: Duration { isPartial ? .milliseconds(300) : .seconds(1) }

    mutating func attempt(with client: Client, now: Now) -> Outcome {
        guard now.monotonic >= nextAttempt else { return .again }
        let interval = Self.attemptInterval * (1 << min(attempts, 10))
        nextAttempt =
            now.monotonic
            + (isPartial ? min(interval, Self.partialIntervalMax) : Self.attemptInterval)
        if isPartial { attempts += 1 }
        if list.isEmpty { return .started([]) }
        // All partitions of a new topic are examined, but their owners report what is wrong with
        // them.
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

    /// Forgets partitions that the group has taken back.
    mutating func remove(_ partitions: TopicPartitionList) {
        let gone = Set((0..<partitions.count).map { TopicPartition(partitions[$0]) })
        list = list.filter { !gone.contains(TopicPartition($0)) }
    }

    private func waited(_ now: Now) -> Duration { now.monotonic - openedAt.monotonic }

    /// The partitions that can be started now. Nil if another member must act first, or a leader
    /// gets more time to report its log's end.
    private mutating func resolve(
        with client: Client, now: Now
    ) throws(RdkafkaError) -> [Start]? {
        faults = [:]
        let answer = try client.committed(list, timeout: questionTimeout)
        var committed = try answer.positions(faults: &faults)
        let metadata = answer.metadataOfPartitions
        let neverRead = try topicsNeverRead(committed: &committed, client: client)
        for topic in neverRead { newTopics.seen(topic.name, at: now.monotonic) }
        let awaited = neverRead.filter {
            !openedTopics.contains($0.name) && newTopics.isAwaited($0.name, at: now.monotonic)
        }
        if !awaited.isEmpty, !isPartial { return nil }
        for topic in awaited { setAside(topic.name, because: Self.openerAwaited) }
        let begun = neverRead.filter { topic in !awaited.contains { $0.name == topic.name } }

        // Besides the assigned partitions these are all partitions of the topics that this member
        // opens, and of those that it starts without their opener, to see whether they are
        // complete.
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
                starts.append(start(key, evidence, metadata[key]))
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

    /// The partitions whose logs seem truncated and whose leaders get more time to report the end.
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

    private func start(
        _ key: TopicPartition, _ evidence: StartEvidence, _ metadata: String? = nil
    ) -> Start {
        let topic = topics.firstIndex { $0.name == key.topic }!
        let isReplayed = replayed.contains(topic)
        let decision =
            isReplayed
            ? StartRule.Decision(offset: evidence.low, commits: false)
            : StartRule.decide(evidence, startFrom: startFrom)
        return Start(
            topic: topic, partition: key.partition, decision: decision,
            committed: isReplayed ? nil : evidence.committed,
            metadata: decision.reason == .committed ? metadata : nil, logEnd: evidence.high)
    }

    /// Commits the start offsets before the first record is read, so that from now on a partition
    /// without a commit is one that was added.
    /// - Returns: the partitions that the group may not commit, which must not be read either.
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

    /// The topics in which the group has committed nothing. The opener, the member with partition 0
    /// of such a topic, commits the start offsets of all its partitions. Otherwise a member that is
    /// a moment late would find the first commits of the others, take its own partitions for added
    /// ones and read them from the beginning. For the same reason no partition is started while one
    /// of the topic is unavailable. If the opener does not act, the others go ahead on their own;
    /// its later commit has older offsets, so it makes nobody skip records.
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
            // The opener may have committed between the two requests.
            for key in ours.keys {
                if let offset = others[key] { committed.updateValue(offset, forKey: key) }
            }
        }
        return new
    }

    /// Holds back new topics that may not start yet.
    ///
    /// - Returns: the names of these topics.
    private mutating func hold(
        _ begun: [TopicMetadata], _ evidence: [TopicPartition: StartEvidence], now: Now
    ) -> Set<String> {
        // An added partition starts at the beginning as well, so there is nothing to hold back.
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
                    message: "\(missing.topic)/\(missing.partition) is unavailable: a topic that "
                        + "the group has never read starts as a whole, or after a minute "
                        + "without it")
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
        .leaderNotAvailable, message: "the member with partition 0 starts a new topic first")

    // MARK: Evidence

    /// The evidence for each partition whose offsets could be obtained; the others are in `faults`.
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

    /// Whether this is librdkafka's mock cluster, which its cluster ID shows; a real ID is a UUID.
    /// The mock cluster answers "none" to a request for any time, so with it the safe start is the
    /// beginning.
    private func isEmbedded(_ client: Client) throws(RdkafkaError) -> Bool {
        guard let id = client.clusterID(timeout: questionTimeout) else {
            throw RdkafkaError(.timedOut, message: "the cluster did not report its ID in time")
        }
        return id.hasPrefix(Client.mockClusterIDPrefix)
    }
}

extension TopicPartition {
    fileprivate init(_ start: StartResolver.Start, _ topics: [Topic]) {
        self.init(topic: topics[start.topic].name, partition: start.partition)
    }
}
