// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import KafkaLog
internal import LinuxIO
internal import Logging
internal import PushModel
internal import Registering
internal import Simdjson
internal import Synchronization

/// The thread that owns the registrar's Kafka clients and its desk. Requests come in by a mailbox and
/// are answered through their continuations, so nothing on it is shared.
final class RegistrarLoop {
    private let mailbox: RegistrarMailbox
    private let consumer: EventConsumer
    private let producer: RecordProducer
    private let epoll: Epoll
    private let settings: Settings
    private let logger: Logger
    private let rewrites: RecordStore
    private var desk: RegistrationDesk
    private var parser = JSONParser(bytesMax: 4 << 20)
    /// What the last poll has brought.
    private var polled: [RegistrationDesk.Record] = []
    private var ids: [AssignmentID: Int32] = [:]
    private var revoking: [AssignmentID] = []
    private var replies: [RegistrationDesk.RequestID: Reply] = [:]
    /// The requests that wait, oldest first, with the times when they are told to try again.
    private var deadlines: [(request: RegistrationDesk.RequestID, at: MonotonicTime)] = []
    private var deadlinesDone = 0
    private var lastRequest: RegistrationDesk.RequestID = 0
    /// What is to be written again and could not be read, and when it is tried again.
    private var unrepaired: [(InstallationKey, handler: String, partition: Int32)] = []
    private var repairAt = MonotonicTime(nanoseconds: .min)
    private var announceAt = MonotonicTime(nanoseconds: .min)
    private var counters = RegistrarCounters()

    typealias Reply = CheckedContinuation<RegistrationDesk.Answer, Never>

    struct Settings: Sendable {
        /// The text that other replicas find this one by; empty for one that cannot be reached.
        var announcement: String
        var requestTimeout: Duration
        var topic: String
    }

    /// The header of the records that a registrar writes: the replica's number.
    static let writerHeader = "lamplighter-registrar"
    /// The header with the class of a registration, which one without targets has nowhere else.
    static let classHeader = "lamplighter-class"
    private static let batch = 1024
    private static let repairPause = Duration.seconds(1)
    private static let announceInterval = Duration.seconds(10)
    static let stopTimeout = Duration.seconds(10)
    static let leaveTimeout = Duration.seconds(5)

