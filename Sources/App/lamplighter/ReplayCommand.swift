// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Entrypoint
import Intake
import KafkaLog
import Pipeline
import PushModel
import RecordFormats
import Worker

struct ReplayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "replay",
        abstract: "Writes events of a time span to their topic again.",
        discussion: """
            Each record is written as it was, with its key, value and headers, to its own partition, \
            and workers take it for a new event: what the group has committed is not touched. Its \
            pushes have other apns-ids than those of before, so phones that had got one get another. \
            What an event says of its own end (expiresAt) holds; a time to live counts from the new \
            record. Shards of large events, records that no worker reads, and headers that are not \
            text are left out, and counted.
            """)

    @OptionGroup var options: ConfigurationOption

    @Option(help: "From this instant on, or so long ago: 2026-11-21T06:12:00Z, 2h.")
    var from: String

    @Option(help: "Up to this instant, or so long ago (default: now)")
    var to: String?

    @Option(help: "The events topic, one of kafka.events; needed where several are configured.")
    var topic: String?

    @Option(help: "Only events of this subject.")
    var subject: String?

    @Option(help: "Only events of this app.")
    var app: String?

    @Flag(help: "Say how many would be written, and write nothing.")
    var dryRun = false

    @OptionGroup var rate: RateOption

    @Flag(help: "Print the summary as one line of JSON.")
    var json = false

    func run() async throws {
        let now = RecordWriter.now().wall
        let start = try Arguments.instant(from, now: now)
        let end = try to.map { try Arguments.instant($0, now: now) } ?? now
        guard start < end else {
            throw ValidationError("--from is not before --to, so no event is between them")
        }
        guard subject != "", app != "" else {
            throw ValidationError("--subject and --app must not be empty")
        }
        let configuration = try options.load()
        let plan = WorkerPlan(configuration)
        let trial = RecordTrial(plan, now: now)
        let events = try Arguments.trying { () throws(UselessRecord) in
            try trial.topicOfEvents(named: topic)
        }
        var replay = try EventReplay(
            plan, topic: events, span: start..<end,
            subject: subject, app: try app.map { try Arguments.app($0, in: plan.routing) })
        var stream =
            dryRun
            ? nil
            : try RecordStream(
                configuration, topics: [events], rate: try rate.recordsPerSecond())
        // A first reading finds the ends, so that what is written is not read in turn.
        let sweep = TopicSweep(configuration, topic: events)
        let ends = try sweep.run { _ in true }
        try sweep.run(upTo: ends) { record in
            if let copy = replay.copy(of: record) { try stream?.write(copy) }
            return true
        }
        try stream?.finish()
        print(
            json
                ? try JSONLine.of(["summary": replay.summary])
                : replay.summary.line(isDryRun: dryRun)
        )
    }
}

/// Decides which records of an events topic are written again.
struct EventReplay: ~Copyable {
    private let binding: Int
    private let span: Range<WallTime>
    private let subject: String?
    private let app: AppID?
    private var decoder: EventDecoder
    private(set) var summary = ReplaySummary()

    /// - Throws: `Failure` for a topic whose records need schemas.
    init(
        _ plan: WorkerPlan, topic: String, span: Range<WallTime>, subject: String?, app: AppID?
    ) throws {
        let binding = plan.eventTopics.firstIndex(of: topic)!
        guard plan.bindings[binding].valueSchema == nil else {
            throw Failure(
                .configuration,
                "\(topic) has records with schemas, which replay does not read: replay it with Kafka's "
                    + "own tools, or have the producer write again")
        }
        decoder = try Self.decoder(plan)
        self.binding = binding
        self.span = span
        self.subject = subject
        self.app = app
    }

    private static func decoder(_ plan: WorkerPlan) throws -> EventDecoder {
        do throws(TopicBindingError) {
            return try EventDecoder(
                bindings: plan.bindings.map(\.withoutSchemas), routing: plan.routing,
                settings: plan.pipeline.events)
        } catch {
            throw Failure(.configuration, error.message)
        }
    }

    /// The record to write; nil for one that is left out.
    mutating func copy(of record: borrowing KafkaRecord) -> OwnedRecord? {
        let time = WallTime(milliseconds: record.timestampMilliseconds)
        guard span.contains(time) else { return nil }
        switch judge(record, time) {
        case .wanted: break
        case .other: return nil
        case .shard:
            summary.shards += 1
            return nil
        case .unreadable:
            summary.unreadable += 1
            return nil
        }
        var copy = OwnedRecord(
            topic: 0, partition: record.partition, key: record.key.map { Array($0) },
            value: record.value.map { Array($0) })
        for header in record.headers {
            guard let text = String(validating: header.value, as: UTF8.self) else {
                summary.binaryHeaders += 1
                return nil
            }
            // It would let an event go out that reaches more phones than planning.fanOutMax.
            if header.name == DeadLetter.releasedHeader { continue }
            copy.headers.append((header.name, text))
        }
        summary.events += 1
        return copy
    }

    private enum Decision { case wanted, other, shard, unreadable }

    private mutating func judge(_ record: borrowing KafkaRecord, _ time: WallTime) -> Decision {
        let headers = record.headers.map { ($0.name, $0.value + [0]) }
        return withExtendedLifetime(headers) {
            let event = EventRecord(
                binding: binding, key: record.key, value: record.value, timestamp: time)
            do throws(UnreadableRecord) {
                // As of its own time: an event that has expired since is written all the same.
                let read = try decoder.decode(event, now: time) { name in
                    headers.last { $0.0 == name }.map { header in
                        header.1.withUnsafeBytes { UnsafeRawBufferPointer(rebasing: $0.dropLast()) }
                    }
                }
                guard let read else { return .other }
                if read.shard != nil { return .shard }
                if let app, read.app != app { return .other }
                return matches(read) ? .wanted : .other
            } catch {
                return .unreadable
            }
        }
    }

    private func matches(_ event: Event) -> Bool {
        guard let subject else { return true }
        // An installation of the same name is another thing.
        guard event.scope == .subject else { return false }
        if event.subject.elementsEqual(subject.utf8) { return true }
        return event.allSubjects.contains { $0.elementsEqual(subject.utf8) }
    }
}

struct ReplaySummary: Encodable {
    var events = 0
    var shards = 0
    var unreadable = 0
    var binaryHeaders = 0

    func line(isDryRun: Bool) -> String {
        let left = [
            (shards, "shards"), (unreadable, "that no worker reads"),
            (binaryHeaders, "with a header that is not text"),
        ].filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
        return "\(isDryRun ? "would replay" : "replayed") \(events.counted("event"))"
            + (left.isEmpty ? "" : "; left out " + left.joined(separator: ", "))
    }
}
