// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import KafkaLog
internal import LinuxIO
internal import Logging
internal import PushModel
internal import RegistrarRules

/// The thread that owns the registrar's Kafka clients and its arbiter. Requests come in by a mailbox and
/// are answered through their continuations, so nothing on it is shared. What Kafka says is told to the
/// arbiter, and what the arbiter wants is done.
final class RegistrarLoop {
    private let mailbox: RegistrarMailbox
    private let kafka: any RegistrarKafka
    private let epoll: Epoll
    private let settings: Settings
    private let logger: Logger
    private let readAgain: Rereading
    private var arbiter: RegistrationArbiter
    /// What the last poll has brought.
    private var polled: [RegistrationArbiter.Record] = []
    private var ids: [AssignmentID: Int32] = [:]
    private var revoking: [AssignmentID] = []
    private var replies: [RegistrationArbiter.RequestID: Reply] = [:]
    /// The requests that wait, oldest first, with the times when they are told to try again.
    private var deadlines: [(request: RegistrationArbiter.RequestID, at: MonotonicTime)] = []
    private var deadlinesDone = 0
    private var lastRequest: RegistrationArbiter.RequestID = 0
    /// What is to be written again and could not be read, and when it is tried again.
    private var unrepaired: [(InstallationKey, handler: String, partition: Int32)] = []
    private var repairAt = MonotonicTime(nanoseconds: .min)
    private var announceAt = MonotonicTime(nanoseconds: .min)
    private var watchAt = MonotonicTime(nanoseconds: .min)
    private var unavailable: [Int32: String] = [:]
    private var lastTurn: MonotonicTime?
    /// Whether the last turn has left records that are there to be read.
    private var isBehind = false
    /// No requests are taken before.
    private var requestsAt = MonotonicTime(nanoseconds: .min)
    private var counters = RegistrarCounters()

    typealias Reply = CheckedContinuation<RegistrationArbiter.Answer, Never>

    struct Settings: Sendable {
        /// The text that other replicas find this one by; empty for one that cannot be reached.
        var announcement: String
        /// The same of a replica that has something in its partitions that was imported.
        var announcementOfImports = ""
        var requestTimeout: Duration
    }

    /// Reads the registration at an offset of a partition on another thread, and gives it to the last
    /// argument.
    typealias Rereading = (Int32, Int64, @escaping RecordStore.Receiver) -> Void

    private static let batch = 1024
    /// Batches of one turn: a topic that is read from its beginning must not keep requests waiting.
    private static let batchesMax = 32
    private static let repairPause = Duration.seconds(1)
    /// A process that was stopped for so long may have lost its partitions without knowing it (a session is
    /// 6 s at least). What was asked of it before is sorted by `RecordStanding`; a request that comes now
    /// is not, so the client is given time to notice that its session is over. It goes by its own clock.
    private static let stall = Duration.seconds(3)
    private static let stallPause = Duration.seconds(3)
    private static let watchInterval = Duration.seconds(2)
    private static let announceInterval = Duration.seconds(10)
    static let stopTimeout = Duration.seconds(10)
    static let leaveTimeout = Duration.seconds(5)

    init(
        settings: Settings, kafka: any RegistrarKafka, mailbox: RegistrarMailbox,
        readAgain: @escaping Rereading, logger: Logger
    ) throws(SystemError) {
        self.settings = settings
        self.kafka = kafka
        self.mailbox = mailbox
        self.readAgain = readAgain
        self.logger = logger
        var random = SystemRandomNumberGenerator()
        arbiter = RegistrationArbiter(writer: random.next(), seed: random.next())
        epoll = try Epoll()
        let descriptors = [mailbox.waker.descriptor] + kafka.wakeDescriptors
        for (tag, descriptor) in descriptors.enumerated() {
            try epoll.add(descriptor, for: .read, tag: UInt64(tag))
        }
    }

    private static func clock() -> Now {
        Now(
            monotonic: MonotonicTime(nanoseconds: SystemClock.monotonicNanoseconds()),
            wall: WallTime(milliseconds: SystemClock.wallNanoseconds() / 1_000_000))
    }

    /// The body of the thread; returns once a stop was asked for, or with the reason why it cannot
    /// go on.
    func run() -> String? {
        var failure: String?
        while failure == nil {
            let now = Self.clock()
            mailbox.heartbeat.beat(now.monotonic)
            if mailbox.isStopping { break }
            failure = turn(now)
            if failure == nil { sleep(takesRequests: now.monotonic >= requestsAt) }
        }
        let now = Self.clock()
        StopWatch.limit(LamplighterRegistrar.stopLimit)
        StopWatch.note("writing the last registrations to Kafka")
        if failure == nil { drain(now) }
        StopWatch.note("leaving the group")
        kafka.close(timeout: Self.leaveTimeout, now: now)
        StopWatch.note("closing the listeners")
        close()
        return failure
    }

