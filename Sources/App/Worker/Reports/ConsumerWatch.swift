// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Delivery
internal import KafkaLog
internal import Logging
internal import Pipeline
internal import PushModel
internal import Rdkafka
internal import RecordFormats

/// Writes to the log what the operator must know: unreadable records, partitions that cannot be
/// read, topics that take nothing, open circuit breakers. It decides nothing. `PlannerLoop` calls
/// it when a fact comes, and every five seconds. Nothing per push, and never a token or a record's
/// content.
struct ConsumerWatch {
    private var unreadableLogged = 0
    private var unreadableSince = MonotonicTime(nanoseconds: .min)
    /// The circuit breakers reported as not closed, by name, and why they opened.
    private var tripped: [String: TrippedBreaker.Cause] = [:]
    /// How often circuit breakers had opened when they were last reported, and when that was.
    private var breakersOpened = 0
    private var breakersReportedAt: MonotonicTime?
    /// It costs the more the more routes there are.
    private static let breakerInterval = Duration.milliseconds(100)
    /// The apps reported to have used up their kinds.
    private var outOfKinds: Set<String> = []

    /// When failures were last reported; nil before the first ones.
    var failuresReportedAt: MonotonicTime?

    /// Whether the last report said that deferred pushes are left in Kafka for want of room.
    var isForgettingReported = false
    /// When that was last said; nil before the first time.
    var forgettingReportedAt: MonotonicTime?

    /// When open transactions were last reported; nil if there are none.
    private var transactionsReportedAt: MonotonicTime?

    /// When each topic that accepts no records was last reported.
    private var troubled: [RecordTopic: MonotonicTime] = [:]
    private static let troubleInterval = Duration.seconds(60)

    /// The most unreadable records named per minute; the others are only counted.
    private static let unreadableLoggedMax = 20

    mutating func unreadable(
        _ problem: UnreadableRecord, of record: borrowing KafkaRecord, topic: String, now: Now,
        logger: Logger
    ) {
        if unreadableSince <= now.monotonic - .seconds(60) {
            unreadableSince = now.monotonic
            unreadableLogged = 0
        }
        guard unreadableLogged < Self.unreadableLoggedMax else { return }
        unreadableLogged += 1
        var metadata: Logger.Metadata = [
            "code": "\(problem.code)", "cause": "\(problem.message)",
            "record": "\(topic)/\(record.partition)/\(record.offset)",
        ]
        metadata["app"] = Self.app(problem, record.key).map { "\($0)" }
        logger.warning("a record is skipped", metadata: metadata)
    }

    /// The app, or the apns-topic, that the key of a refused record names second, where it is why.
    static func app(_ problem: UnreadableRecord, _ key: UnsafeRawBufferPointer?) -> String? {
        let codes: [UnreadableCode] = [.unknownApp, .unservedEnvironment]
        guard let key, codes.contains(where: { $0.rawValue == problem.code }) else { return nil }
        let parts = key.split(separator: UInt8(ascii: "/"), maxSplits: 2)
        return parts.count > 1 ? String(decoding: parts[1], as: UTF8.self).printable : nil
    }

    /// Since when there are at least `remainsMax` remains of Kafka's clients; nil while there are fewer.
    private var remainsSince: MonotonicTime?
    /// How many there were when that was last reported.
    private var remainsReported = 0
    /// Each takes a thread and some megabytes. One or two may be left by a topic that was deleted.
    private static let remainsMax = 3
    /// A client takes as long as a session, at most 45 s by default, if it cannot reach its coordinator.
    private static let remainsPatience = Duration.seconds(60)

    // MARK: What is told

    func lost(_ loss: OffsetLoss, plan: WorkerPlan, logger: Logger) {
        logger.error(
            "Kafka no longer has the events that were to be read next",
            metadata: [
                "partition": "\(plan.eventTopics[loss.topic])/\(loss.partition)",
                "cause": "\(loss.cause)", "committed": .stringConvertible(loss.committed),
                "startOffset": .stringConvertible(loss.startOffset),
                "offsetsLostMax": .stringConvertible(loss.offsetsMax),
            ])
    }

