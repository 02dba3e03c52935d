// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Intake
import LinuxIO
import OpenSSL
import Pipeline
import PushModel

/// The questions of `lamplighter explain`, which the planner answers in parts beside its work.
struct ExplainCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "explain",
        abstract: "Answers questions about tokens and records: parts, and how long each takes.")

    @Option(help: "Tokens in the index.")
    var tokens = 1_000_000

    @Option(help: "Tokens that show the subject of an event.")
    var fanOut = 1000

    @Option(help: "How often each token is pushed to first, so that there are outcomes.")
    var rounds = 1

    func run() throws {
        var bench = try PipelineBench(tokens: tokens, fanOut: fanOut)
        for _ in 0..<rounds { bench.round() }
        let subject = Array(Town.subject(0, fanOut: fanOut).utf8)
        let token = Town.token(tokens / 2).withUnsafeBytes { SHA256Digest.prefix(of: $0) }
        try Report.print(
            Figures(
                subject: bench.time(.subject(subject, app: nil)),
                installation: bench.time(
                    .installation("7", app: nil, environment: nil, handler: nil)),
                token: bench.time(.token(token)),
                event: bench.time(
                    TrialRecord(binding: 0, key: subject, value: nil, timestamp: bench.now.wall))))
    }

    private struct Figures: Encodable {
        var subject: PartTimes
        var installation: PartTimes
        var token: PartTimes
        var event: PartTimes
    }
}

/// How long the parts of an answer take.
struct PartTimes: Encodable {
    private(set) var parts = 0
    private(set) var seconds = 0.0
    private(set) var medianMicroseconds = 0.0
    private(set) var p99Microseconds = 0.0
    private(set) var maxMicroseconds = 0.0

    init(_ nanoseconds: [Int64]) {
        let sorted = nanoseconds.sorted()
        guard let last = sorted.last else { return }
        parts = sorted.count
        seconds = Double(sorted.reduce(0, +)) / 1e9
        medianMicroseconds = Double(sorted[sorted.count / 2]) / 1e3
        p99Microseconds = Double(sorted[(sorted.count * 99) / 100]) / 1e3
        maxMicroseconds = Double(last) / 1e3
    }
}

extension PipelineBench {
    func time(_ question: TokenQuestion) -> PartTimes {
        var inquiry = TokenInquiry(question, pipeline)
        return Self.time { inquiry.advance(pipeline, now: now) { SHA256Digest.prefix(of: $0) } }
    }

    func time(_ record: TrialRecord) -> PartTimes {
        var inquiry = EventInquiry(record)
        return Self.time {
            inquiry.advance(pipeline, now: now) {
                SHA256Digest.prefix(of: $0)
            }
        }
    }

    private static func time(_ part: () -> Bool) -> PartTimes {
        var times: [Int64] = []
        var isDone = false
        while !isDone {
            let start = SystemClock.monotonicNanoseconds()
            isDone = part()
            times.append(SystemClock.monotonicNanoseconds() - start)
        }
        return PartTimes(times)
    }
}
