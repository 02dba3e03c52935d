// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Configuration
import Entrypoint
import Foundation
import Importing
import KafkaLog
import OpenSSL
import PushModel
import RecordFormats
import RegistrarRules
import Worker

/// What an import writes beside what its rows say.
struct ImportSettings {
    var kind: String?
    /// Whether a plain event sends a device a background push, or a Live Activity's token starts one.
    var hearsChanges = false
    /// Whether the tokens of these rows are suppressed rather than left out.
    var suppressesDead = false
    var suppressesOptedOut = false
    /// Whether rows are written though they have been imported before.
    var replaces = false
    var rate: Int?
    /// How long after its last record an import looks for installations that have registered themselves.
    var followFor = Duration.seconds(20)
    var isDryRun = false
}

/// Writes rows to the registrations topic, and reads the topic before, meanwhile and after, so that no
/// row outlives what its installation registers itself.
final class RegistrationImport {
    private let configuration: Configuration
    private let plan: WorkerPlan
    private let settings: ImportSettings
    private let reader: TableReader
    private var stream: RecordStream?
    private var watch: RegistrationWatch
    private var decoder: RegistrationDecoder
    private var registration = Registration()
    private var suppressions: KnownSuppressions?
    private let start = RecordWriter.now().wall
    private(set) var tally = ImportTally()

    private static let topicOfRegistrations = 0
    private static let topicOfSuppressions = 1
    private static let silenceMax = Duration.seconds(20)
    private static let batch = 1000
    /// Where nothing has come, in microseconds.
    private static let pause: UInt32 = 2000
    private static let endedMax = 10_000

    init(_ configuration: Configuration, _ settings: ImportSettings) throws {
        self.configuration = configuration
        self.settings = settings
        plan = WorkerPlan(configuration)
        decoder = RegistrationDecoder(routing: plan.routing)
        var random = SystemRandomNumberGenerator()
        watch = RegistrationWatch(seed: random.next(), forgetsImports: settings.replaces) {
            SHA256Digest.of($0)
        }
        var clients = configuration.kafka.clientSettings
        clients.isFrugal = true
        reader = try TableReader(
            settings: clients, topics: [configuration.kafka.topics.registrations],
            now: RecordWriter.now(), logger: ConfigurationOption.logger(configuration.log))
        if !settings.isDryRun {
            stream = try RecordStream(
                configuration,
                topics: [
                    configuration.kafka.topics.registrations,
                    configuration.kafka.topics.suppressions,
                ], rate: settings.rate, isFrugal: true)
        }
        if settings.suppressesDead || settings.suppressesOptedOut {
            suppressions = try KnownSuppressions(configuration)
        }
    }

    func close() { reader.close(timeout: .seconds(5)) }

    // MARK: The topic

    /// Reads what has been registered so far.
    func load() throws {
        var heard = ContinuousClock.now
        while !reader.isCaughtUp {
            if try follow() > 0 { heard = .now } else { usleep(Self.pause) }
            try checkReader(since: heard)
        }
    }

    /// Reads what has arrived since, and ends the imports of those who have registered themselves.
    ///
    /// - Returns: how many records there were.
    @discardableResult
    func follow() throws -> Int {
        var sum = 0
        var looked: Int
        repeat {
            looked = reader.poll(now: RecordWriter.now(), limit: Self.batch) { record in
                watch.take(
                    key: record.key, value: record.value,
                    timestamp: WallTime(milliseconds: max(0, record.timestampMilliseconds)),
                    tokenClass: record.header("lamplighter-class"))
            }
            sum += looked
            // The tombstone of an import that ended before comes after it, if the log has both still.
            if reader.isCaughtUp || watch.endedCount > Self.endedMax {
                for ended in watch.takeEnded() { try end(ended) }
            }
        } while looked == Self.batch
        return sum
    }

    private func checkReader(since heard: ContinuousClock.Instant) throws {
        let topic = configuration.kafka.topics.registrations
        if let error = reader.failure {
            throw Failure(.unavailable, "\(topic) cannot be read: \(error)")
        }
        guard heard.duration(to: .now) < Self.silenceMax else {
            if let failure = reader.connectionFailure { throw KafkaError.noConnection(failure) }
            throw Failure(.unavailable, "Kafka sends nothing of \(topic) for \(Self.silenceMax)")
        }
    }