    /// Reports unavailable partitions, in one line for each topic and cause.
    func unavailable(_ partitions: [UnavailablePartition], topics: [String], logger: Logger) {
        struct Cause: Hashable {
            var topic: Int
            var code: ErrorCode
        }
        let groups = Dictionary(grouping: partitions) { partition in
            Cause(topic: partition.topic, code: partition.cause.code)
        }
        for (cause, group) in groups.sorted(by: { $0.value[0].partition < $1.value[0].partition }) {
            let topic = topics[cause.topic]
            logger.error(
                "some partitions cannot be read; the others are",
                metadata: [
                    "remedy": "\(Self.remedy(cause.code))",
                    "partitions": "\(Self.named(group.map { "\(topic)/\($0.partition)" }))",
                    "count": .stringConvertible(group.count), "cause": "\(group[0].cause)",
                ])
        }
    }

    func notCommitted(_ refusal: RefusedCommit, topics: [String], logger: Logger) {
        let names = refusal.partitions.map { "\(topics[$0.topic])/\($0.partition)" }
        logger.warning(
            "Kafka has not taken the last commit of partitions that are given up: their next owner may push again what has ended",
            metadata: [
                "partitions": "\(Self.named(names))",
                "count": .stringConvertible(names.count), "cause": "\(refusal.cause)",
            ])
    }

    private static func named(_ partitions: [String]) -> String {
        let more = partitions.count - partitionsNamedMax
        return partitions.prefix(partitionsNamedMax).joined(separator: ", ")
            + (more > 0 ? " and \(more) more" : "")
    }

    private static let partitionsNamedMax = 10

    private static func remedy(_ code: ErrorCode) -> String {
        switch code {
        case .topicAuthorizationFailed:
            "give the worker's principal READ on the topic, and DESCRIBE"
        case .unknownTopicOrPartition, .unknownTopic, .unknownPartition:
            "if the topic was deleted, recreate it or remove it from kafka.events"
        default:
            "bring back the brokers that have its replicas"
        }
    }

    /// Reports each topic that accepts no records: at once, every minute, and once when it accepts
    /// records again.
    mutating func report(_ topics: [TroubledTopic], now: Now, logger: Logger) {
        for topic in topics {
            if let last = troubled[topic.topic], now.monotonic - last < Self.troubleInterval {
                continue
            }
            troubled[topic.topic] = now.monotonic
            let words = TroubledTopic.words(topic.topic)
            logger.error(
                "Kafka accepts no records of a topic",
                metadata: [
                    "records": "\(words.records)", "consequence": "\(words.consequence)",
                    "remedy": "\(topic.remedy)", "topic": "\(topic.name)",
                    "waiting": .stringConvertible(topic.records),
                    "waitingKiB": .stringConvertible((topic.bytes + 1023) / 1024),
                    "cause": "\(topic.cause ?? "no acknowledgement")",
                ])
        }
        for topic in RecordTopic.allCases where troubled[topic] != nil {
            guard !topics.contains(where: { $0.topic == topic }) else { continue }
            troubled[topic] = nil
            let records = TroubledTopic.words(topic).records
            logger.notice(
                "Kafka accepts the records of a topic again", metadata: ["records": "\(records)"])
        }
    }

    /// Reports partitions that stand before an open transaction: at once, every minute, and once when
    /// they are all read on.
    mutating func report(openTransactions open: [OpenTransaction], now: Now, logger: Logger) {
        guard let first = open.first else {
            if transactionsReportedAt != nil { logger.notice("no transaction holds a partition") }
            transactionsReportedAt = nil
            return
        }
        if let last = transactionsReportedAt, now.monotonic - last < Self.troubleInterval { return }
        transactionsReportedAt = now.monotonic
        logger.warning(
            """
            partitions stand before a producer's open transaction: end it, or wait for its \
            transaction.timeout.ms
            """,
            metadata: [
                "partition": "\(first.topic)/\(first.partition)",
                "offset": .stringConvertible(first.offset),
                "seconds": .stringConvertible(first.lasted.components.seconds),
                "partitions": .stringConvertible(open.count),
            ])
    }

    /// Reports that clients of Kafka which were given up do not end: once for each that is added.
    ///
    /// - Parameter remains: how many there are now.
    mutating func report(remains: Int, now: Now, logger: Logger) {
        guard remains >= Self.remainsMax else {
            (remainsSince, remainsReported) = (nil, 0)
            return
        }
        let since = remainsSince ?? now.monotonic
        remainsSince = since
        guard now.monotonic - since >= Self.remainsPatience, remains > remainsReported else {
            return
        }
        remainsReported = remains
        logger.warning(
            """
            clients of Kafka that were given up do not end, and each keeps a thread and memory, as \
            happens when topics are deleted: restart this worker when it is convenient
            """, metadata: ["clients": .stringConvertible(remains)])
    }