    /// Whoever still waits is told to try again.
    func close() {
        mailbox.close()
        for reply in replies.values { reply.resume(returning: .unacknowledged) }
        replies.removeAll()
    }

    /// Takes what has come, and does what follows from it.
    ///
    /// - Returns: why the thread cannot go on; nil if it can.
    func turn(_ now: Now) -> String? {
        if let lastTurn, now.monotonic - lastTurn > Self.stall {
            requestsAt = now.monotonic + Self.stallPause
        }
        lastTurn = now.monotonic
        if now.monotonic >= requestsAt {
            for message in mailbox.take() { take(message, now) }
        }
        repair(now)
        var failure: String?
        var looked = Self.batch
        var batches = 0
        while looked == Self.batch, failure == nil, batches < Self.batchesMax {
            batches += 1
            polled.removeAll(keepingCapacity: true)
            looked = kafka.poll(now: now, limit: Self.batch) { [self] in take($0) }
            failure = answerFacts(now)
            perform(now)
        }
        isBehind = looked == Self.batch
        takeReports(now)
        for warning in kafka.takeWarnings() { report(warning) }
        expire(now)
        if now.monotonic >= watchAt {
            kafka.watchPartitions(now: now)
            watchAt = now.monotonic + Self.watchInterval
        }
        if now.monotonic >= announceAt {
            kafka.announce(
                arbiter.hasImports ? settings.announcementOfImports : settings.announcement)
            announceAt = now.monotonic + Self.announceInterval
        }
        publish(now)
        return kafka.failure ?? failure
    }

    private func sleep(takesRequests: Bool) {
        mailbox.waker.prepareToSleep()
        let hasWork = takesRequests && !mailbox.isEmpty
        _ = epoll.wait(timeout: hasWork || isBehind ? .zero : .milliseconds(100))
        mailbox.waker.awake()
        kafka.clearWakeUps()
    }

    // MARK: Requests

    private func take(_ message: RegistrarMailbox.Message, _ now: Now) {
        switch message {
        case .put(let put, let partition, let reply):
            arbiter.put(put, in: partition, as: expect(reply, now), now: now.wall)
        case .remove(let removal, let partition, let reply):
            arbiter.remove(removal, in: partition, as: expect(reply, now))
        case .claim(let claim, let partition, let reply):
            arbiter.claim(claim, in: partition, as: expect(reply, now), now: now.wall)
        case .list(let key, let partitions, let reply):
            let wanted = partitions ?? Set(arbiter.ownedPartitions)
            let listed = arbiter.list(key, in: wanted)
            reply.resume(returning: listed.map { OwnedHandlers(partitions: wanted, handlers: $0) })
        case .writeAgain(let key, let handler, let partition, let offset, let value):
            arbiter.writeAgain(
                key, handler: handler, partition: partition, offset: offset, value: value)
        case .notWrittenAgain(let key, let handler, let partition):
            // Those that follow do not put off the first.
            if unrepaired.isEmpty { repairAt = now.monotonic + Self.repairPause }
            unrepaired.append((key, handler, partition))
        }
    }

    /// Tries again what could not be read.
    private func repair(_ now: Now) {
        guard !unrepaired.isEmpty, now.monotonic >= repairAt else { return }
        for (key, handler, partition) in unrepaired {
            arbiter.askAgain(key, handler: handler, partition: partition)
        }
        unrepaired = []
    }

    private func expect(_ reply: Reply, _ now: Now) -> RegistrationArbiter.RequestID {
        lastRequest += 1
        replies[lastRequest] = reply
        deadlines.append((lastRequest, now.monotonic + settings.requestTimeout))
        return lastRequest
    }

    private func expire(_ now: Now) {
        while deadlinesDone < deadlines.count {
            let first = deadlines[deadlinesDone]
            let isAnswered = replies[first.request] == nil
            guard isAnswered || first.at <= now.monotonic else { break }
            if let reply = replies.removeValue(forKey: first.request) {
                counters.unacknowledged += 1
                reply.resume(returning: .unacknowledged)
            }
            deadlinesDone += 1
        }
        if deadlinesDone > 4096 {
            deadlines.removeFirst(deadlinesDone)
            deadlinesDone = 0
        }
    }

    // MARK: What the arbiter wants done

    private func perform(_ now: Now) {
        for action in arbiter.takeActions() {
            switch action {
            case .write(let record):
                if !kafka.write(record) { arbiter.reported(record.ticket, offset: nil) }
            case .answer(let request, let answer):
                guard let reply = replies.removeValue(forKey: request) else { break }
                if answer == .unacknowledged { counters.unacknowledged += 1 }
                reply.resume(returning: answer)
            case .writeAgain(let key, let handler, let partition, let offset):
                writeAgain(key, handler, partition, offset)
            case .released(let partition):
                released(partition, now)
            }
        }
    }

