// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import LinuxIO
package import Logging
package import PushModel
internal import Rdkafka

/// Reads the event topics and `deferred` as a member of the fleet's group. Belongs to one thread,
/// the planner, which sleeps on `wakeDescriptor` and does everything else through these methods.
///
/// `commit` commits offsets with what the next owner should know, every `auto.commit.interval.ms`,
/// and so do `completeRevoke` and `close`. librdkafka commits only what it was given by `store`. A
/// start that the group has not committed yet is committed at once (`StartResolver`).
///
/// The thread's contract: when woken, `clearWakeUp`, then `poll` until it returns less than its
/// limit, then act on `takeFacts`; only then sleep, at most until `nextDeadline` and never longer
/// than a second, since rebalances are answered by polling alone.
package final class EventConsumer {
    package let topics: [String]
    /// The positions in `topics` of tables: they are read from their beginning in every assignment,
    /// and their offsets are never stored.
    package let replayed: Set<Int>
    let settings: KafkaClientSettings
    let startFrom: StartFrom
    let logger: Logger
    let waker = Waker()

    /// The open client; nil after `close`.
    var session: ConsumerSession?
    var partitions: PartitionTable
    /// The partitions of the current assignment that could not be started with the others.
    var unstarted: StartResolver?
    var unavailable = UnavailablePartitions()
    /// The topics that Kafka does not know, though they are subscribed to.
    var missing: Set<Int> = []
    let partitionQuestion = BackgroundQuestion<PartitionAnswers?>(thread: "kafka-events")
    var askForPartitionsAt = MonotonicTime(nanoseconds: .min)
    var groupWait = GroupWait()
    /// The rebalance being answered; later ones wait in `rebalances`.
    var pending: PendingRebalance?
    var rebalances: [Rebalance] = []
    /// The last commit with metadata, until the broker has answered it.
    var commitUnderWay: CommitUnderWay?
    var nextCommitAt = MonotonicTime(nanoseconds: .min)
    /// Where the answer to the last `announce` comes.
    var announcing: EventQueue?
    let commitInterval: Duration
    private var facts: [ConsumerFact] = []
    private var warnings = WarningLimiter()
    private var hasAskedForRestart = false
    private var hasReportedFatal = false
    private(set) var polling = PollingHistory()
    private var prompter = FetchPrompter()
    /// Messages whose keys were passed to `prefetch` and that are not delivered yet; empty between
    /// calls of `poll`.
    private var ahead: MessageQueue

    enum PendingRebalance {
        case assigning(StartResolver)
        case revoking(TopicPartitionList, [AssignmentID])
    }

    /// - Parameter prefetchMax: the most records whose keys are passed to `prefetch` before the
    ///   first of them is delivered.
    package init(
        settings: KafkaClientSettings, topics: [String], replayed: Set<Int> = [],
        startFrom: StartFrom, prefetchMax: Int = 32, logger: Logger
    ) throws(KafkaError) {
        precondition(!topics.isEmpty, "a consumer has at least one topic")
        precondition(
            replayed.allSatisfy(topics.indices.contains), "every table is among the topics")
        // librdkafka would take it for a pattern, and deliver topics that have no position here.
        if let pattern = topics.first(where: { $0.hasPrefix("^") }) { throw .missingTopic(pattern) }
        self.settings = settings
        commitInterval = .milliseconds(settings.commitIntervalMilliseconds)
        self.topics = topics
        self.replayed = replayed
        self.startFrom = startFrom
        self.logger = logger
        partitions = PartitionTable(topics: topics.count, replayed: replayed)
        ahead = MessageQueue(capacity: prefetchMax)
        try open()
    }

    func open() throws(KafkaError) {
        precondition(session == nil, "a client is opened only when the one before is closed")
        precondition(
            pending == nil && rebalances.isEmpty && unstarted == nil,
            "every rebalance of the client before is answered")
        precondition(
            partitions.assigned().isEmpty, "no partition of the client before is still assigned")
        session = try ConsumerSession(
            settings: settings, role: .events, topics: topics, logger: logger,
            waker: waker)
        do {
            try session?.client.subscribe(topics)
        } catch {
            throw .client(error)
        }
        hasAskedForRestart = false
        hasReportedFatal = false
        groupWait = GroupWait()
    }

    // MARK: Waking

    /// An eventfd: readable when there is something to poll.
    package var wakeDescriptor: CInt { waker.descriptor }

    package func clearWakeUp() { waker.awake() }

    /// When `poll` must be called even if nothing arrives.
    package var nextDeadline: MonotonicTime? {
        if case .assigning(let resolver) = pending { return resolver.nextAttemptAt }
        return pending == nil && rebalances.isEmpty ? unstarted?.nextAttemptAt : nil
    }

    /// When `poll` is to be called once more after something has come; nil if there is no need.
    package var nextLook: MonotonicTime? { prompter.nextLook }

    // MARK: Records

    /// Lends up to `limit` records to `body`, each for the length of its call, and returns how many
    /// messages were examined: fewer than `limit` means that none is left. It never waits for
    /// records, but while new partitions are being started it may wait seconds for a broker.
    ///
    /// - Parameter prefetch: is passed the keys of the next few records before `body` gets the
    ///   first of them. Records of a partition that is no longer assigned do not follow.
    package func poll(
        now: Now, limit: Int,
        prefetch: (_ topic: Int, _ key: UnsafeRawBufferPointer) -> Void = { _, _ in },
        _ body: (borrowing KafkaRecord) -> Void
    ) -> Int {
        guard let session else { return 0 }
        precondition(limit >= 0, "a poll's limit is at least 0")
        precondition(ahead.isEmpty, "every message of the poll before was delivered")
        polling.polled(at: now.monotonic)
        groupWait.polled(now: now.monotonic)
        advanceAssignment(now)
        startMore(now)
        if !unavailable.isEmpty { tellOfUnavailable(now) }
        var looked = 0
        while looked < limit {
            let next = session.client.pollMessage()
            // A rebalance announced by this poll precedes its message, and follows the messages
            // polled before.
            if session.client.hasNews {
                deliverAhead(of: session, now: now, body)
                take(session.client.takeNews(), now: now)
            }
            guard let message = next else {
                polling.drained(at: now.monotonic)
                break
            }
            looked += 1
            if let key = message.key, let topic = session.index(of: message) {
                prefetch(topic, key)
            }
            ahead.append(message)
            if ahead.isFull { deliverAhead(of: session, now: now, body) }
        }
        deliverAhead(of: session, now: now, body)
        prompter.turned(session.client, looked: looked, now: now.monotonic) {
            partitionsBehind(of: session)
        }
        return looked
    }

    /// Those that are read and of which the brokers have more, as of their last fetches, with
    /// `Offset.end`.
    private func partitionsBehind(of session: ConsumerSession) -> TopicPartitionList {
        let list = TopicPartitionList()
        let read = partitions.assigned {
            !$0.isPaused && !$0.isMuted && !$0.isAtEnd && !$0.isRefused && !$0.isOutOfReach
        }
        for id in read {
            guard let row = partitions.row(id),
                let marks = session.client.cachedWatermarks(
                    topic: topics[row.topic], partition: row.partition),
                marks.high > row.received + 1
            else { continue }
            list.append(topic: topics[row.topic], partition: row.partition, offset: Offset.end)
        }
        return list
    }

    private func deliverAhead(
        of session: ConsumerSession, now: Now, _ body: (borrowing KafkaRecord) -> Void
    ) {
        while let message = ahead.popFirst() { deliver(message, of: session, now: now, body) }
    }

    private func deliver(
        _ message: consuming Message, of session: ConsumerSession, now: Now,
        _ body: (borrowing KafkaRecord) -> Void
    ) {
        guard message.error == .none, let topic = session.index(of: message) else {
            return failed(message, of: session, now: now)
        }
        let assignment = partitions.receive(
            topic: topic, partition: message.partition, offset: message.offset,
            now: now.monotonic)
        if !unavailable.isEmpty, partitions[topic, message.partition]?.isRefused == true {
            isReadAgain(topic, message.partition)
        }
        if let assignment {
            body(KafkaRecord(message, topic: topic, assignment: assignment))
        }
    }

    private func failed(
        _ message: borrowing Message, of session: ConsumerSession, now: Now
    ) {
        // An error about a whole topic comes with another handle of its name.
        let topic =
            session.index(of: message) ?? message.topicName.flatMap(topics.firstIndex(of:))
        let partition = message.partition
        let id = topic.flatMap { partitions.assignment(topic: $0, partition: partition) }
        let error = RdkafkaError(message.error, message: message.errorText)
        switch error.code {
        case .partitionEOF:
            if let id { reachedEnd(id, at: message.offset) }
        case .autoOffsetReset, .offsetOutOfRange, .notCoordinator, .coordinatorNotAvailable,
            .groupAuthorizationFailed:
            // librdkafka has stopped fetching this partition.
            if id != nil { askForRestart(error) } else { warn(error, of: topic, now: now) }
        case .topicAuthorizationFailed:
            // librdkafka reports this once and keeps fetching.
            guard let id, let topic else { return warn(error, of: topic, now: now) }
            partitions.update(id) { $0.isRefused = true }
            unavailable.note(topic, partition, error, now: now.monotonic)
        case .unknownTopic, .unknownTopicOrPartition:
            // librdkafka says it once, to each member, and not that the topic is there again.
            if let topic { missing.insert(topic) }
            warn(error, of: topic, now: now)
        case .fatal:
            reportFatal(error)
        default:
            warn(error, of: topic, now: now)
        }
    }

    private func reachedEnd(_ id: AssignmentID, at offset: Int64) {
        if let row = partitions.row(id), row.isRefused { isReadAgain(row.topic, row.partition) }
        var isFirst = false
        partitions.update(id) { row in
            isFirst = !row.hasReachedEnd
            row.hasReachedEnd = true
            row.isAtEnd = true
            // A transaction has ended, though another may have begun at once.
            if row.readableEnd != offset { row.withheldSince = nil }
            row.readableEnd = offset
        }
        if isFirst { facts.append(.endOfPartition(id)) }
    }

    // MARK: Facts

    /// Whether `takeFacts` returns anything. The assignment of a record's own partition may be
    /// among the facts.
    package var hasFacts: Bool { !facts.isEmpty }

    /// Returns the facts since the last call, in order.
    package func takeFacts() -> [ConsumerFact] {
        defer { facts.removeAll() }
        return facts
    }

    func append(_ fact: ConsumerFact) { facts.append(fact) }

    private func take(_ news: ClientNews, now: Now) {
        for error in news.errors {
            if error.code == .fatal { reportFatal(error) } else { warn(error, now: now) }
        }
        rebalances += news.rebalances
        answerRebalances(now)
    }

    /// Reports an error as a warning, unless the same one was reported recently.
    ///
    /// - Parameter topic: the topic that the error is about, if it is about one.
    func warn(_ error: RdkafkaError, of topic: Int? = nil, now: Now) {
        if let warning = warnings.admit(error, of: topic, now: now.monotonic) {
            facts.append(.warning(warning))
        }
    }

    /// Reports `restartNeeded`, once per client: the caller needs one reason, not one per
    /// partition.
    func askForRestart(_ error: RdkafkaError) {
        guard !hasAskedForRestart else { return }
        hasAskedForRestart = true
        facts.append(.restartNeeded(error))
    }

    private func reportFatal(_ error: RdkafkaError) {
        guard !hasReportedFatal else { return }
        hasReportedFatal = true
        // The error of the message only says that there is a fatal one; the client has the cause.
        facts.append(.fatal(session?.client.fatalError ?? error))
    }
}
