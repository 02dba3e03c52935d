// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import LinuxIO
import Testing

/// Clients that ask both listeners as fast as they are answered, and others that never read.
/// `make bench-listeners` measures the same closely.
@Suite(
    .serialized,
    .fleet(TestPlan(recordRequests: 10, registrationGrace: .milliseconds(200))))
struct `A flood of the listeners and the pushes` {
    private static let rate = 200
    private static let seconds = 1
    private static let pairs = 5
    private let tokens = (0..<rate * seconds).map { _ in TestToken() }

    /// In one run of each pair the listeners are flooded. A pair's runs follow each other, so that
    /// what else this machine does changes little between them, and half of the pairs begin with
    /// the flood.
    @Test func `flooded listeners keep no push waiting`() async throws {
        let fleet = try #require(Fleet.current)
        let worker = fleet.workers[0]
        try await fleet.eventually("the listeners") {
            worker.healthPort != nil && worker.adminPort != nil
        }
        let ports = [worker.healthPort, worker.adminPort].compactMap { $0 }
        try fleet.register(
            tokens.enumerated().map { .controls([$1], show: ["subject-\($0)"]) })
        try await fleet.registrationsApplied()
        // The first seconds are those of a program that is just starting.
        _ = try await run(fleet)
        // Other processes come and go, and not three times in a row with the flood.
        var ratios: [Double] = []
        for _ in 0..<3 where ratios.isEmpty || Self.median(ratios) >= 2 {
            ratios = try await measure(fleet, ports)
        }
        #expect(Self.median(ratios) < 2, "\(ratios)")
    }

    private static func median(_ ratios: [Double]) -> Double {
        ratios.sorted()[ratios.count / 2]
    }

    /// - Returns: the pairs' ratios of the 99th percentiles.
    private func measure(_ fleet: Fleet, _ ports: [Int]) async throws -> [Double] {
        var ratios: [Double] = []
        var answers = 0
        for pair in 0..<Self.pairs {
            var figures: [Bool: Double] = [:]
            for isFlooded in pair % 2 == 0 ? [false, true] : [true, false] {
                let flood = isFlooded ? try ListenerFlood(ports) : nil
                figures[isFlooded] = try await run(fleet)
                // A single one may get nothing where others need all of the machine.
                if let flood { answers += try flood.end() }
            }
            // Of a few milliseconds the double is a matter of luck.
            ratios.append((figures[true]! + 5) / (figures[false]! + 5))
        }
        #expect(answers > 0, "the flood is answered too")
        return ratios
    }

    /// Changes all subjects at a steady rate. All pushes must come.
    /// - Returns: the 99th percentile of the time from event to acceptance, in milliseconds.
    private func run(_ fleet: Fleet) async throws -> Double {
        var written: [Int64] = []
        let start = ContinuousClock.now
        for number in tokens.indices {
            try await Task.sleep(
                until: start + .seconds(1) * number / Self.rate, clock: .continuous)
            written.append(SystemClock.wallNanoseconds())
            try fleet.emit("subject-\(number)")
        }
        let begun = try #require(written.first)
        var accepted: [String: Int64] = [:]
        try await fleet.eventually("the pushes") {
            accepted = [:]
            for answer in try fleet.answers() where answer.status == 200 && answer.t > begun {
                accepted[answer.token] = accepted[answer.token] ?? answer.t
            }
            return accepted.count == tokens.count
        }
        let times = try zip(tokens, written).map { token, time in
            Double(try #require(accepted[token.hex]) - time) / 1e6
        }
        return times.sorted()[times.count * 99 / 100]
    }
}

/// The clients, a process of their own.
private struct ListenerFlood {
    private let process = Process()
    private let input = Pipe()
    private let output = Pipe()

    init(_ ports: [Int]) throws {
        process.executableURL = URL(filePath: "/usr/bin/env")
        let script = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../benchmarks/listeners.py").standardized.path
        process.arguments = ["python3", script, "--flood"] + ports.map { "\($0)" }
        process.environment = ProcessInfo.processInfo.environment.merging(
            ["PYTHONDONTWRITEBYTECODE": "1"]) { $1 }
        process.standardInput = input
        process.standardOutput = output
        try process.run()
    }

    /// - Returns: how many answers came.
    func end() throws -> Int {
        try input.fileHandleForWriting.close()
        let text = String(
            decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        return Int(text.trimmingCharacters(in: .whitespacesAndNewlines)) ?? 0
    }
}