    private func writeAgain(
        _ key: InstallationKey, _ handler: String, _ partition: Int32, _ offset: Int64
    ) {
        logger.warning(
            "a former owner of the partition wrote after the next one; writing the newer registration again",
            metadata: [
                "partition": .stringConvertible(partition), "offset": .stringConvertible(offset),
            ])
        let mailbox = mailbox
        readAgain(partition, offset) { [logger] found in
            switch found {
            case .value(let value?):
                mailbox.send(
                    .writeAgain(
                        key, handler: handler, partition: partition, offset: offset, value: value))
            case .unavailable:
                mailbox.send(.notWrittenAgain(key, handler: handler, partition: partition))
            case .value(nil), .gone:
                logger.error(
                    "the newer registration is not in the log any more, so the older one stays",
                    metadata: [
                        "partition": .stringConvertible(partition),
                        "offset": .stringConvertible(offset),
                    ])
            }
        }
    }

    // MARK: Kafka

    private func take(_ record: RegistrationArbiter.Record?) {
        counters.recordsRead += 1
        guard let record else { return }
        polled.append(record)
        arbiter.take(record)
    }

    private func takeReports(_ now: Now) {
        for report in kafka.takeReports(now: now) {
            arbiter.reported(report.ticket, offset: report.offset)
        }
        perform(now)
    }

    private func answerFacts(_ now: Now) -> String? {
        for fact in kafka.takeFacts() {
            switch fact {
            case .assigned(let assignments):
                counters.isInGroup = true
                for assignment in assignments {
                    ids[assignment.id] = assignment.partition
                    arbiter.assigned(assignment.partition, logEnd: assignment.logEnd)
                    // Its first records may have come by in the poll that brought the assignment.
                    for line in polled where line.partition == assignment.partition {
                        arbiter.take(line)
                    }
                    if assignment.startOffset >= assignment.logEnd {
                        caughtUp(assignment.partition, now)
                    }
                }
            case .endOfPartition(let id):
                if let partition = ids[id] { caughtUp(partition, now) }
            case .revoking(let gone):
                counters.isInGroup = false
                revoking = gone
                for id in gone {
                    if let partition = ids[id] { arbiter.revoking(partition) }
                }
                perform(now)
                if gone.isEmpty { kafka.completeRevoke(now: now) }
            case .lost(let gone):
                counters.isInGroup = false
                for id in gone {
                    guard let partition = ids.removeValue(forKey: id) else { continue }
                    arbiter.lost(partition)
                    unavailable[partition] = nil
                }
                logger.warning(
                    "the group has given this registrar's partitions to others",
                    metadata: ["partitions": .stringConvertible(gone.count)])
            case .restartNeeded(let error):
                counters.isInGroup = false
                logger.warning("the consumer is restarted", metadata: ["cause": "\(error)"])
                do { try kafka.restart(now: now) } catch {
                    return "the consumer cannot be started again: \(error)"
                }
            case .fatal(let error): return "the consumer has failed: \(error)"
            case .warning(let warning): report(warning)
            case .unavailable(let partitions):
                unavailable = Dictionary(
                    partitions.map { ($0.partition, "\($0.cause)") }, uniquingKeysWith: { $1 })
                for (partition, cause) in unavailable.sorted(by: { $0.key < $1.key }) {
                    logger.warning(
                        "Kafka cannot serve a partition of the registrations",
                        metadata: [
                            "partition": .stringConvertible(partition), "cause": "\(cause)",
                        ])
                }
            case .availableAgain(_, let partition): unavailable[partition] = nil
            // A registrar commits nothing but who it is.
            case .offsetsLost, .notCommitted: break
            }
        }
        return nil
    }

    private func report(_ warning: KafkaWarning) {
        logger.warning("Kafka reports a problem", metadata: ["problem": "\(warning.text)"])
    }

    private func caughtUp(_ partition: Int32, _ now: Now) {
        arbiter.caughtUp(partition, now: now.wall)
        announceAt = MonotonicTime(nanoseconds: .min)
    }

    private func released(_ partition: Int32, _ now: Now) {
        revoking.removeAll { ids[$0] == partition }
        for (id, own) in ids where own == partition { ids[id] = nil }
        unavailable[partition] = nil
        if revoking.isEmpty { kafka.completeRevoke(now: now) }
    }

    /// Waits until what is under way has ended.
    func drain(_ now: Now) {
        kafka.flush(timeout: Self.stopTimeout)
        takeReports(now)
    }

    private func publish(_ now: Now) {
        counters.owned = arbiter.ownedPartitions
        counters.assigned = ids.count
        counters.registrations = arbiter.registrations
        counters.hasImports = arbiter.hasImports
        counters.bytes = arbiter.bytes
        counters.underWay = arbiter.underWay
        counters.writtenAgain = arbiter.writtenAgain
        counters.unavailable = unavailable
        mailbox.publish(counters)
    }
}
