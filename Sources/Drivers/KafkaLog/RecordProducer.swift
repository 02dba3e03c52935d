// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import LinuxIO
package import Logging
package import PushModel
package import Rdkafka

/// Writes records and reports which are safe: the record of a ticket that comes back without an
/// error is on all in-sync replicas, once. It belongs to one thread. Its queue is bounded by
/// `queue.buffering.max.messages` and `.kbytes`.
package final class RecordProducer {
    package let topics: [String]
    private let client: Client
    private let handles: [Topic]
    private let tokens: TokenSource?
    private let queue: EventQueue
    private let waker = Waker()
    private var warnings = WarningLimiter()
    private var pendingWarnings: [KafkaWarning] = []

    package enum Acceptance: Hashable, Sendable {
        /// The record was taken. Its ticket will be reported by `poll`.
        case accepted
        /// The record was not taken: poll, and try again after the next reports.
        case queueFull
        /// The record was not taken, and trying again does not help (too large, fatal error).
        case failed(RdkafkaError)
    }

    /// - Parameter topics: the topics, which `produce` names by position; none for a producer that
    ///   writes nothing and needs no right to.
    package convenience init(
        settings: KafkaClientSettings, topics: [String], logger: Logger
    ) throws(KafkaError) {
        // A client that writes nothing must not ask Kafka for what a producer needs.
        try self.init(
            topics.isEmpty ? .writeProbe : .producer, settings, topics: topics, logger: logger)
    }

    /// Makes one for records that may be lost, apart from those of others: whatever becomes of its
    /// topic takes neither memory nor time from a producer of records that must not be. It writes
    /// each once or more, or gives it up after half a minute.
    package convenience init(
        settings: KafkaClientSettings, outcomes topic: String, logger: Logger
    ) throws(KafkaError) {
        try self.init(.outcomes, settings, topics: [topic], logger: logger)
    }

    private init(
        _ role: KafkaClientSettings.Role, _ settings: KafkaClientSettings, topics: [String],
        logger: Logger
    ) throws(KafkaError) {
        self.topics = topics
        client = try settings.client(for: role, logger: logger)
        tokens = settings.tokens
        do throws(RdkafkaError) {
            var handles: [Topic] = []
            for name in topics { handles.append(try Topic(name, of: client)) }
            self.handles = handles
        } catch {
            throw .client(error)
        }
        queue = EventQueue.main(of: client)
        queue.wake(descriptor: waker.descriptor, owner: waker)
    }

    // MARK: Waking

    /// An eventfd: readable when there are reports to poll.
    package var wakeDescriptor: CInt { waker.descriptor }

    package func clearWakeUp() { waker.awake() }

    // MARK: Producing

    /// Hands a record to the producer, which copies it. A nil value makes a tombstone; an empty one
    /// does not.
    ///
    /// - Parameter partition: nil for the partition of the key's hash, as Java's producer chooses
    ///   it.
    package func produce(
        topic: Int, partition: Int32? = nil, key: UnsafeRawBufferPointer?,
        value: UnsafeRawBufferPointer?, headers: [(name: String, value: String)] = [],
        ticket: UInt64
    ) -> Acceptance {
        do throws(RdkafkaError) {
            try client.produce(
                to: handles[topic], partition: partition ?? Client.anyPartition, key: key,
                value: value, headers: Self.headers(headers), ticket: ticket)
            return .accepted
        } catch {
            return error.code == .queueFull ? .queueFull : .failed(error)
        }
    }

    private static func headers(_ list: [(name: String, value: String)]) -> MessageHeaders? {
        if list.isEmpty { return nil }
        let headers = MessageHeaders()
        for header in list { headers.append(header.name, header.value) }
        return headers
    }

    /// Passes the reports that have arrived to `body`, without waiting, and returns their number.
    /// The record of a ticket with an error may not be written: nothing that depends on it may be
    /// released.
    @discardableResult
    package func poll(now: Now, _ body: (_ ticket: UInt64, _ error: ErrorCode?) -> Void) -> Int {
        pollReports(now: now) { body($0.ticket, $0.error) }
    }

    /// What became of one record.
    package struct Report: Hashable, Sendable {
        package let ticket: UInt64
        /// Where the record was written; nil with an error.
        package let position: Position?
        package let error: ErrorCode?

        package struct Position: Hashable, Sendable {
            package let partition: Int32
            package let offset: Int64
        }

        fileprivate init(_ report: DeliveryReport) {
            ticket = report.ticket
            let isWritten = report.code == .none
            error = isWritten ? nil : report.code
            position =
                isWritten
                ? Position(partition: report.partition, offset: report.offset) : nil
        }
    }

    /// Does the same as `poll`, and also reports where each record was written.
    @discardableResult
    package func pollReports(now: Now, _ body: (Report) -> Void) -> Int {
        let reports = client.takeDeliveryReports()
        if client.hasNews {
            for error in client.takeNews().errors where error.code != .fatal {
                if let warning = warnings.admit(error, now: now.monotonic) {
                    pendingWarnings.append(warning)
                }
            }
        }
        for report in reports { body(Report(report)) }
        return reports.count
    }

    package func takeWarnings() -> [KafkaWarning] {
        defer { pendingWarnings.removeAll() }
        return pendingWarnings
    }

    /// How many records were accepted and not yet reported by `poll`.
    package var outstanding: Int { client.outstandingMessages }

    /// The error after which every record fails; nil while there is none. The process must end;
    /// events whose records were not acknowledged are then read again.
    package var fatalError: RdkafkaError? { client.fatalError }

    /// Why no token could be obtained for Kafka; nil unless the last request for one failed.
    package var tokenFailure: TokenFailure? { tokens?.failure }

    /// Why no connection can be made; nil if that is not known.
    package var connectionFailure: ConnectionFailure? { client.connectionFailure }

    /// Sends the queued records and waits for their reports; false if some are still missing. Call
    /// `poll` afterwards.
    package func flush(timeout: Duration) -> Bool { client.flush(timeout: timeout) }
}
