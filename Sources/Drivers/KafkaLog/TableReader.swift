// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
internal import LinuxIO
package import Logging
package import PushModel
package import Rdkafka

/// Reads whole topics from their beginning and then follows them, for tables of which every worker
/// holds a full copy. It takes no part in the group and never commits. It belongs to one thread,
/// under the contract of `EventConsumer`.
///
/// The last record of a key wins; a tombstone removes the key. Records are in order within a
/// partition.
package final class TableReader {
    package let topics: [String]
    private let start: TableStart
    private let session: ConsumerSession
    private let waker = Waker()
    private var partitions: [[Row]]
    private var warnings = WarningLimiter()
    private var pendingWarnings: [KafkaWarning] = []
    private var discoverAt: MonotonicTime
    private var prompter = FetchPrompter()
    private let inquiry = EndInquiry()
    private var freshness: TableFreshness
    private var replay: ReplayProgress

    /// Whether all partitions known at one time have been read to their ends. It stays true.
    package var isCaughtUp: Bool { replay.isCaughtUp }
    /// Set once the table can no longer be trusted, for instance because its topic was recreated.
    /// The caller must start again with an empty table.
    package private(set) var failure: RdkafkaError?
    /// Whether all partitions of a topic known at one time have been read to their ends.
    package func isCaughtUp(topic: Int) -> Bool {
        replay.caughtUp(topic: topic) == partitions[topic].count
    }
    /// Whether `failure` is that the log has no record where it was to be read.
    package var isOutsideLog: Bool {
        failure?.code == .offsetOutOfRange || failure?.code == .autoOffsetReset
    }
    /// Whether the broker refuses this user some partition at the moment.
    package var isRefused: Bool { refusedPartitions > 0 }
    /// The number of records read from all topics since the start.
    package private(set) var recordsRead: UInt64 = 0
    /// Whether a log was found not to be the one that was read before. Then `failure` is set.
    package private(set) var isAnotherLog = false
    /// Of each topic, the greatest time of its records, in milliseconds; 0 before the first.
    private var newest: [Int64]
    /// Of each topic, whether a record that was read before has been found again.
    private var isRecognised: [Bool]
    /// Of each topic, what was read in other partitions than those of its keys.
    package private(set) var misplaced: [MisplacedRecords]

    private struct Row {
        /// The highest offset delivered.
        var received: Int64 = -1
        /// The end of the log when librdkafka last reported it.
        var endedAt: Int64 = 0
        /// Whether the end of the log was reached once.
        var hasEnded = false
        /// Whether the broker has refused this user the partition and nothing has come since.
        var isRefused = false
        /// Of the record at `received`; nil before the first.
        var hash: StableHash.Value?
        /// The record that is to be found again; nil once that is decided.
        var awaited: TablePosition.LastRecord?

        init(_ position: TablePosition? = nil) {
            guard let position else { return }
            received = position.last?.offset ?? -1
            hash = position.last?.hash
            awaited = position.last
            endedAt = position.next
        }

        /// The offset of the next record.
        var position: Int64 { max(received + 1, endedAt) }
        /// The offset from which to read on; nil if nothing is known of the log. A broker that refuses
        /// the partition does not say where its log begins, so a known offset is better.
        var offset: Int64? {
            awaited?.offset ?? (received < 0 && !hasEnded ? nil : position)
        }
    }

    private var refusedPartitions = 0
    private var repeatRefusalsAt = MonotonicTime.distantFuture
    private static let refusalInterval = Duration.seconds(30)

    private static let discoveryInterval = Duration.seconds(60)
    /// How long the search for added partitions may block the thread. If no broker answers, the
    /// next search is a minute later.
    private static let discoveryTimeout = Duration.milliseconds(250)
    /// The age above which a partition of a table counts as stale. An ordinary leader election
    /// takes less.
    package static let ageMax = Duration.seconds(30)

    /// Finds every topic's partitions and starts to read them.
    ///
    /// - Parameters:
    ///   - timeout: the time limit for finding all partitions.
    package init(
        settings: KafkaClientSettings, topics: [String], from start: TableStart = .beginning,
        timeout: Duration = .seconds(15), now: Now, logger: Logger
    ) throws(KafkaError) {
        precondition(!topics.isEmpty, "a reader has at least one topic")
        self.topics = topics
        self.start = start
        newest = Array(repeating: 0, count: topics.count)
        isRecognised = Array(repeating: false, count: topics.count)
        partitions = Array(repeating: [], count: topics.count)
        freshness = TableFreshness(topics: topics.count)
        replay = ReplayProgress(topics: topics.count)
        misplaced = topics.map(MisplacedRecords.init)
        discoverAt = now.monotonic + Self.discoveryInterval
        session = try ConsumerSession(
            settings: settings, role: .table, topics: topics, logger: logger,
            waker: waker)
        let deadline = ContinuousClock.now + timeout
        for topic in topics.indices {
            let count = try discover(topic, until: deadline)
            try add(partitions: count, of: topic, now: now)
        }
    }

    // MARK: Waking

    package var wakeDescriptor: CInt { waker.descriptor }

    package func clearWakeUp() { waker.awake() }

    /// When `poll` is to be called once more after something has come; nil if there is no need.
    package var nextLook: MonotonicTime? { prompter.nextLook }

    // MARK: Records

    /// Lends up to `limit` records to `body` and returns how many messages were examined: fewer
    /// than `limit` means that none is left for now.
    package func poll(
        now: Now, limit: Int, _ body: (borrowing KafkaRecord) -> Void
    ) -> Int {
        discoverAddedPartitions(now)
        if now.monotonic >= repeatRefusalsAt { repeatRefusals(now) }
        var looked = 0
        while looked < limit, failure == nil {
            let next = session.client.pollMessage()
            if session.client.hasNews { take(session.client.takeNews(), now: now) }
            guard let message = next else { break }
            looked += 1
            guard message.error == .none, let topic = session.index(of: message) else {
                failed(message, now: now)
                continue
            }
            guard recognise(message, topic: topic),
                receive(topic: topic, partition: message.partition, offset: message.offset)
            else { continue }
            remember(message, topic: topic)
            compareKey(of: message, topic: topic)
            body(KafkaRecord(message, topic: topic))
        }
        prompter.turned(session.client, looked: looked, now: now.monotonic) { partitionsBehind() }
        return looked
    }

    private func receive(topic: Int, partition: Int32, offset: Int64) -> Bool {
        let index = Int(partition)
        guard index < partitions[topic].count, offset > partitions[topic][index].received else {
            return false
        }
        partitions[topic][index].received = offset
        if partitions[topic][index].isRefused { readAgain(topic, index) }
        recordsRead += 1
        return true
    }

    // MARK: Where it was read before

    /// Remembers the record as the last one of its partition.
    private func remember(_ message: borrowing Message, topic: Int) {
        partitions[topic][Int(message.partition)].hash = Self.hash(of: message)
        newest[topic] = max(newest[topic], message.timestampMilliseconds)
    }

    private static func hash(of message: borrowing Message) -> StableHash.Value {
        var hash = StableHash(seed: UInt64(bitPattern: message.timestampMilliseconds))
        if let key = message.key { hash.combine(key) }
        return hash.finish()
    }

    /// Compares the first record of a partition with the one that was read last before.
    ///
    /// - Returns: whether the record is new.
    private func recognise(_ message: borrowing Message, topic: Int) -> Bool {
        let partition = Int(message.partition)
        guard partition < partitions[topic].count,
            let awaited = partitions[topic][partition].awaited
        else { return true }
        partitions[topic][partition].awaited = nil
        // It was compacted away.
        if message.offset > awaited.offset { return true }
        guard message.offset == awaited.offset, Self.hash(of: message) == awaited.hash else {
            foundAnotherLog(
                topic,
                "has another record at offset \(awaited.offset) of partition "
                    + "\(partition)")
            return false
        }
        isRecognised[topic] = true
        return false
    }

    private func foundAnotherLog(_ topic: Int, _ finding: String) {
        isAnotherLog = true
        failure = RdkafkaError(
            .failed,
            message: "topic '\(topics[topic])' is not the one that was read before: it "
                + finding)
    }

    /// All partitions of a topic have been read to their ends: if none has a record that was read
    /// before, nothing says that it is the same topic.
    private func judgeRecognition(_ topic: Int) {
        guard case .positions(let all) = start, topic < all.count, !isRecognised[topic],
            all[topic].contains(where: { $0.last != nil })
        else { return }
        foundAnotherLog(topic, "has none of the last records")
    }

    /// How far each partition of a topic has been read; nil before all have been read to their ends.
    package func positions(topic: Int) -> [TablePosition]? {
        guard isCaughtUp(topic: topic) else { return nil }
        return partitions[topic].map { row in
            TablePosition(
                next: row.position,
                last: row.hash.map { TablePosition.LastRecord(offset: row.received, hash: $0) })
        }
    }

    /// The greatest time that any record of the topic has, of those that were read; nil if none was.
    package func newestTime(topic: Int) -> WallTime? {
        newest[topic] > 0 ? WallTime(milliseconds: newest[topic]) : nil
    }

    /// Counts the record if its partition is not that of its key: it is in order with the key's other
    /// records only if all of them are in one partition.
    private func compareKey(of message: borrowing Message, topic: Int) {
        guard let key = message.key, !key.isEmpty else { return }
        let home = KeyPartitioner.murmur2(bytes: key, of: Int32(partitions[topic].count))
        if home != message.partition {
            misplaced[topic].count += 1
            misplaced[topic].partition = message.partition
            misplaced[topic].offset = message.offset
            misplaced[topic].belongsIn = home
        }
    }

    private func failed(_ message: borrowing Message, now: Now) {
        let error = RdkafkaError(message.error, message: message.errorText)
        switch error.code {
        case .partitionEOF:
            guard let topic = session.index(of: message) else { return }
            reachedEnd(topic: topic, partition: Int(message.partition), at: message.offset)
        case .autoOffsetReset where error.isOfAuthorization, .topicAuthorizationFailed:
            guard let topic = session.index(of: message) else { return warn(error, now: now) }
            refused(topic, Int(message.partition), now: now)
        case .autoOffsetReset, .offsetOutOfRange:
            failure = error
        case .fatal:
            failure = session.client.fatalError ?? error
        default:
            warn(error, now: now)
        }
    }

    /// Notes that a partition was read to its end. librdkafka reports the end also of empty
    /// partitions and of those whose tail was compacted away, where comparing offsets with the high
    /// watermark would wait for ever.
    private func reachedEnd(topic: Int, partition: Int, at end: Int64) {
        guard partition < partitions[topic].count else { return }
        partitions[topic][partition].endedAt = max(end, partitions[topic][partition].endedAt)
        partitions[topic][partition].hasEnded = true
        if partitions[topic][partition].isRefused { readAgain(topic, partition) }
        replay.reachedEnd(topic: topic, partition: partition)
        if isCaughtUp(topic: topic) { judgeRecognition(topic) }
    }

    // MARK: Rights

    private func refused(_ topic: Int, _ partition: Int, now: Now) {
        guard partition < partitions[topic].count, !partitions[topic][partition].isRefused
        else { return }
        partitions[topic][partition].isRefused = true
        refusedPartitions += 1
        // A second's wait gathers the refusals of the other partitions into one warning.
        repeatRefusalsAt = min(repeatRefusalsAt, now.monotonic + .seconds(1))
    }

    private func readAgain(_ topic: Int, _ partition: Int) {
        partitions[topic][partition].isRefused = false
        refusedPartitions -= 1
        precondition(refusedPartitions >= 0, "no more partitions are read again than were refused")
        if refusedPartitions == 0 { repeatRefusalsAt = .distantFuture }
    }

    /// Warns again of partitions that this user may not read, and assigns them again. librdkafka
    /// reports a refusal once, and a table that is not read would grow stale unnoticed. If nothing
    /// is written to a partition, only its end-of-partition event shows that it can be read again,
    /// and that comes only to a new assignment.
    private func repeatRefusals(_ now: Now) {
        repeatRefusalsAt = now.monotonic + Self.refusalInterval
        precondition(
            refusedPartitions > 0, "refusals are repeated only while a partition is refused")
        let list = TopicPartitionList()
        for (topic, rows) in partitions.enumerated() {
            let refused = rows.indices.filter { rows[$0].isRefused }
            guard !refused.isEmpty else { continue }
            for partition in refused {
                list.append(
                    topic: topics[topic], partition: Int32(partition),
                    offset: rows[partition].offset ?? start.offset(topic, partition))
            }
            pendingWarnings.append(
                KafkaWarning(
                    code: ErrorCode.topicAuthorizationFailed.name,
                    text: "this user may not read topic '\(topics[topic])' (\(refused.count) of "
                        + "\(rows.count) partitions), so the index grows stale: give it READ",
                    suppressed: 0))
        }
        precondition(
            list.count == refusedPartitions,
            "the count of refused partitions is that of the rows so marked")
        do throws(RdkafkaError) {
            try session.client.incrementalUnassign(list)
            try session.client.incrementalAssign(list)
        } catch {
            failure = error
        }
    }

    // MARK: Facts

    package func takeWarnings() -> [KafkaWarning] {
        defer { pendingWarnings.removeAll() }
        return pendingWarnings
    }

    private func take(_ news: ClientNews, now: Now) {
        for error in news.errors {
            if error.code == .fatal {
                failure = session.client.fatalError ?? error
            } else {
                warn(error, now: now)
            }
        }
    }

    private func warn(_ error: RdkafkaError, now: Now) {
        if let warning = warnings.admit(error, now: now.monotonic) {
            pendingWarnings.append(warning)
        }
    }

    /// How far a topic is read, as of the last fetch of each partition. Makes no request.
    package func progress(topic: Int) -> TableProgress {
        var progress = TableProgress(
            partitions: partitions[topic].count, caughtUp: replay.caughtUp(topic: topic),
            remaining: 0)
        for (partition, row) in partitions[topic].enumerated() {
            let marks = session.client.cachedWatermarks(
                topic: topics[topic], partition: Int32(partition))
            guard let marks else { continue }
            // Behind the last record there may be a transaction's mark, or what was compacted away.
            progress.remaining += max(0, marks.high - max(row.position, marks.low))
        }
        return progress
    }

    /// Those of which the brokers have more, as of their last fetches, with `Offset.end`. What is not
    /// given out, as in a transaction that is not over, does not count.
    private func partitionsBehind() -> TopicPartitionList {
        let list = TopicPartitionList()
        for topic in topics.indices {
            for (partition, row) in partitions[topic].enumerated()
            where !row.isRefused && row.endedAt <= row.received {
                let marks = session.client.cachedWatermarks(
                    topic: topics[topic], partition: Int32(partition))
                guard let marks, marks.high > row.position else { continue }
                list.append(topic: topics[topic], partition: Int32(partition), offset: Offset.end)
            }
        }
        return list
    }

    /// Why no connection can be made; nil if that is not known.
    package var connectionFailure: ConnectionFailure? { session.client.connectionFailure }

    /// Why no connection can be made since the topic was last read to its end that is the freshest
    /// now; nil if none has failed since.
    package func currentConnectionFailure(now: Now) -> ConnectionFailure? {
        let silence = topics.indices.map { age(topic: $0, now: now) }.min() ?? .zero
        var failure = session.client.connectionFailure(since: .now - silence)
        // It has told the topics' partitions at the start.
        failure?.hasAnswered = true
        return failure
    }

    /// The cluster's ID; nil if it does not answer. It has just told its topics when this is asked
    /// for first.
    package var clusterID: String? { session.client.clusterID(timeout: .seconds(1)) }

    // MARK: Freshness

    /// Whether no broker has answered the last request for the ends. It is known seconds before the
    /// tables are old.
    package var isUnanswered: Bool { inquiry.isUnanswered }

    /// Notes how far reading has come, and requests the ends again. To be called every few seconds.
    package func watch(now: Now) {
        var all: [TopicPartition] = []
        for topic in topics.indices {
            for (number, row) in partitions[topic].enumerated() {
                freshness.read(
                    TablePartition(topic: topic, number: Int32(number)), to: row.position,
                    now: now.monotonic)
                all.append(TopicPartition(topic: topics[topic], partition: Int32(number)))
            }
        }
        if let answers = inquiry.takeAnswers() {
            for (key, answer) in answers.partitions {
                guard let topic = topics.firstIndex(of: key.topic) else { continue }
                let partition = TablePartition(topic: topic, number: key.partition)
                switch answer {
                case .end(let end):
                    freshness.told(end: end, of: partition, askedAt: answers.askedAt)
                case .failed(let cause): freshness.failed(cause, of: partition)
                }
            }
        }
        inquiry.begin(
            with: session.client, topics: session.topics, all, now: now.monotonic)
    }

    /// The partitions whose copies are older than `ageMax`, as of the last `watch`.
    package func lags(now: Now) -> [TableLag] {
        freshness.lags(
            olderThan: Self.ageMax, whileReplaying: !isCaughtUp, now: now.monotonic)
    }

    /// How old the copy of a topic is at most: everything written longer ago than this has been
    /// read.
    package func age(topic: Int, now: Now) -> Duration {
        freshness.age(topic: topic, now: now.monotonic)
    }

    // MARK: Partitions

    private func discover(
        _ topic: Int, until deadline: ContinuousClock.Instant
    ) throws(KafkaError) -> Int32 {
        let name = topics[topic]
        while true {
            let left = max(deadline - .now, .milliseconds(1))
            var failure: RdkafkaError
            do throws(RdkafkaError) {
                let metadata = try session.client.metadata(
                    of: session.topics[topic], timeout: min(left, .seconds(5)))
                if metadata.error == .none { return metadata.partitionCount }
                failure = RdkafkaError(metadata.error)
            } catch {
                failure = error
            }
            let isMissing =
                failure.code == .unknownTopic || failure.code == .unknownTopicOrPartition
            guard failure.code.passesByItself, !isMissing, deadline > .now else {
                throw .sorted(
                    failure, operation: "DESCRIBE", topic: name, client: session.client,
                    tokens: session.tokens)
            }
            // A new topic's leaders take a moment. Sleeping is safe: this runs at start only.
            usleep(100_000)
        }
    }

    /// Starts to read partitions, at the start and when some were added to the topic.
    private func add(
        partitions count: Int32, of topic: Int, now: Now
    ) throws(KafkaError) {
        let known = partitions[topic].count
        guard Int(count) > known else { return }
        let list = TopicPartitionList(capacity: Int(count) - known)
        for partition in Int32(known)..<count {
            list.append(
                topic: topics[topic], partition: partition,
                offset: start.offset(topic, Int(partition)))
        }
        do {
            try session.client.incrementalAssign(list)
        } catch {
            throw .client(error)
        }
        for partition in known..<Int(count) {
            partitions[topic].append(Row(start.position(topic, partition)))
        }
        replay.add(partitions: list.count, of: topic)
        freshness.add(partitions: list.count, of: topic, now: now.monotonic)
    }

    private func discoverAddedPartitions(_ now: Now) {
        guard now.monotonic >= discoverAt else { return }
        discoverAt = now.monotonic + Self.discoveryInterval
        for topic in topics.indices {
            do {
                let metadata = try session.client.metadata(
                    of: session.topics[topic], timeout: Self.discoveryTimeout)
                guard metadata.error == .none else { throw RdkafkaError(metadata.error) }
                try add(partitions: metadata.partitionCount, of: topic, now: now)
            } catch let error as RdkafkaError {
                if error.code == .topicAuthorizationFailed {
                    // A user that may not even describe the topic may not read it.
                    for partition in partitions[topic].indices {
                        refused(topic, partition, now: now)
                    }
                } else {
                    warn(error, now: now)
                }
            } catch {
                failure = RdkafkaError(.failed, message: "\(error)")
            }
        }
    }

    /// Closes the client; false if it did not close in time.
    @discardableResult
    package func close(timeout: Duration) -> Bool {
        inquiry.cancel()
        return session.close(timeout: timeout)
    }
}

