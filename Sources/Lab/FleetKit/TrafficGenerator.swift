// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import KafkaLog
internal import LinuxIO
package import Logging
internal import PushModel
internal import RecordFormats

/// Registers a neighbourhood, waits for the registration grace period, and then produces events at
/// a steady rate. It writes a line to the events log for each event that Kafka has acknowledged,
/// and none for the others.
///
/// It belongs to one thread. Memory holds the events not yet acknowledged, bounded by the
/// producer's queue.
package final class TrafficGenerator {
    let options: TrafficOptions
    let neighbourhood: Neighbourhood
    private let producer: RecordProducer
    private let offsets: GroupProgress
    private let log: FileHandle
    var random: SplitMix64
    var population: Population
    private var report = TrafficReport(phase: .registering)
    /// The events not yet acknowledged, by ticket.
    private var underWay: [UInt64: EmittedEvent] = [:]
    private var nextTicket: UInt64 = 1
    private var refusal: String?
    private var acknowledgements = AcknowledgementWatch(now: .now)

    /// The most events per partition that may wait for the workers. The embedded Kafka keeps 5 MiB
    /// of each partition; an event alone in its batch takes about 90 bytes, and a fifth of the room
    /// is enough.
    private static let lagMaxPerPartition = 5 * 1024 * 1024 / 5 / 90
    private static let turn = Duration.milliseconds(5)
    private static let reportInterval = Duration.milliseconds(200)
    private static let flushMax = Duration.seconds(30)

    package init(_ options: TrafficOptions, logger: Logger) throws {
        self.options = options
        neighbourhood = Neighbourhood(
            installations: options.installations, hasStreet: options.streetShare > 0)
        random = SplitMix64(seed: options.seed)
        population = Population(installations: neighbourhood.installations)
        producer = try RecordProducer(
            settings: KafkaClientSettings(
                bootstrap: options.bootstrap, group: options.group,
                // Latency is measured from here, so events do not wait for a full batch.
                properties: ["linger.ms": "1"]),
            topics: [options.eventsTopic, options.registrationsTopic], logger: logger)
        offsets = try GroupProgress(
            bootstrap: options.bootstrap, group: options.group, topic: options.eventsTopic)
        guard let log = FileHandle.emptied(path: options.eventsLog)
        else { throw TrafficError(description: "\(options.eventsLog) cannot be written") }
        self.log = log
    }

    /// Produces traffic until the duration is over, standard input ends, or the process is told to
    /// stop. Standard input takes `flip` for an event about the drawn door, and `quit`.
    package func run() throws {
        StopRequests.count()
        tell()
        try register()
        report.phase = .gracePeriod
        tell()
        var input = StandardInputLines()
        // An event within `registrationGrace` of a registration would be ambiguous to the checker.
        if try wait(options.registrationGrace + .milliseconds(500), &input) { try produce(&input) }
        try awaitAcknowledgements()
        report.phase = .ended
        tell()
    }

    // MARK: Registering

    private func register() throws {
        if let register = options.register {
            try register(
                (0..<neighbourhood.installations).flatMap {
                    neighbourhood.registrations(of: $0, at: .now)
                })
            return
        }
        for installation in 0..<neighbourhood.installations {
            for draft in neighbourhood.registrations(of: installation, at: .now) {
                try write(draft)
            }
            if installation % 256 == 0 { takeReports() }
        }
        try awaitAcknowledgements()
        if let refusal {
            throw TrafficError(description: "a registration was not written: \(refusal)")
        }
    }

    func write(_ draft: RegistrationDraft) throws {
        try enqueue(
            topic: 1, key: RegistrationEncoder.key(draft),
            value: RegistrationEncoder.value(draft), ticket: 0)
    }

    func remove(_ draft: RegistrationDraft) throws {
        try enqueue(topic: 1, key: RegistrationEncoder.key(draft), value: nil, ticket: 0)
    }

    // MARK: Producing

    private func produce(_ input: inout StandardInputLines) throws {
        report.phase = .running
        offsets.start()
        let clock = ContinuousClock()
        let start = clock.now
        var turnBegan = start
        var nextReport = start
        var due = 0.0
        var changesDue = 0.0
        while options.duration.map({ clock.now - start < $0 }) ?? true {
            let now = clock.now
            let share = (now - turnBegan) / .seconds(1)
            turnBegan = now
            updateLag()
            // A late turn makes up for at most a tenth of a second.
            due = report.isHeldBack ? 0 : min(due + share * options.rate, options.rate / 10 + 1)
            while due >= 1 {
                try emit(nextEvent())
                due -= 1
            }
            changesDue += share * options.churn
            while changesDue >= 1 {
                try changeRegistrations()
                changesDue -= 1
            }
            takeReports()
            if now >= nextReport {
                tell()
                nextReport = now + Self.reportInterval
            }
            guard try wait(Self.turn, &input, onFlip: flip) else { return }
        }
    }

    private func flip() throws {
        try emit(
            EmittedEvent(t: SystemClock.wallNanoseconds(), subject: Neighbourhood.drawnDoor))
    }

    private func updateLag() {
        guard let committed = offsets.latest else { return }
        report.lag = max(0, report.events - committed.events)
        report.isHeldBack = report.lag! > Self.lagMaxPerPartition * committed.partitions
    }

    private func emit(_ event: EmittedEvent) throws {
        let ticket = nextTicket
        nextTicket += 1
        precondition(underWay[ticket] == nil, "each event under way has a ticket of its own")
        underWay[ticket] = event
        let subject = neighbourhood.subject(event.subject)
        try enqueue(
            topic: 0, key: Array(subject.utf8), value: event.value(subject: subject),
            ticket: ticket)
    }

    private func enqueue(topic: Int, key: [UInt8], value: [UInt8]?, ticket: UInt64) throws {
        let deadline = ContinuousClock.now + Self.flushMax
        while true {
            let acceptance = key.withUnsafeBytes { key in
                value?.withUnsafeBytes { value in
                    producer.produce(topic: topic, key: key, value: value, ticket: ticket)
                } ?? producer.produce(topic: topic, key: key, value: nil, ticket: ticket)
            }
            switch acceptance {
            case .accepted: return
            case .failed(let error): throw TrafficError(description: "\(error)")
            case .queueFull:
                guard ContinuousClock.now < deadline else {
                    throw TrafficError(description: "Kafka takes no records any more")
                }
                takeReports()
                Thread.sleep(forTimeInterval: 0.001)
            }
        }
    }

    // MARK: Acknowledgements

    private func takeReports() {
        var lines = ""
        var acknowledged = 0
        producer.pollReports(now: .current) { record in
            if record.position != nil { acknowledged += 1 }
            if let error = record.error { refusal = "\(error)" }
            guard let event = underWay.removeValue(forKey: record.ticket) else { return }
            guard let position = record.position else {
                report.failed += 1
                return
            }
            report.events += 1
            lines += event.line(
                topic: options.eventsTopic, partition: position.partition,
                offset: position.offset, subject: neighbourhood.subject(event.subject))
        }
        if !lines.isEmpty { log.write(Data(lines.utf8)) }
        let waiting = producer.outstanding
        acknowledgements.looked(acknowledged: acknowledged, waiting: waiting, now: .now)
        report.trouble = acknowledgements.trouble(
            waiting: waiting, cause: producer.connectionFailure?.trouble, now: .now)
    }

    /// Waits until every event is acknowledged.
    private func awaitAcknowledgements() throws {
        let isFlushed = producer.flush(timeout: Self.flushMax)
        takeReports()
        guard isFlushed, underWay.isEmpty else {
            throw TrafficError(
                description: report.trouble
                    ?? "Kafka did not confirm \(producer.outstanding) records in time")
        }
    }

    // MARK: The world outside

    /// Waits and carries out commands; false when it is time to end.
    private func wait(
        _ limit: Duration, _ input: inout StandardInputLines, onFlip: () throws -> Void = {}
    ) throws -> Bool {
        let deadline = ContinuousClock.now + limit
        repeat {
            guard StopRequests.received == 0,
                let lines = input.next(waiting: deadline - ContinuousClock.now)
            else { return false }
            for line in lines {
                switch line {
                case "flip": try onFlip()
                case "quit": return false
                default: break
                }
            }
        } while ContinuousClock.now < deadline
        return true
    }

    private func tell() {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        guard let line = try? encoder.encode(report) else { return }
        StandardOutput.write(String(decoding: line, as: UTF8.self) + "\n")
    }
}

package struct TrafficError: Error, CustomStringConvertible {
    package let description: String
}
