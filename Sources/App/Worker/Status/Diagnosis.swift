// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Delivery
internal import KafkaLog
internal import Pipeline
internal import PushModel

/// Finds what is wrong with a worker by its status alone.
struct Diagnosis {
    /// The errors, then the warnings; a cause before its effects.
    private(set) var problems: [Problem] = []
    let status: WorkerStatus

    init(_ status: WorkerStatus) {
        self.status = status
        checkThreads()
        checkKafka()
        checkAPNS()
        checkFlow()
        checkSetAside()
        checkMisplaced()
        checkEvents()
        // Others suffer from it, and restrictions may be many.
        checkDeferred()
        checkCanary()
        checkShadow()
        checkOutcomes()
        checkClock()
        checkRestrictions()
        checkWithheldEvents()
        problems =
            problems.filter { $0.severity == .error } + problems.filter { $0.severity == .warning }
    }

    /// What is wrong now and what to do, or that all is well.
    var summary: String {
        status.shadow == nil ? finding : "\(Self.shadowSentence) \(finding)"
    }

    private var finding: String {
        guard let first = problems.first else { return phase }
        let others = problems.count - 1
        let more = others == 0 ? "" : " (And \(others.counted("other problem")).)"
        return "\(first.summary) \(first.remedy)\(more)"
    }

    private var phase: String {
        switch status.phase {
        case .replaying: Probes.progress(status.index).asSentence
        case .running:
            if let wait = status.groupWait {
                "The worker waits for the group to give out its partitions, for \(wait.rounded) so "
                    + "far, and reads no events meanwhile."
            } else if membership == .spare {
                "All is well: the group has given all "
                    + (status.consumedPartitions.map { "\($0.withCommas) " } ?? "")
                    + "partitions to other members. If no other worker runs, see who they are: "
                    + "kafka-consumer-groups.sh --describe --members."
            } else {
                "All is well."
            }
        case .draining: "The worker is stopping: it sends what is under way and stores its offsets."
        case .stopped: "The worker has stopped."
        }
    }

    var membership: StatusReport.Membership {
        if !status.hasJoinedGroup || isKafkaSilent { return .outside }
        if status.groupWait != nil { return .waiting }
        return status.partitions.isEmpty && status.consumedPartitions != nil ? .spare : .member
    }

    mutating func report(
        _ severity: Problem.Severity, _ summary: String, _ remedy: String
    ) {
        problems.append(Problem(severity, summary, remedy: remedy))
    }

    // MARK: The worker itself

    private mutating func checkThreads() {
        for stuck in status.stuckThreads {
            report(
                .error, "\(stuck.thread) has not turned for \(stuck.silence.rounded)",
                "restart the worker, which loses nothing, and report this with the end of its log; "
                    + "a liveness probe of /livez restarts it by itself")
        }
        if status.isStarting {
            report(
                .warning, Probes.starting,
                "if it stays so, check that the brokers of kafka.bootstrap run and can be reached "
                    + "from here")
        } else if !status.isCurrent, status.stuckThreads.isEmpty, status.phase != .stopped {
            report(
                .warning, "the planner has not answered for 2 s, so these figures are old",
                "ask again: it may be reopening its Kafka consumer; if it stays so for a minute, "
                    + "restart the worker")
        }
    }

    // MARK: Kafka

    /// How old the index may be before Kafka counts as silent. Its topics are asked for their ends
    /// every five seconds.
    private static let silenceMax = Duration.seconds(15)
    /// The same where a broker takes no connection or gives no answer: one question has been missed.
    private static let unansweredMax = Duration.seconds(7)

    /// How long reading may stand still before the first event.
    private static let standstillMax = Duration.seconds(5)

    /// How long a schema may be asked for.
    private static let schemaPatience = Duration.seconds(5)

    private var standstill: Duration { status.index.elapsed - status.earlier.readAt }

    /// The tables about which Kafka has said nothing for long.
    private var oldTables: [WorkerStatus.Table] {
        let isInTrouble = status.index.isUnanswered || status.index.connectionFailure != nil
        let patience = isInTrouble ? Self.unansweredMax : Self.silenceMax
        return status.index.tables.filter { $0.age > patience }
    }

    private var isKafkaSilent: Bool {
        let old = oldTables.count
        return status.phase == .running && old > 0 && old == status.index.tables.count
    }