    /// Whether circuit breakers are to be reported: one may have opened or closed since the last time.
    ///
    /// - Parameter opened: how often breakers have opened since the start.
    mutating func mustReportBreakers(opened: Int, now: MonotonicTime) -> Bool {
        guard opened != breakersOpened || !tripped.isEmpty else { return false }
        if let last = breakersReportedAt, now - last < Self.breakerInterval { return false }
        (breakersOpened, breakersReportedAt) = (opened, now)
        return true
    }

    /// Reports each circuit breaker once when it is found open, again if the cause changes, and
    /// once when it is closed again.
    mutating func report(_ breakers: [TrippedBreaker], logger: Logger) {
        for breaker in breakers
        where tripped.updateValue(breaker.cause, forKey: breaker.name) != breaker.cause {
            var metadata: Logger.Metadata = [
                "of": "\(breaker.name)", "cause": "\(breaker.words)",
                "remedy": "\(breaker.remedy)",
            ]
            if let wait = breaker.probeIn {
                metadata["nextProbeSeconds"] = .stringConvertible(wait.components.seconds)
            }
            logger.warning("pushes wait", metadata: metadata)
        }
        for name in Set(tripped.keys).subtracting(breakers.map(\.name)).sorted() {
            logger.notice("pushes resume", metadata: ["of": "\(name)"])
            tripped[name] = nil
        }
    }

    /// Reports each app once when the index must take rows of it without their kind, and once when
    /// kinds have become free.
    mutating func report(_ apps: [(app: String, rows: Int)], logger: Logger) {
        for (app, rows) in apps where outOfKinds.insert(app).inserted {
            logger.warning(
                """
                an app has more kinds than the index can distinguish: events that name kinds \
                do not reach the others, until some kinds are removed and these are registered again
                """,
                metadata: [
                    "app": "\(app)", "kindsMax": .stringConvertible(Audience.kindsMax),
                    "rowsWithoutKind": .stringConvertible(rows),
                ])
        }
        for app in outOfKinds.subtracting(apps.map(\.app)).sorted() {
            logger.notice(
                "the index can distinguish new kinds of an app again", metadata: ["app": "\(app)"])
            outOfKinds.remove(app)
        }
    }
}

/// A topic to which the worker cannot write its records at the moment.
struct TroubledTopic {
    var topic: RecordTopic
    var name: String
    var records: Int
    /// The approximate size of the waiting records.
    var bytes: Int
    /// The name of Kafka's error; nil if nothing was reported.
    var cause: String?

    /// What is wrong, and what follows from it.
    var trouble: String {
        let words = Self.words(topic)
        return "Kafka accepts no \(words.records): \(words.consequence)"
    }

    /// What an operator can do.
    var remedy: String {
        guard isUnanswered else {
            return "create the topic (lamplighter topics create), give this user WRITE on it, or "
                + "restore its leaders"
        }
        return "Kafka has not acknowledged them: check that its brokers run, can be reached from "
            + "here and lead the topic's partitions"
    }

    /// Whether no broker has said anything about the records, so that nothing points at the topic.
    private var isUnanswered: Bool {
        guard let cause else { return true }
        return Self.silences.contains(cause)
    }

    private static let silences = Set(
        [ErrorCode.messageTimedOut, .timedOut, .transport, .allBrokersDown, .requestTimedOut]
            .map(\.name))

    /// What the records of the topic are called, and what follows from their waiting.
    static func words(_ topic: RecordTopic) -> (records: String, consequence: String) {
        switch topic {
        case .suppressions:
            (
                "suppressions",
                "pushes continue, but the offsets of events with dead tokens are held, "
                    + "and a restart resends the events read after them"
            )
        case .deadLetters:
            (
                "dead letters",
                "pushes continue, but the offsets of failed events are held, and a restart "
                    + "resends the events read after them"
            )
        case .deferred:
            ("deferred pushes", "waiting pushes hold their offsets longer than delivery.holdMax")
        case .events:
            ("shards", "an event of many tokens is sent only by the worker that read it")
        }
    }
}
