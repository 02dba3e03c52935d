// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import KafkaLog
internal import Logging
internal import PushModel
internal import RegistrarRules
internal import Simdjson

/// What the registrar's loop wants of Kafka: the topic of registrations, as a member of a group, and a
/// producer. It belongs to one thread.
protocol RegistrarKafka: AnyObject {
    /// The eventfds that are readable when there is something to poll.
    var wakeDescriptors: [CInt] { get }
    func clearWakeUps()

    /// Lends up to `limit` records, nil for one that is no registration's, and returns how many messages
    /// were looked at.
    func poll(now: Now, limit: Int, _ body: (RegistrationArbiter.Record?) -> Void) -> Int
    func takeFacts() -> [ConsumerFact]
    func completeRevoke(now: Now)
    func restart(now: Now) throws
    /// Tells the other replicas where this one is found.
    func announce(_ text: String)

    /// Writes a registration's record; false if it was not taken.
    func write(_ record: RegistrationWrite) -> Bool
    /// What became of the records that were taken: the offset, nil for one that may not be in the log.
    func takeReports(now: Now) -> [(ticket: RegistrationArbiter.Ticket, offset: Int64?)]
    /// Waits until all that was taken is reported, at most for so long.
    func flush(timeout: Duration)
    func close(timeout: Duration, now: Now)

    /// Asks now and then which of its partitions Kafka cannot serve; the facts say. Waits for nothing.
    func watchPartitions(now: Now)
    func takeWarnings() -> [KafkaWarning]
    /// Why nothing can be written any more.
    var failure: String? { get }
}

/// A consumer and a producer of the topic of registrations.
final class RegistrarClients: RegistrarKafka {
    private let consumer: EventConsumer
    private let producer: RecordProducer
    private let logger: Logger
    private var parser = JSONParser(bytesMax: 4 << 20)

    /// The header of the records that a registrar writes: the replica's number.
    private static let writerHeader = "lamplighter-registrar"
    /// The header with the class of a registration, which one without targets has nowhere else.
    private static let classHeader = "lamplighter-class"
    /// The header with the `Ownership` under which a record was written.
    private static let ownerHeader = "lamplighter-owner"
    /// The header with the sequence that the client gave: the registration's, or the one below which it
    /// removes. It is missing where the last write wins.
    private static let orderHeader = "lamplighter-order"

    init(settings: KafkaClientSettings, topic: String, logger: Logger) throws {
        self.logger = logger
        producer = try RecordProducer(settings: settings, topics: [topic], logger: logger)
        consumer = try EventConsumer(
            settings: settings, topics: [topic], replayed: [0], startFrom: .earliest,
            logger: logger)
    }

    var wakeDescriptors: [CInt] { [consumer.wakeDescriptor, producer.wakeDescriptor] }

    func clearWakeUps() {
        consumer.clearWakeUp()
        producer.clearWakeUp()
    }

    // MARK: Reading

    func poll(now: Now, limit: Int, _ body: (RegistrationArbiter.Record?) -> Void) -> Int {
        consumer.poll(now: now, limit: limit) { body(read($0)) }
    }

    private func read(_ record: borrowing KafkaRecord) -> RegistrationArbiter.Record? {
        guard let (key, handler) = InstallationKey.read(recordKey: record.key) else { return nil }
        var summary: RegistrationSummary?
        if let value = record.value {
            summary = RegistrationSummary(value: value, parser: &parser)
            // What no registrar can read does not stand in the way of the next write.
            if summary == nil {
                summary = RegistrationSummary(sequence: nil, tokenClass: nil, content: 0)
            }
            if summary?.tokenClass == nil {
                summary?.tokenClass = Self.text(of: Self.classHeader, in: record).flatMap {
                    RegistrationClass(rawValue: $0)
                }
            }
        }
        let owner = Self.text(of: Self.ownerHeader, in: record).flatMap {
            Ownership(text: $0, at: record.offset)
        }
        let isOfRegistrar = record.header(named: Self.writerHeader) != nil
        var order = Self.text(of: Self.orderHeader, in: record).flatMap { Int64($0) }
            .flatMap { RegistrationArbiter.sequence($0) }
        // A registrar of a version before notes no order, and all sequences are the clients'.
        if owner == nil, isOfRegistrar { order = order ?? summary?.sequence }
        return RegistrationArbiter.Record(
            partition: record.partition, offset: record.offset, key: key,
            handler: handler, summary: summary, owner: owner,
            order: order.map { summary == nil ? .below($0) : .sequence($0) } ?? .none,
            isOfRegistrar: isOfRegistrar)
    }

    /// - Returns: nil for one that is longer than any of a registrar's, too.
    private static func text(of header: String, in record: borrowing KafkaRecord) -> String? {
        record.header(named: header).flatMap {
            $0.count <= headerBytesMax ? String(decoding: $0, as: UTF8.self) : nil
        }
    }

    /// Two numbers with a space between them.
    private static let headerBytesMax = 40

    func takeFacts() -> [ConsumerFact] { consumer.takeFacts() }

    func completeRevoke(now: Now) { consumer.completeRevoke(commit: [], now: now) }

    func restart(now: Now) throws { try consumer.restart(timeout: .seconds(5), now: now) }

    func announce(_ text: String) { consumer.announce(text) }

    // MARK: Writing

    func write(_ record: RegistrationWrite) -> Bool {
        var headers = [
            (name: Self.writerHeader, value: String(record.writer, radix: 16)),
            (Self.ownerHeader, record.owner.text),
        ]
        switch record.order {
        case .sequence(let number), .below(let number):
            headers.append((Self.orderHeader, "\(number)"))
        case .none: break
        }
        if let tokenClass = record.tokenClass {
            headers.append((Self.classHeader, tokenClass.rawValue))
        }
        func produce(_ value: UnsafeRawBufferPointer?) -> RecordProducer.Acceptance {
            record.key.withUnsafeBytes {
                producer.produce(
                    topic: 0, partition: record.partition, key: $0, value: value, headers: headers,
                    ticket: record.ticket)
            }
        }
        let acceptance = record.value?.withUnsafeBytes(produce) ?? produce(nil)
        if case .failed(let error) = acceptance {
            logger.warning("Kafka does not take a registration", metadata: ["error": "\(error)"])
        }
        return acceptance == .accepted
    }

    func takeReports(now: Now) -> [(ticket: RegistrationArbiter.Ticket, offset: Int64?)] {
        var reports: [(ticket: RegistrationArbiter.Ticket, offset: Int64?)] = []
        producer.pollReports(now: now) { reports.append(($0.ticket, $0.position?.offset)) }
        return reports
    }

    func flush(timeout: Duration) { _ = producer.flush(timeout: timeout) }

    func close(timeout: Duration, now: Now) { consumer.close(timeout: timeout, now: now) }

    // MARK: Trouble

    func takeWarnings() -> [KafkaWarning] { producer.takeWarnings() }

    func watchPartitions(now: Now) { consumer.watchPartitions(now: now) }

    var failure: String? { producer.fatalError.map { "the producer has failed: \($0)" } }
}