    private func end(_ ended: RegistrationWatch.Ended) throws {
        tally.ended += 1
        try stream?.write(
            OwnedRecord(
                topic: Self.topicOfRegistrations,
                key: ended.key.recordKey(
                    handler: ImportedRegistration.handler(of: ended.tokenClass)), value: nil))
    }

    // MARK: Rows

    /// Writes a row, or counts why it is not written.
    ///
    /// - Throws: `RowProblem` for a row that no worker could read.
    func take(_ mapped: MappedRow) throws {
        tally.rows += 1
        if tally.rows % Self.batch == 0 { try follow() }
        switch mapped {
        case .leftOut(let reason): tally.leftOut[reason, default: 0] += 1
        case .row(let row):
            switch row.standing {
            case .live: try write(row)
            case .dead:
                try suppress(row, settings.suppressesDead, &tally.dead, "Unregistered")
            case .optedOut:
                try suppress(row, settings.suppressesOptedOut, &tally.optedOut, "ImportedOptOut")
            }
        }
    }

    private func write(_ row: ImportedRow) throws {
        let key = watch.key(of: row)
        let record = self.record(of: row, key)
        try check(record)
        switch watch.judge(row, key) {
        case .registeredItself: tally.registeredThemselves += 1
        case .known: tally.known += 1
        case .new:
            tally.new += 1
            try stream?.write(record)
        case .later:
            tally.later += 1
            try stream?.write(record)
        }
    }

    private func record(of row: ImportedRow, _ key: InstallationKey) -> OwnedRecord {
        var draft = RegistrationDraft(
            environment: key.environment, app: key.app, installation: key.installation,
            handler: ImportedRegistration.handler(of: row.tokenClass))
        draft.registeredAt = row.lastSeen ?? Self.unknownTime
        var target = RegistrationDraft.Target(
            tokenClass: row.tokenClass, token: row.token,
            shows: [RegistrationDraft.Show(kind: settings.kind, subjects: row.subjects)])
        target.hearsChanges = settings.hearsChanges
        draft.targets = [target]
        return OwnedRecord(
            topic: Self.topicOfRegistrations, key: RegistrationEncoder.key(draft),
            value: RegistrationEncoder.value(draft))
    }

    /// Of rows that do not say when they were last seen: before anything that is known.
    static let unknownTime = WallTime(rfc3339: "2001-01-01T00:00:00Z")!

    /// Reads the record as a worker will.
    private func check(_ record: OwnedRecord) throws {
        let problem = record.key!.withUnsafeBytes { key in
            record.value!.withUnsafeBytes { value -> UnreadableRecord? in
                do throws(UnreadableRecord) {
                    _ = try decoder.decode(
                        key: key, value: value, timestamp: start, into: &registration)
                    return nil
                } catch { return error }
            }
        }
        if let problem {
            throw RowProblem("no worker of this configuration could read it: \(problem.message)")
        }
    }

    // MARK: Suppressions

    private func suppress(
        _ row: ImportedRow, _ isWanted: Bool, _ count: inout ImportTally.Standing, _ reason: String
    ) throws {
        guard isWanted, suppressions != nil else {
            count.leftOut += 1
            return
        }
        guard let record = try suppressions!.record(of: row, reason, plan) else {
            count.known += 1
            return
        }
        count.suppressed += 1
        try stream?.write(
            OwnedRecord(topic: Self.topicOfSuppressions, key: record.key, value: record.value))
    }

    // MARK: The end

    /// Waits until every record is acknowledged, and then looks for who has registered meanwhile.
    func finish() throws {
        if settings.isDryRun { return }
        try stream?.finish()
        let end = ContinuousClock.now + settings.followFor
        var heard = ContinuousClock.now
        var isBehind: Bool
        repeat {
            let count = try follow()
            isBehind = reader.progress(topic: 0).remaining > 0
            // Where all has been read, silence is no fault.
            if count > 0 || !isBehind { heard = .now }
            try checkReader(since: heard)
            // What is there to be read comes in small parts, since the reader is frugal.
            if count == 0 { usleep(Self.pause) }
        } while ContinuousClock.now < end || isBehind
        try stream?.finish()
    }
}