    private mutating func checkKafka() {
        let isRunning = status.phase == .running
        let isSilent = isKafkaSilent
        let old = oldTables
        if isSilent {
            reportKafka("Kafka has not answered for \((old.map(\.age).min() ?? .zero).rounded)")
        } else if isRunning {
            for table in old where table.age > TableReader.ageMax {
                report(
                    .error,
                    "the index is \(table.age.rounded) behind \(table.topic), with "
                        + "\(Int(table.unread).counted("record")) unread, so pushes may go by old "
                        + "registrations",
                    "check the leaders of that topic's partitions, and the right to read it")
            }
        } else if status.phase == .replaying, standstill >= Self.standstillMax {
            reportKafka(
                "reading registrations and suppressions has stood still for \(standstill.rounded)")
        }
        if isRunning, !isSilent { checkGroup() }
        if status.unavailablePartitions > 0 {
            report(
                .error,
                "\(status.unavailablePartitions.counted("partition")) of this worker cannot be read",
                "bring back the brokers that have their replicas; the log names the partitions and "
                    + "the cause")
        }
        if let held = status.held.first, held.held > Self.schemaPatience {
            report(
                .error,
                "\(status.held.count.counted("partition")) of this worker \(status.held.count == 1 ? "is" : "are") "
                    + "held: \(held.topic)/\(held.partition) waits at offset \(held.offset) for schema "
                    + "\(held.schema), and \(held.cause?.printable ?? "the schema registry has not answered yet")",
                "bring the schema registry back, or correct kafka.schemaRegistry; the worker asks again "
                    + "by itself, and loses nothing")
        }
        for topic in status.troubledTopics {
            report(topic.topic == .events ? .warning : .error, topic.trouble, topic.remedy)
        }
    }

    /// How long an ordinary rebalance may take.
    static let rebalanceMax = Duration.seconds(10)

    private mutating func checkGroup() {
        if !status.hasJoinedGroup {
            reportMembership()
        } else if let wait = status.groupWait, wait > Self.rebalanceMax {
            report(
                .error,
                "the consumer group has been rebalancing for \(wait.rounded), so the worker reads no "
                    + "events",
                "it waits for a member that has died until its session ends (session.timeout.ms), which "
                    + "kafka.groupInstanceID avoids, and for each that drains; if it does not end, look "
                    + "for a member that joins again and again")
        } else if status.groupWait == nil, status.partitions.isEmpty,
            status.consumedPartitions == nil
        {
            report(
                .warning,
                "the group has given this worker no partitions, and Kafka does not say how many its "
                    + "topics have, so perhaps nobody reads them",
                "try lamplighter check: the topics must be there, and this user needs DESCRIBE and READ "
                    + "on them")
        }
        for topic in status.missingTopics {
            report(
                .error, "Kafka does not know the topic \(topic), so nothing of it is read",
                "create it again, or take it out of the configuration (kafka.events, kafka.topics)")
        }
        if let open = status.openTransactions.first {
            let all = status.openTransactions.count.counted("partition")
            report(
                .error,
                "\(all) of this worker \(status.openTransactions.count == 1 ? "stands" : "stand") before "
                    + "a transaction that is not over: \(open.topic)/\(open.partition) at offset "
                    + "\(open.offset) for \(open.lasted.rounded)",
                "let its producer commit or abort it, or wait for its transaction.timeout.ms "
                    + "(kafka-transactions.sh find-hanging names those that hang); only what is committed "
                    + "is read")
        }
    }

    /// A worker without a connection loses its membership before Kafka counts as silent.
    private mutating func reportMembership() {
        let outside = "the worker is not a member of its consumer group, so it reads no events"
        if status.index.isUnanswered {
            reportKafka("Kafka does not answer, so the worker reads no events")
        } else if status.index.connectionFailure != nil {
            reportKafka(outside)
        } else {
            report(
                .error, outside,
                "wait half a minute after a start; if it stays so, check that the brokers run and "
                    + "that this user has READ on the group")
        }
    }

    private mutating func reportKafka(_ summary: String) {
        let failure = status.index.connectionFailure
        report(
            .error, summary + (failure.map { ": \($0.trouble)" } ?? ""),
            (failure?.remedy
                ?? "check that the brokers of kafka.bootstrap run and can be reached from here")
                + "; the worker goes on by itself, and loses nothing")
    }

    // MARK: APNs

    /// Apple answers within a tenth of a second or so.
    private static let roundTripMax = Duration.seconds(2)
    /// The fewest answers that mean something.
    private static let answersMin: UInt64 = 10

    private mutating func checkRoundTrips() {
        let times = status.roundTrips.since(status.earlier.roundTrips)
        guard times.count >= Self.answersMin, let median = times.quantile(0.5),
            median >= Self.roundTripMax
        else { return }
        report(
            .warning,
            "APNs has taken \(median.rounded) for half of its answers in the last \(over.rounded), "
                + "so pushes are late",
            "check this machine's way to the APNs endpoint (network, apns.proxy) and its CPU; if "
                + "other machines see it too, it is APNs itself")
    }

