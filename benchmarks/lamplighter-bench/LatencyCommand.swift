// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Foundation
import Histogram
import LinuxIO
import PushModel

/// How long a push takes from its event's time to APNs's acceptance, at a rate that does not ask
/// whether the worker keeps up.
///
/// Event `k` is due at a time that is fixed before the first one is written. Its latency counts from
/// there, so an event that was written late, or that waited behind others, has waited: nothing is
/// omitted because somebody was slow. Each event has a subject and a token of its own, so none is
/// coalesced, and one answer belongs to it.
struct LatencyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "latency",
        abstract: "Writes events on a schedule and reads the simulator's log for their ends.")

    @Option(help: "host:port, several joined by commas.")
    var bootstrap: String

    @Option(help: "The Kafka topic of the events.")
    var topic = "lamplighter.events"

    @Option(help: "The worker's consumer group.")
    var group = "lamplighter"

    @Option(help: "Tokens that are registered; at least as many as events.")
    var tokens: Int

    @Option(help: "Events a second.")
    var rate: Double

    @Option(help: "Seconds on schedule that are measured.")
    var seconds = 10.0

    @Option(help: "Seconds on schedule before them, which are not.")
    var warmUp = 2.0

    @Option(help: "The simulator's log.")
    var answers: String

    @Option(help: "Milliseconds that the producer waits for more records.")
    var linger = "0.5"

    func run() throws {
        let count = Int(rate * (warmUp + seconds))
        guard count <= tokens else {
            throw ValidationError("\(count) events need as many tokens")
        }
        var log = try AnswerFollower(path: answers)
        var schedule = EventSchedule(rate: rate, count: count)
        var feed = try KafkaFeed(
            bootstrap: bootstrap, topic: topic, group: group,
            properties: ["linger.ms": linger])
        try schedule.keep(writingTo: &feed)
        try feed.flush()
        let latencies = try log.latencies(of: schedule)
        let skipped = Int(rate * warmUp)
        var histogram = Histogram<UInt64>(numberOfSignificantValueDigits: .three)
        histogram.autoResize = true
        for latency in latencies[skipped...] { histogram.record(UInt64(latency)) }
        try Report.print(Figures(histogram, schedule))
    }

    private struct Figures: Encodable {
        var events: Int
        var rate: Double
        /// How far the writing of an event was behind its time at worst; it is in the latencies.
        var scheduleLagMilliseconds: Double
        var milliseconds: [String: Double] = [:]
        /// (percentile, milliseconds), for the plot.
        var distribution: [[Double]]

        init(_ histogram: Histogram<UInt64>, _ schedule: EventSchedule) {
            events = Int(histogram.totalCount)
            rate = schedule.rate
            scheduleLagMilliseconds = Double(schedule.lagMax) / 1e6
            for (name, percentile) in [("p50", 50.0), ("p99", 99), ("p99.9", 99.9), ("max", 100)] {
                milliseconds[name] = Double(histogram.valueAtPercentile(percentile)) / 1e6
            }
            distribution = histogram.percentiles(ticksPerHalfDistance: 5).map {
                [$0.percentile, Double($0.value) / 1e6]
            }
        }
    }
}

/// When each event is due, and how well that was kept.
struct EventSchedule {
    let rate: Double
    let count: Int
    /// Nanoseconds since 1970.
    let start: Int64
    /// Nanoseconds.
    private(set) var lagMax: Int64 = 0

    /// Between two looks at the clock, in microseconds.
    private static let nap: UInt32 = 50

    init(rate: Double, count: Int) {
        self.rate = rate
        self.count = count
        // After the producer has found its brokers.
        start = SystemClock.wallNanoseconds() + 2_000_000_000
    }

    func due(_ number: Int) -> Int64 { start + Int64(Double(number) / rate * 1e9) }

    mutating func keep(writingTo feed: inout KafkaFeed) throws {
        var next = 0
        while next < count {
            let now = SystemClock.wallNanoseconds()
            if now < due(next) {
                try feed.serveReports()
                usleep(Self.nap)
                continue
            }
            lagMax = max(lagMax, now - due(next))
            try feed.write(key: Array(Town.subject(next, fanOut: 1).utf8), value: nil)
            next += 1
        }
    }
}

/// The simulator's log from here on.
struct AnswerFollower {
    private let file: FileHandle
    private var rest = Data()
    private let decoder = JSONDecoder()

    private static let silenceMax = Duration.seconds(60)

    private struct Answer: Decodable {
        var t: Int64
        var token: String
        var status: Int
    }

    init(path: String) throws {
        guard let file = FileHandle(forReadingAtPath: path) else {
            throw BenchError("\(path) cannot be read")
        }
        self.file = file
        try file.seekToEnd()
    }

    /// Nanoseconds from each event's time to its acceptance; waits until all are there.
    mutating func latencies(of schedule: EventSchedule) throws -> [Int64] {
        var numbers: [String: Int] = [:]
        numbers.reserveCapacity(schedule.count)
        for number in 0..<schedule.count {
            numbers[Hexadecimal.encode(Town.token(number))] = number
        }
        var latencies = [Int64](repeating: -1, count: schedule.count)
        var missing = schedule.count
        var deadline = ContinuousClock.now + Self.silenceMax
        while missing > 0 {
            let answers = try read()
            for answer in answers where answer.status == 200 {
                guard let number = numbers[answer.token], latencies[number] < 0 else { continue }
                latencies[number] = answer.t - schedule.due(number)
                missing -= 1
            }
            if answers.isEmpty {
                if ContinuousClock.now > deadline {
                    throw BenchError("\(missing) events have led to no accepted push")
                }
                usleep(50_000)
            } else {
                deadline = .now + Self.silenceMax
            }
        }
        return latencies
    }

    /// The whole lines that have come since.
    private mutating func read() throws -> [Answer] {
        guard let chunk = try file.read(upToCount: 1 << 22), !chunk.isEmpty else { return [] }
        rest.append(chunk)
        guard let end = rest.lastIndex(of: UInt8(ascii: "\n")) else { return [] }
        defer { rest = Data(rest[(end + 1)...]) }
        return try rest[..<end].split(separator: UInt8(ascii: "\n")).map {
            try decoder.decode(Answer.self, from: $0)
        }
    }
}
