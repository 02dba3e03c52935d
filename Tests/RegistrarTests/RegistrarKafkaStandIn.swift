// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import KafkaLog
import Logging
import PushModel
import RecordFormats
import RegistrarRules

@testable import Registrar

/// Kafka for a registrar's loop: says what the test has written down for the next turn, and notes what it
/// is asked for.
final class RegistrarKafkaStandIn: RegistrarKafka {
    /// What the next polls bring.
    var records: [RegistrationArbiter.Record?] = []
    var facts: [ConsumerFact] = []
    var reports: [(ticket: RegistrationArbiter.Ticket, offset: Int64?)] = []
    var takesWrites = true
    var restartFails = false
    var failure: String?
    /// What the flush at the end brings.
    var flushed: [(ticket: RegistrationArbiter.Ticket, offset: Int64?)] = []

    private(set) var written: [RegistrationWrite] = []
    private(set) var revokesCompleted = 0
    private(set) var restarts = 0
    private(set) var looks = 0
    private(set) var announcements: [String] = []

    struct Refusal: Error {}

    let wakeDescriptors: [CInt] = []
    func clearWakeUps() {}

    func poll(now: Now, limit: Int, _ body: (RegistrationArbiter.Record?) -> Void) -> Int {
        let some = records.prefix(limit)
        records.removeFirst(some.count)
        for record in some { body(record) }
        return some.count
    }

    func takeFacts() -> [ConsumerFact] {
        defer { facts = [] }
        return facts
    }

    func completeRevoke(now: Now) { revokesCompleted += 1 }

    func restart(now: Now) throws {
        restarts += 1
        if restartFails { throw Refusal() }
    }

    func announce(_ text: String) { announcements.append(text) }

    func write(_ record: RegistrationWrite) -> Bool {
        written.append(record)
        return takesWrites
    }

    func takeReports(now: Now) -> [(ticket: RegistrationArbiter.Ticket, offset: Int64?)] {
        defer { reports = [] }
        return reports
    }

    func flush(timeout: Duration) { reports += flushed }

    func close(timeout: Duration, now: Now) {}
    func watchPartitions(now: Now) { looks += 1 }
    func takeWarnings() -> [KafkaWarning] { [] }
}

/// A registrar's loop, driven turn by turn by a clock of its own.
final class RegistrarLoopFixture {
    let kafka = RegistrarKafkaStandIn()
    let mailbox = RegistrarMailbox()
    private let loop: RegistrarLoop
    private let rereading = Rereading()
    private(set) var now = Now(
        monotonic: MonotonicTime(nanoseconds: 1_000_000_000_000),
        wall: WallTime(milliseconds: 1_800_000_000_000))

    /// The records that were to be read again, and who waits for them.
    final class Rereading {
        var asked: [(partition: Int32, offset: Int64, receiver: RecordStore.Receiver)] = []
    }

    static let key = InstallationKey(
        environment: .production, app: "com.example.Home", installation: "6F1C")
    static let former = Ownership(since: 0, seconds: 1)
    static let later = Ownership(since: 3, seconds: 1)
    static let requestTimeout = Duration.seconds(5)

    init() throws {
        let rereading = rereading
        loop = try RegistrarLoop(
            settings: RegistrarLoop.Settings(
                announcement: "here", requestTimeout: Self.requestTimeout),
            kafka: kafka, mailbox: mailbox,
            readAgain: { rereading.asked.append(($0, $1, $2)) },
            logger: Logger(label: "loop") { _ in SwiftLogNoOpLogHandler() })
    }

    // MARK: Turns

    /// - Returns: why the loop ends; nil if it goes on.
    @discardableResult
    func turn(after pause: Duration = .zero) -> String? {
        now.monotonic = now.monotonic + pause
        now.wall = now.wall + pause
        return loop.turn(now)
    }

    func turn(_ facts: ConsumerFact...) {
        kafka.facts = facts
        turn()
    }

    /// As when the registrar stops.
    func end() {
        loop.drain(now)
        loop.close()
    }

    /// Gives it partitions that it has read to their ends.
    func own(_ partitions: Int32...) {
        turn(.assigned(partitions.map { Self.assignment(of: $0, logEnd: 0) }))
    }

    static func id(_ partition: Int32, epoch: UInt32 = 1) -> AssignmentID {
        AssignmentID(ordinal: UInt32(partition), epoch: epoch)
    }

    static func assignment(
        of partition: Int32, epoch: UInt32 = 1, logEnd: Int64 = 100
    ) -> Assignment {
        Assignment(
            id(partition, epoch: epoch), topic: 0, partition: partition, startOffset: 0,
            reason: .beginning, skipped: 0, logEnd: logEnd)
    }

    // MARK: Records

    static func record(
        _ sequence: Int64, at offset: Int64, partition: Int32 = 0, owner: Ownership? = nil
    ) -> RegistrationArbiter.Record {
        RegistrationArbiter.Record(
            partition: partition, offset: offset, key: key, handler: "Garage",
            summary: RegistrationSummary(sequence: sequence, tokenClass: .controls, content: 1),
            owner: owner)
    }

    /// The record of the latest write is in the log.
    func acknowledgeLast(at offset: Int64) throws {
        guard let write = kafka.written.last else { throw RegistrarKafkaStandIn.Refusal() }
        kafka.reports = [(write.ticket, offset)]
        turn()
    }

    var reread: [(partition: Int32, offset: Int64, receiver: RecordStore.Receiver)] {
        rereading.asked
    }

    // MARK: Requests

    typealias Answer = Task<RegistrationArbiter.Answer, Never>

    /// Puts a registration, and takes a turn.
    func put(_ sequence: Int64, in partition: Int32 = 0) async throws -> Answer {
        let target = RegistrationDraft.Target(tokenClass: .control, token: [1, 2], shows: [])
        var put = RegistrationArbiter.Put(
            key: Self.key, handler: "Garage", tokenClass: .controls, sequence: sequence,
            targets: [target])
        put.content = UInt64(sequence)
        return try await ask { [put] in await $0.put(put, in: partition) }
    }

    func remove(in partition: Int32 = 0) async throws -> Answer {
        let removal = RegistrationArbiter.Removal(key: Self.key, handler: "Garage")
        return try await ask { await $0.remove(removal, in: partition) }
    }

    /// The sequences that a GET shows; nil if it does not own the partitions.
    func list(in partitions: Set<Int32>) async throws -> [Int64?]? {
        let key = Self.key
        return try await ask { await $0.list(key, in: partitions) }.value?.handlers
            .map(\.summary.sequence)
    }

    private func ask<Value: Sendable>(
        _ question: @escaping @Sendable (RegistrarMailbox) async -> Value
    ) async throws -> Task<Value, Never> {
        let mailbox = mailbox
        let task = Task { await question(mailbox) }
        try await waitUntil("the request") { !mailbox.isEmpty }
        turn()
        return task
    }
}