/// Where a `TableReader` begins.
package enum TableStart: Sendable {
    case beginning
    /// So many records before the end of each partition. If the log has fewer, the reader may fail as
    /// `isOutsideLog`.
    case tail(Int)
    /// After what was read before, by topic and partition. Topics that are left out, at the end or by
    /// an empty list, are read from their beginnings.
    case positions([[TablePosition]])

    func position(_ topic: Int, _ partition: Int) -> TablePosition? {
        guard case .positions(let all) = self, topic < all.count, partition < all[topic].count
        else { return nil }
        return all[topic][partition]
    }

    /// The last record that was read is read again, to be recognised.
    func offset(_ topic: Int, _ partition: Int) -> Int64 {
        if case .tail(let count) = self { return Offset.tail(count) }
        guard let position = position(topic, partition) else { return Offset.beginning }
        return position.last?.offset ?? position.next
    }
}

package struct TableProgress: Hashable, Sendable {
    package var partitions: Int
    /// How many partitions have been read to their end once.
    package var caughtUp: Int
    /// How many offsets are left up to the ends. Partitions that were not fetched from yet count as
    /// zero.
    package var remaining: Int64
}

/// Records of a table that are in other partitions than murmur2 gives their keys, which is Kafka's own
/// partitioner and `murmur2_random` of librdkafka: written with another one, librdkafka's default for
/// instance, or before the topic got more partitions.
package struct MisplacedRecords: Codable, Hashable, Sendable {
    package let topic: String
    package var count = 0
    /// Where the last of them is.
    package var partition: Int32 = 0
    package var offset: Int64 = 0
    /// The partition of its key.
    package var belongsIn: Int32 = 0

    package init(topic: String) { self.topic = topic }
}
