// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import KafkaLog
internal import LinuxIO
internal import Logging
internal import PushModel

/// What the verdict rests on and only Kafka has, as files that lamplighter-check reads: with them
/// it can be given again when the embedded Kafka is gone.
struct KeptEvidence {
    let plan: FleetPlan
    let bootstrap: String

    /// Without a record and without an end for so long, Kafka counts as gone.
    private static let silenceMax = Duration.seconds(10)
    private static let batch = 1000
    private static let topics = ["registrations", "verdicts", "dead-letters"]

    /// Writes the files into the plan's folder.
    /// - Returns: the command that judges the run again.
    func write() throws -> String {
        for topic in Self.topics { try write(topic) }
        try writeLowWatermarks()
        let files = [
            ("events", "events"), ("answers", "answers"), ("kills-log", "kills"),
            ("registrations", "registrations"), ("verdicts", "verdicts"),
            ("dead-letters", "dead-letters"), ("low-watermarks", "low-watermarks"),
        ]
        let options = files.map { "--\($0) \(Self.quoted(path($1)))" }
        return ([Self.quoted(plan.checker)] + options + ["--settle \(plan.settle / .seconds(1))"])
            .joined(separator: " ")
    }

    private func path(_ name: String) -> String { "\(plan.directory)/\(name).ndjson" }

    private struct Line: Encodable {
        /// Milliseconds since 1970.
        var t: Int64
        var key: String
        var value: String?
    }

    private func write(_ topic: String) throws {
        let reader = try TableReader(
            settings: KafkaClientSettings(bootstrap: bootstrap, group: plan.prefix),
            topics: [plan.topic(topic)], now: Self.now(), logger: Logger(label: "lamplighter"))
        defer { reader.close(timeout: .seconds(5)) }
        var lines: [Line] = []
        var deadline = ContinuousClock.now + Self.silenceMax
        while true {
            let looked = reader.poll(now: Self.now(), limit: Self.batch) { record in
                lines.append(
                    Line(
                        t: record.timestampMilliseconds,
                        key: record.key.map { String(decoding: $0, as: UTF8.self) } ?? "",
                        value: record.value.map { String(decoding: $0, as: UTF8.self) }))
            }
            if looked > 0 { deadline = .now + Self.silenceMax }
            if looked == Self.batch { continue }
            if reader.isCaughtUp { break }
            guard ContinuousClock.now < deadline, reader.failure == nil else {
                throw DemoError(description: "\(plan.topic(topic)) cannot be read to its end")
            }
            Thread.sleep(forTimeInterval: 0.005)
        }
        try write(lines, to: topic)
    }

    private struct LowWatermark: Encodable {
        var topic: String
        var partition: Int
        var low: Int64
    }

    private func writeLowWatermarks() throws {
        let topic = plan.topic("events")
        let lows = try TopicOffsets(bootstrap: bootstrap).lowWatermarks(of: topic)
        let lines = lows.enumerated().map {
            LowWatermark(topic: topic, partition: $0.offset, low: $0.element)
        }
        try write(lines, to: "low-watermarks")
    }

    private func write(_ lines: [some Encodable], to name: String) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        var text = Data()
        for line in lines { text += try encoder.encode(line) + Data("\n".utf8) }
        guard FileManager.default.createFile(atPath: path(name), contents: text) else {
            throw DemoError(description: "\(path(name)) cannot be written")
        }
    }

    /// As a shell reads it as one word.
    static func quoted(_ path: String) -> String {
        let isPlain = path.allSatisfy {
            $0.isASCII && ($0.isLetter || $0.isNumber) || "/._-".contains($0)
        }
        return isPlain ? path : "'" + path.replacing("'", with: #"'\''"#) + "'"
    }

    private static func now() -> Now {
        Now(
            monotonic: MonotonicTime(nanoseconds: SystemClock.monotonicNanoseconds()),
            wall: WallTime(milliseconds: SystemClock.wallNanoseconds() / 1_000_000))
    }
}
