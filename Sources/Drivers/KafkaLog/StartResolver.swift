// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Rdkafka

/// Finds out where newly assigned partitions begin, in short attempts, so that the thread that
/// consumes is never away for long. Meanwhile the group waits for our answer and heartbeats go on.
///
/// Offsets are asked for here and handed to the library as absolute positions, because the library
/// (to this day, issue 5586) gives up on a partition when its own question is answered once with
/// NOT_COORDINATOR, and because falling back to the beginning on an error is never right.
struct StartResolver {
    let list: TopicPartitionList
    private let topics: [Topic]
    /// Topics that are read from their beginning each time.
    private let replayed: Set<Int>
    private let startFrom: StartFrom
    private let openedAt: Now
    private var nextAttempt: MonotonicTime

    struct Start {
        var topic: Int
        var partition: Int32
        var decision: StartRule.Decision
        var committed: Int64?
    }

    enum Outcome {
        /// In the order of `list`.
        case ready([Start])
        case again
        case failed(RdkafkaError)
    }

    /// How long one question may keep the thread; the first that gets no answer ends the attempt.
    private static let questionTimeout = Duration.seconds(1)
    static let attemptInterval = Duration.milliseconds(100)
    /// After this the consumer is better closed and opened again.
    private static let patience = Duration.seconds(30)
    /// How long others wait for the member that opens a topic (see `isOpener`).
    private static let openerPatience = Duration.seconds(5)
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
    }

    var nextAttemptAt: MonotonicTime { nextAttempt }

    mutating func attempt(with client: Client, now: Now) -> Outcome {
        guard now.monotonic >= nextAttempt else { return .again }
        nextAttempt = now.monotonic + Self.attemptInterval
        if list.isEmpty { return .ready([]) }
        do throws(RdkafkaError) {
            return try resolve(with: client, now: now).map { .ready($0) } ?? .again
        } catch {
            let isOver = waited(now) >= Self.patience
            return isOver || !error.code.passesByItself ? .failed(error) : .again
        }
    }

    private func waited(_ now: Now) -> Duration { now.monotonic - openedAt.monotonic }

    /// Nil means to wait for another member.
    private func resolve(with client: Client, now: Now) throws(RdkafkaError) -> [Start]? {
        let committed = try client.committed(list, timeout: Self.questionTimeout).positions()
        let newTopics = try self.newTopics(committed: committed, client: client)
        let openers = Set(newTopics.filter { topic in isOpener(of: topic.name) }.map(\.name))
        if openers.count < newTopics.count, waited(now) < Self.openerPatience { return nil }

        // All partitions of the topics we open, beside those we were given.
        let wanted = list.copy()
        for topic in newTopics where openers.contains(topic.name) {
            for partition in 0..<topic.partitionCount
            where committed[TopicPartition(topic: topic.name, partition: partition)] == nil {
                wanted.append(topic: topic.name, partition: partition)
            }
        }
        let evidence = try self.evidence(
            for: wanted, committed: committed, newTopics: Set(newTopics.map(\.name)),
            client: client)
        let starts = evidence.map { key, evidence in
            let topic = topics.firstIndex { $0.name == key.topic } ?? 0
            let isReplayed = replayed.contains(topic)
            return Start(
                topic: topic, partition: key.partition,
                decision: isReplayed
                    ? StartRule.Decision(offset: evidence.low, commits: false)
                    : StartRule.decide(evidence, startFrom: startFrom),
                committed: isReplayed ? nil : evidence.committed)
        }
        if starts.contains(where: { $0.decision.loss == .truncation }),
            waited(now) < Self.truncationPatience
        {
            return nil
        }
        try commit(starts, client: client)
        return Array(starts.prefix(list.count))
    }

    /// Start positions are committed before the first record is read: from here on "never
    /// committed" means a partition that was added.
    private func commit(_ starts: [Start], client: Client) throws(RdkafkaError) {
        let list = TopicPartitionList(capacity: starts.count)
        for start in starts where start.decision.commits {
            list.append(
                topic: topics[start.topic].name, partition: start.partition,
                offset: start.decision.offset)
        }
        if !list.isEmpty { try client.commit(list, timeout: Self.questionTimeout) }
    }

    // MARK: Topics the group has never read

    /// The member that is given a new topic's partition 0 commits the start of all its partitions.
    /// Without that, a member that is a moment late would find the first commits of the others,
    /// take its own partitions for added ones and read them from the beginning. Should the opener
    /// not come, the others go ahead on their own; its later commit is of positions that it asked
    /// for earlier, so it moves nobody forward.
    private func isOpener(of topic: String) -> Bool {
        (0..<list.count).contains { list[$0].topic == topic && list[$0].partition == 0 }
    }

    private func newTopics(
        committed: [TopicPartition: Int64?], client: Client
    ) throws(RdkafkaError) -> [TopicMetadata] {
        var new: [TopicMetadata] = []
        for (index, topic) in topics.enumerated() where !replayed.contains(index) {
            let ours = committed.filter { $0.key.topic == topic.name }
            guard !ours.isEmpty, ours.allSatisfy({ $0.value == nil }) else { continue }
            let metadata = try client.metadata(of: topic, timeout: Self.questionTimeout)
            guard metadata.error == .none else { throw RdkafkaError(metadata.error) }
            let all = TopicPartitionList(capacity: Int(metadata.partitionCount))
            for partition in 0..<metadata.partitionCount {
                all.append(topic: topic.name, partition: partition)
            }
            let others = try client.committed(all, timeout: Self.questionTimeout).positions()
            if others.values.allSatisfy({ $0 == nil }) { new.append(metadata) }
        }
        return new
    }

    // MARK: Evidence

    /// In the order of `wanted`.
    private func evidence(
        for wanted: TopicPartitionList, committed: [TopicPartition: Int64?],
        newTopics: Set<String>, client: Client
    ) throws(RdkafkaError) -> [(TopicPartition, StartEvidence)] {
        let lows = try offsets(of: wanted, at: Offset.beginning, client: client)
        let highs = try offsets(of: wanted, at: Offset.end, client: client)
        var times: [TopicPartition: Int64] = [:]
        if case .ago(let age) = startFrom, !newTopics.isEmpty {
            let since = (openedAt.wall + (.zero - age)).milliseconds
            times = try offsets(of: wanted, at: max(0, since), client: client)
        }
        var result: [(TopicPartition, StartEvidence)] = []
        for index in 0..<wanted.count {
            let key = TopicPartition(wanted[index])
            guard let low = lows[key], let high = highs[key] else {
                throw RdkafkaError(.leaderNotAvailable)
            }
            var atTime = times[key]
            if atTime == Offset.end { atTime = try isEmbedded(client) ? low : nil }
            result.append(
                (
                    key,
                    StartEvidence(
                        committed: committed[key] ?? nil, low: low, high: high,
                        isNewTopic: newTopics.contains(key.topic), atTime: atTime)
                ))
        }
        return result
    }

    private func offsets(
        of wanted: TopicPartitionList, at time: Int64, client: Client
    ) throws(RdkafkaError) -> [TopicPartition: Int64] {
        let question = wanted.copy()
        for index in 0..<question.count { question.setOffset(time, at: index) }
        let answer = try client.offsetsForTimes(question, timeout: Self.questionTimeout)
        return try answer.positions().compactMapValues { $0 }
    }

    /// The mock cluster answers "none" to every time, so there that answer says nothing and the
    /// beginning is the safe reading of it. Its cluster id gives it away; a real one is a UUID.
    private func isEmbedded(_ client: Client) throws(RdkafkaError) -> Bool {
        guard let id = client.clusterID(timeout: Self.questionTimeout) else {
            throw RdkafkaError(.timedOut, message: "the cluster did not tell its id in time")
        }
        return id.hasPrefix(Client.mockClusterIDPrefix)
    }
}

struct TopicPartition: Hashable {
    var topic: String
    var partition: Int32
}

extension TopicPartition {
    init(_ element: TopicPartitionList.Element) {
        self.init(topic: element.topic, partition: element.partition)
    }
}

extension TopicPartitionList {
    /// The offset of each partition, nil where the library says "none"; throws the first error.
    func positions() throws(RdkafkaError) -> [TopicPartition: Int64?] {
        var result: [TopicPartition: Int64?] = [:]
        for index in 0..<count {
            let element = self[index]
            guard element.error == .none else { throw RdkafkaError(element.error) }
            let offset = element.offset == Offset.unset ? nil : element.offset
            result.updateValue(offset, forKey: TopicPartition(element))
        }
        return result
    }
}

extension ErrorCode {
    /// Whether asking again later can help without anybody's doing.
    var passesByItself: Bool {
        switch self {
        case .timedOut, .transport, .allBrokersDown, .waitingForCoordinator, .requestTimedOut,
            .leaderNotAvailable, .notLeader, .coordinatorLoading, .coordinatorNotAvailable,
            .notCoordinator, .rebalanceInProgress, .unknownTopicOrPartition, .unknownPartition:
            true
        default:
            false
        }
    }
}