    init(
        settings: Settings, clients: KafkaClientSettings, mailbox: RegistrarMailbox,
        rewrites: RecordStore, logger: Logger
    ) throws {
        self.settings = settings
        self.mailbox = mailbox
        self.rewrites = rewrites
        self.logger = logger
        var random = SystemRandomNumberGenerator()
        desk = RegistrationDesk(writer: random.next(), seed: random.next())
        producer = try RecordProducer(
            settings: clients, topics: [settings.topic], logger: logger)
        consumer = try EventConsumer(
            settings: clients, topics: [settings.topic], replayed: [0], startFrom: .earliest,
            logger: logger)
        epoll = try Epoll()
        try epoll.add(mailbox.waker.descriptor, for: .read, tag: 0)
        try epoll.add(consumer.wakeDescriptor, for: .read, tag: 1)
        try epoll.add(producer.wakeDescriptor, for: .read, tag: 2)
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
            if failure == nil { sleep() }
        }
        let now = Self.clock()
        StopWatch.limit(LamplighterRegistrar.stopLimit)
        StopWatch.note("writing the last registrations to Kafka")
        if failure == nil { drain(now) }
        StopWatch.note("leaving the group")
        consumer.close(timeout: Self.leaveTimeout, now: now)
        StopWatch.note("closing the listeners")
        mailbox.close()
        for reply in replies.values { reply.resume(returning: .unacknowledged) }
        replies.removeAll()
        return failure
    }

    private func turn(_ now: Now) -> String? {
        for message in mailbox.take() { take(message, now) }
        repair(now)
        var failure: String?
        var looked = Self.batch
        while looked == Self.batch, failure == nil {
            polled.removeAll(keepingCapacity: true)
            looked = consumer.poll(now: now, limit: Self.batch) { [self] in take($0) }
            failure = answerFacts(now)
            perform(now)
        }
        producer.pollReports(now: now) { desk.reported($0.ticket, offset: $0.position?.offset) }
        perform(now)
        for warning in producer.takeWarnings() { report(warning) }
        expire(now)
        if now.monotonic >= announceAt {
            consumer.announce(settings.announcement)
            announceAt = now.monotonic + Self.announceInterval
        }
        publish(now)
        if let fatal = producer.fatalError { return "the producer has failed: \(fatal)" }
        return failure
    }

    private func sleep() {
        mailbox.waker.prepareToSleep()
        let isEmpty = mailbox.isEmpty
        _ = epoll.wait(timeout: isEmpty ? .milliseconds(100) : .zero)
        mailbox.waker.awake()
        consumer.clearWakeUp()
        producer.clearWakeUp()
    }

    // MARK: Requests

    private func take(_ message: RegistrarMailbox.Message, _ now: Now) {
        switch message {
        case .put(let put, let partition, let reply):
            desk.put(put, in: partition, as: expect(reply, now), now: now.wall)
        case .remove(let removal, let partition, let reply):
            desk.remove(removal, in: partition, as: expect(reply, now))
        case .list(let key, let partitions, let reply):
            let wanted = partitions ?? Set(desk.ownedPartitions)
            let listed = desk.list(key, in: wanted)
            reply.resume(returning: listed.map { OwnedHandlers(partitions: wanted, handlers: $0) })
        case .writeAgain(let key, let handler, let partition, let offset, let value):
            desk.writeAgain(
                key, handler: handler, partition: partition, offset: offset, value: value)
        case .notWrittenAgain(let key, let handler, let partition):
            unrepaired.append((key, handler, partition))
            repairAt = now.monotonic + Self.repairPause
        }
    }

    /// Tries again what could not be read.
    private func repair(_ now: Now) {
        guard !unrepaired.isEmpty, now.monotonic >= repairAt else { return }
        for (key, handler, partition) in unrepaired {
            desk.askAgain(key, handler: handler, partition: partition)
        }
        unrepaired = []
    }

    private func expect(_ reply: Reply, _ now: Now) -> RegistrationDesk.RequestID {
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
                counters.expired += 1
                reply.resume(returning: .unacknowledged)
            }
            deadlinesDone += 1
        }
        if deadlinesDone > 4096 {
            deadlines.removeFirst(deadlinesDone)
            deadlinesDone = 0
        }
    }

    // MARK: What the desk wants done

    private func perform(_ now: Now) {
        for action in desk.takeActions() {
            switch action {
            case .write(let ticket, let partition, let key, let value, let tokenClass):
                write(ticket, partition, key, value, tokenClass)
            case .answer(let request, let answer):
                replies.removeValue(forKey: request)?.resume(returning: answer)
            case .writeAgain(let key, let handler, let partition, let offset):
                writeAgain(key, handler, partition, offset)
            case .released(let partition):
                released(partition, now)
            }
        }
    }

    private func write(
        _ ticket: RegistrationDesk.Ticket, _ partition: Int32, _ key: [UInt8], _ value: [UInt8]?,
        _ tokenClass: RegistrationClass?
    ) {
        var headers = [(name: Self.writerHeader, value: String(desk.writer, radix: 16))]
        if let tokenClass { headers.append((Self.classHeader, tokenClass.rawValue)) }
        let acceptance = key.withUnsafeBytes { key in
            guard let value else {
                return producer.produce(
                    topic: 0, partition: partition, key: key, value: nil, headers: headers,
                    ticket: ticket)
            }
            return value.withUnsafeBytes { value in
                producer.produce(
                    topic: 0, partition: partition, key: key, value: value, headers: headers,
                    ticket: ticket)
            }
        }
        if acceptance != .accepted {
            if case .failed(let error) = acceptance {
                logger.warning(
                    "Kafka does not take a registration", metadata: ["error": "\(error)"])
            }
            desk.reported(ticket, offset: nil)
        }
    }

    private func writeAgain(
        _ key: InstallationKey, _ handler: String, _ partition: Int32, _ offset: Int64
    ) {
        logger.warning(
            "another registrar wrote an older registration after a newer one; writing the newer one again",
            metadata: [
                "partition": .stringConvertible(partition), "offset": .stringConvertible(offset),
            ])
        let mailbox = mailbox
        rewrites.repair(partition: partition, offset: offset) { [logger] found in
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

    private func take(_ record: borrowing KafkaRecord) {
        counters.recordsRead += 1
        guard let (key, handler) = InstallationKey.read(recordKey: record.key) else { return }
        var summary: RegistrationSummary?
        if let value = record.value {
            summary = RegistrationSummary(value: value, parser: &parser)
            // What no registrar can read does not stand in the way of the next write.
            if summary == nil {
                summary = RegistrationSummary(sequence: nil, tokenClass: nil, content: 0)
            }
            if summary?.tokenClass == nil {
                summary?.tokenClass = record.header(named: Self.classHeader).flatMap {
                    RegistrationClass(rawValue: String(decoding: $0, as: UTF8.self))
                }
            }
        }
        let writer = record.header(named: Self.writerHeader).flatMap {
            UInt64(String(decoding: $0, as: UTF8.self), radix: 16)
        }
        let line = RegistrationDesk.Record(
            partition: record.partition, offset: record.offset, key: key,
            handler: handler, summary: summary, writer: writer)
        polled.append(line)
        desk.take(line)
    }

    private func answerFacts(_ now: Now) -> String? {
        for fact in consumer.takeFacts() {
            switch fact {
            case .assigned(let assignments):
                for assignment in assignments {
                    ids[assignment.id] = assignment.partition
                    desk.assigned(assignment.partition)
                    // Its first records may have come by in the poll that brought the assignment.
                    for line in polled where line.partition == assignment.partition {
                        desk.take(line)
                    }
                    if assignment.startOffset >= assignment.logEnd {
                        caughtUp(assignment.partition)
                    }
                }
            case .endOfPartition(let id):
                if let partition = ids[id] { caughtUp(partition) }
            case .revoking(let gone):
                revoking = gone
                for id in gone {
                    if let partition = ids[id] { desk.revoking(partition) }
                }
                perform(now)
                if gone.isEmpty { consumer.completeRevoke(store: [], now: now) }
            case .lost(let gone):
                for id in gone {
                    if let partition = ids.removeValue(forKey: id) { desk.lost(partition) }
                }
                revoking.removeAll { gone.contains($0) }
                logger.warning(
                    "the group has given this registrar's partitions to others",
                    metadata: ["partitions": .stringConvertible(gone.count)])
            case .restartNeeded(let error):
                logger.warning("the consumer is restarted", metadata: ["cause": "\(error)"])
                do { try consumer.restart(timeout: .seconds(5), now: now) } catch {
                    return "the consumer cannot be started again: \(error)"
                }
            case .fatal(let error): return "the consumer has failed: \(error)"
            case .warning(let warning): report(warning)
            case .offsetsLost, .unavailable, .availableAgain: break
            }
        }
        return nil
    }

    private func report(_ warning: KafkaWarning) {
        logger.warning("Kafka reports a problem", metadata: ["problem": "\(warning.text)"])
    }

    private func caughtUp(_ partition: Int32) {
        desk.caughtUp(partition)
        announceAt = MonotonicTime(nanoseconds: .min)
    }

    private func released(_ partition: Int32, _ now: Now) {
        revoking.removeAll { ids[$0] == partition }
        for (id, own) in ids where own == partition { ids[id] = nil }
        if revoking.isEmpty { consumer.completeRevoke(store: [], now: now) }
    }

    /// Waits until what is under way has ended.
    private func drain(_ now: Now) {
        _ = producer.flush(timeout: Self.stopTimeout)
        producer.pollReports(now: now) { desk.reported($0.ticket, offset: $0.position?.offset) }
        perform(now)
    }

    private func publish(_ now: Now) {
        counters.owned = desk.ownedPartitions
        counters.registrations = desk.registrations
        counters.bytes = desk.bytes
        counters.underWay = desk.underWay
        counters.writtenAgain = desk.writtenAgain
        counters.isGroupMember = !ids.isEmpty
        counters.kafkaProblem =
            producer.tokenFailure.map { "\($0)" } ?? producer.connectionFailure.map { "\($0)" }
        mailbox.publish(counters)
    }
}
