// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Foundation
import Histogram
import LinuxIO
import PushModel

/// Measures how long a push takes from its event's time to APNs's acceptance, at a fixed rate,
/// whether or not the worker keeps up.
///
/// The time at which event `k` is due is fixed before the first one is written. The latency of its
/// pushes counts from there, so an event that is written late or waits behind others counts as
/// having waited. Each event has its own subject and tokens, so no push is coalesced and each has
/// one answer.
///
/// Events are due in bursts, one each millisecond, and the producer sends a burst as one batch as
/// soon as it is whole. So the time that a producer waits for further records (`linger.ms`) is no
/// part of the latency. The bursts go to the partitions in turn: the embedded Kafka answers a fetch
/// with one batch of each, so with one partition a worker could read a batch per round trip at most.
struct LatencyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "latency",
        abstract: "Writes events on a schedule and reads the simulator's log for their ends.")

    @OptionGroup var destination: EventDestination

    @Option(help: "Tokens that are registered; at least as many as pushes.")
    var tokens: Int

    @Option(help: "Pushes a second.")
    var rate: Double

    @Option(help: "Tokens that show the subject of an event: 1, 10 or 1000.")
    var fanOut = 1

    @Option(help: "Seconds on schedule that are measured.")
    var seconds = 5.0

    @Option(help: "Seconds on schedule before them, which are not.")
    var warmUp = 2.0

    @Option(help: "The simulator's log.")
    var answers: String

    @Flag(help: "Other events are on their way: does not begin with an empty topic.")
    var beside = false

    func run() throws {
        let events = Int(rate * (warmUp + seconds)) / fanOut
        guard events * fanOut <= tokens else {
            throw ValidationError("\(events * fanOut) pushes need as many tokens")
        }
        let burst = max(1, Int(rate / 1000) / fanOut)
        // Only a burst that is cut short, such as the last one, waits for the linger. Compressed, the
        // padding of large records would be small.
        var feed = try KafkaFeed(
            bootstrap: destination.bootstrap, topic: destination.topic, group: destination.group,
            properties: [
                "batch.num.messages": "\(burst)", "linger.ms": "20", "compression.codec": "none",
            ])
        if !beside { try feed.displaceSmallBatches() }
        var log = try AnswerFollower(path: answers)
        var schedule = EventSchedule(
            rate: rate / Double(fanOut), burst: burst, count: events, fanOut: fanOut)
        try schedule.keep(writingTo: &feed)
        try feed.flush()
        let ends = try log.ends(of: schedule)
        let skipped = Int(rate * warmUp)
        var histogram = Histogram<UInt64>(numberOfSignificantValueDigits: .three)
        histogram.autoResize = true
        for latency in ends.latencies[skipped...] { histogram.record(UInt64(latency)) }
        try Report.print(Figures(histogram, missing: ends.missing, lagMax: schedule.lagMax))
    }

    private struct Figures: Encodable {
        var pushes: Int
        /// Those that have not come: the embedded Kafka drops events that the worker leaves for too
        /// long. They count as if they had come when they were given up.
        var missing: Int
        /// How far the writing of an event was behind its time at worst; it is in the latencies.
        var scheduleLagMilliseconds: Double
        var milliseconds: [String: Double] = [:]
        /// (percentile, milliseconds), for the plot.
        var distribution: [[Double]]

        init(_ histogram: Histogram<UInt64>, missing: Int, lagMax: Int64) {
            pushes = Int(histogram.totalCount)
            self.missing = missing
            scheduleLagMilliseconds = Double(lagMax) / 1e6
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
    /// Events a second.
    let rate: Double
    /// Events that are due at the same time.
    let burst: Int
    let count: Int
    let fanOut: Int
    /// Nanoseconds since 1970.
    let start: Int64
    /// Nanoseconds.
    private(set) var lagMax: Int64 = 0

    /// Between two looks at the clock, in microseconds.
    private static let nap: UInt32 = 100

    init(rate: Double, burst: Int, count: Int, fanOut: Int) {
        self.rate = rate
        self.burst = burst
        self.count = count
        self.fanOut = fanOut
        // After the producer has found its brokers.
        start = SystemClock.wallNanoseconds() + 2_000_000_000
    }

    func due(_ number: Int) -> Int64 {
        start + Int64(Double(number - number % burst) / rate * 1e9)
    }

    mutating func keep(writingTo feed: inout KafkaFeed) throws {
        let partitions = Int(try feed.partitions())
        var next = 0
        while next < count {
            let now = SystemClock.wallNanoseconds()
            if now < due(next) {
                try feed.serveReports()
                usleep(Self.nap)
                continue
            }
            lagMax = max(lagMax, now - due(next))
            try feed.write(
                key: Array(Town.subject(next, fanOut: fanOut).utf8), value: nil,
                partition: Int32(next / burst % partitions))
            next += 1
        }
    }
}

/// Reads the simulator's log from its current end on.
struct AnswerFollower {
    private let file: FileHandle
    private var rest = Data()
    private let decoder = JSONDecoder()

    private static let silenceMax = Duration.seconds(15)

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

    /// Nanoseconds from the event's time to the acceptance of each push, in the order of the
    /// events; waits until all are there, or none comes any more.
    mutating func ends(of schedule: EventSchedule) throws -> (latencies: [Int64], missing: Int) {
        let pushes = schedule.count * schedule.fanOut
        var numbers: [String: Int] = [:]
        numbers.reserveCapacity(pushes)
        for number in 0..<pushes { numbers[Hexadecimal.encode(Town.token(number))] = number }
        var accepted = [Int64](repeating: 0, count: pushes)
        var missing = pushes
        var deadline = ContinuousClock.now + Self.silenceMax
        while missing > 0, ContinuousClock.now < deadline {
            let answers = try read()
            for answer in answers where answer.status == 200 {
                guard let number = numbers[answer.token], accepted[number] == 0 else { continue }
                accepted[number] = answer.t
                missing -= 1
            }
            if answers.isEmpty { usleep(50_000) } else { deadline = .now + Self.silenceMax }
        }
        let givenUp = SystemClock.wallNanoseconds()
        let latencies = accepted.indices.map { number in
            let end = accepted[number] == 0 ? givenUp : accepted[number]
            return end - schedule.due(number / schedule.fanOut)
        }
        return (latencies, missing)
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