    private mutating func checkAPNS() {
        for breaker in status.breakers {
            let pool = status.pools.first { $0.breakerName == breaker.name }
            if breaker.cause == .silent, let pool, pool.state == .unconnected {
                reportUnconnected(pool)
            } else {
                report(
                    .error, "pushes of \(breaker.name) wait: \(breaker.words)",
                    breaker.remedy)
            }
        }
        for pool in status.pools where pool.isTokenReady { reportReadyToken(pool) }
        for pool in status.pools where pool.isKeyGone && !pool.isTokenReady {
            report(
                .warning,
                "the key file of \(pool.breakerName) was removed: this worker keeps the loaded key, and "
                    + "one that starts would have none",
                "put the file back, or another key of the team")
        }
        for pool in status.pools
        where !status.breakers.contains(where: { $0.name == pool.breakerName }) {
            switch pool.state {
            case .unconnected: reportUnconnected(pool)
            case .stalled:
                report(
                    .error,
                    "pushes of \(pool.breakerName) wait: APNs has not answered for "
                        + (pool.silence ?? .zero).rounded,
                    TrippedBreaker.Cause.silent.remedy)
            case .idle, .connecting, .open, .paused: reportIllConnections(pool)
            }
        }
    }

    /// A lone fault is of no interest, and two may be one token's.
    private static let faultsMin = 3

    private mutating func reportIllConnections(_ pool: WorkerStatus.Pool) {
        if pool.faultsInARow >= Self.faultsMin {
            // Nothing is left to send on, or it fails as well.
            return report(
                .warning,
                "the last \(pool.faultsInARow.counted("request")) of \(pool.breakerName) failed: "
                    + "APNs answers 5xx, or nothing",
                TrippedBreaker.Cause.ill.remedy)
        }
        guard pool.connectionsIll > 0 else { return }
        report(
            .warning,
            "\(pool.connectionsIll) of the \(pool.connections.counted("connection")) of "
                + "\(pool.breakerName) fail",
            "wait: the worker sends on the others and replaces those that fail, one at a time; if it "
                + "goes on, the log names the addresses that they reach")
    }

    private mutating func reportUnconnected(_ pool: WorkerStatus.Pool) {
        let error = pool.connectError.map { "last error: \($0)" } ?? "no error yet"
        let log = pool.connectError == nil ? "" : "; the log has the remedy of each error"
        report(
            .error,
            "pushes of \(pool.breakerName) wait: no connection to APNs is open "
                + "(\(pool.endpoint); \(error))",
            "check that this machine reaches the APNs endpoint (DNS, TCP 443, firewall, apns.proxy) "
                + "and accepts its certificate" + log)
    }

    // MARK: The flow

    /// What a healthy Kafka and APNs need at most on top of what the configuration allows.
    private static let patience = Duration.seconds(30)

    /// A push is late that APNs has accepted so long after its event; deploy/prometheus/rules.yaml has
    /// the same bound.
    private static let freshness = Duration.milliseconds(2_048)

    private mutating func checkFreshness() {
        var times = LatencyHistogram()
        // What is meant to wait is late by design.
        for now in status.eventToAccepted where status.promptTypes.contains(now.type) {
            let before = status.earlier.eventToAccepted.first { $0.type == now.type }
            times.add(before.map { now.times.since($0.times) } ?? now.times)
        }
        if times.count >= Self.answersMin, let slow = times.quantile(0.9), slow > Self.freshness {
            report(
                .warning,
                "a tenth of the pushes of the last \(over.rounded) came \(slow.rounded) or more after "
                    + "their events"
                    + (status.load.oldestWords.map { "; the oldest that waits is \($0)" } ?? "")
                    + (status.demand.words ?? ""),
                "see what is behind: a lag that was there before falls by itself; if it does not, add "
                    + "workers, drop or limit who asks for too much, or see what else is reported here"
            )
        } else if let oldest = status.load.oldestWaiting, oldest > status.holdMax + Self.patience,
            problems.isEmpty
        {
            report(
                .warning,
                "the oldest push that waits is of an event \(oldest.rounded) ago"
                    + (status.load.oldestWords.map { ", \($0)" } ?? ""),
                "see what it waits for: lamplighter explain, with its subject")
        }
    }

    /// APNs takes no more pushes to these tokens for the moment, and each of theirs is tried again after a longer wait.
    private mutating func checkCoolDowns() {
        let (now, before) = (status.counters, status.earlier.counters)
        let cooled = now.cooledDown - before.cooledDown
        let accepted = now.accepted - before.accepted
        guard cooled >= Self.answersMin, cooled >= accepted else { return }
        report(
            .warning,
            "\(cooled.withCommas) of the last \((cooled + accepted).counted("answer")) of APNs were 429 "
                + "TooManyRequests: it takes no more pushes to these tokens for now"
                + (status.demand.words ?? ""),
            "send these tokens less: planning.minimumGap, planning.budget.thin, or drop or limit who asks for "
                + "too much; the worker tries again by itself, and loses nothing but what expires")
    }

    /// How long what may be sent at once may take at the speed of the last seconds.
    private static let backlogMax = Duration.seconds(5)
    private static let backlogMin = 1_000

    /// What joins a push that waits, or replaces it, makes neither a lag nor an old push.
    private mutating func checkBacklog() {
        let sent = status.counters.handedOver - status.earlier.counters.handedOver
        guard problems.isEmpty, status.load.queued >= Self.backlogMin, sent > 0, over > .zero
        else { return }
        let time = over * (Double(status.load.queued) / Double(sent))
        guard time > Self.backlogMax else { return }
        report(
            .warning,
            "\(status.load.queued.counted("push", plural: "pushes")) may be sent at once, which takes \(time.rounded) at "
                + "the speed of the last \(over.rounded)\(status.demand.words ?? "")",
            "one large audience is sent by itself; if it stays so, add workers, raise apns.connectionsMax if "
                + "the CPU is idle, or drop or limit who asks for too much")
    }

    private mutating func checkFlow() {
        checkRoundTrips()
        checkCoolDowns()
        checkFreshness()
        if let oldest = status.load.oldestUncommitted, oldest > status.holdMax + Self.patience {
            report(
                .warning,
                "the oldest event whose offset is not committed was read \(oldest.rounded) ago, so a "
                    + "restart would read all events after it again",
                "look for topics that take no records and for waiting pushes; if nothing else is "
                    + "wrong, report it")
        }
        let earlier = status.earlier
        if !status.hasRoomForEvents, status.lag > earlier.lag, problems.isEmpty {
            report(
                .warning,
                "events come faster than their pushes are sent: the lag is "
                    + "\(Int(status.lag).counted("record")), "
                    + "\(Int(status.lag - earlier.lag).withCommas) more than \(over.rounded) ago"
                    + (status.demand.words ?? ""),
                "add workers, up to one for each partition; if the CPU is idle, raise "
                    + "apns.connectionsMax; drop or limit who asks for too much")
        }
        checkBacklog()
    }

    /// Breakers, which make pushes wait, are reported before.
    private mutating func checkDeferred() {
        guard status.load.forgotten > 0 else { return }
        let left = status.load.forgotten.counted("record")
        report(
            .warning,
            "the worker has no room for more deferred pushes, so about \(left) of the deferred topic "
                + "are left in Kafka: what may not be sent at the moment, or has the largest "
                + "backlog. They are read again when they may be sent, and may expire before",
            "correct what makes pushes wait, such as a credential that is refused; resume what is "
                + "paused, or drop it; else raise delivery.deferredMax and "
                + "delivery.queuedBytesMax if memory allows, or add workers")
    }

    // MARK: Compacted topics

    /// The share of the records read at the start that may be set aside without a word.
    private static let replayedShareMax = 0.1

    /// What a replay sets aside again is no news, unless it is much of what there is.
    private mutating func checkSetAside() {
        guard status.phase != .replaying else { return }
        let replayed = status.earlier.replayed.filter { $0.unit == "records" && $0.count > 0 }
        let count = replayed.reduce(0) { $0 + $1.count }
        let all = Double(status.index.registrations + count)
        if count >= Self.eventsMin || status.index.tokens == 0,
            Double(count) > all * Self.replayedShareMax
        {
            let reasons = replayed.map { "\($0.count.withCommas) \($0.reason) in \($0.topic)" }
            report(
                .warning,
                "\(count.counted("record")) that were there at the start could not be used: "
                    + reasons.joined(separator: ", "),
                "nobody gets pushes by them; for unknownApp add the app to a credential "
                    + "(apns.credentials), and restart the worker")
        }
        var parts: [String: [(reason: String, count: Int)]] = [:]
        for now in status.setAside {
            let before = status.earlier.setAside.first {
                ($0.topic, $0.unit, $0.reason) == (now.topic, now.unit, now.reason)
            }
            let count = now.count - (before?.count ?? 0)
            if count > 0 {
                parts["\(now.unit) of \(now.topic)", default: []].append((now.reason, count))
            }
        }
        for (part, reasons) in parts.sorted(by: { $0.key < $1.key }) {
            let text = reasons.map { "\($0.count.withCommas) \($0.reason)" }.joined(separator: ", ")
            report(
                .warning, "\(part) were set aside in the last \(over.rounded): \(text)",
                "what they say has no effect; compare what writes them with docs/records.md, and "
                    + "the apps with those of the credentials (the log names some records)")
        }
    }

    private mutating func checkMisplaced() {
        for records in status.misplaced where records.count > 0 {
            report(.warning, records.text, MisplacedRecords.remedy)
        }
    }

    /// The time since the moment that is compared with.
    var over: Duration { status.index.elapsed - status.earlier.elapsed }
}
