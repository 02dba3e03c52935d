// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import Glibc
import Testing

/// The demo as people start it, but short.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct `A demo` {
    private struct Report: Decodable, Equatable {
        var events: Int
        var obligations: Int
        var lost: Int
        var kills: Int
    }

    /// A demo whose files are in a folder of the test, by which its processes can be told.
    private final class Run {
        let directory: URL
        let process: FleetProcess
        var logs: URL { directory.appending(path: "logs") }
        var result: URL { logs.appending(path: "result.json") }

        init(_ arguments: [String]) throws {
            directory = FileManager.default.temporaryDirectory
                .appending(path: "lamplighter-\(UUID().uuidString)")
            try FileManager.default.createDirectory(
                at: directory, withIntermediateDirectories: true)
            process = try FleetProcess(
                "demo", program: try Fleet.lab,
                arguments: [
                    "demo", "--installations", "300", "--rate", "100", "--keep",
                    directory.appending(path: "logs").path,
                ] + arguments,
                log: directory.appending(path: "output").path)
        }

        deinit {
            process.signal(SIGKILL)
            try? FileManager.default.removeItem(at: directory)
        }

        /// Judges the run again by the command that the demo has printed, without its Kafka.
        func judgedAgain() async throws -> Report {
            let marker = "to judge them again: "
            let line = process.output.split(separator: "\n").first { $0.hasPrefix(marker) }
            let command = try #require(line).dropFirst(marker.count)
            let checker = try FleetProcess(
                "checker", program: "/bin/sh",
                arguments: ["-c", String(command)], log: directory.appending(path: "again").path)
            #expect(try await checker.finish(within: .seconds(60)) == 0, "\(checker.excerpt)")
            let json = checker.output.split(separator: "\n").first { $0.hasPrefix("{") }
            return try JSONDecoder().decode(Report.self, from: Data(#require(json).utf8))
        }

        /// The processes, the demo included, whose command line names the folder. Those of a
        /// worker and of the traffic do so by their configuration and their log.
        var running: [String] {
            let entries = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
            return entries.filter { entry in
                guard entry.allSatisfy(\.isNumber),
                    let line = FileManager.default.contents(atPath: "/proc/\(entry)/cmdline")
                else { return false }
                return String(decoding: line, as: UTF8.self).contains(directory.path)
            }
        }

        /// The process identifiers of those that run workers.
        var workers: [pid_t] {
            running.compactMap { entry in
                let line = FileManager.default.contents(atPath: "/proc/\(entry)/cmdline") ?? Data()
                let words = line.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
                return words.dropFirst().first == "run" ? pid_t(entry) : nil
            }
        }

        var isTrafficOver: Bool {
            let log = logs.appending(path: "traffic.log")
            return (try? String(contentsOf: log, encoding: .utf8))?.contains(#""ended""#) ?? false
        }

        func report() throws -> Report {
            try JSONDecoder().decode(Report.self, from: Data(contentsOf: result))
        }

        func events() -> Int {
            let log = try? String(
                contentsOf: logs.appending(path: "events.ndjson"), encoding: .utf8)
            return log?.split(separator: "\n").count ?? 0
        }
    }

    @Test func `kills its workers, loses nothing, and leaves no process`() async throws {
        let run = try Run(["--duration", "10", "--json"])
        let status = try await run.process.finish(within: .seconds(100))
        #expect(status == 0, "\(run.process.excerpt)")
        let report = try run.report()
        #expect(report.lost == 0)
        #expect(report.kills >= 1)
        #expect(report.obligations > report.events)
        // With the JSON on standard output, which shares a file with standard error here.
        #expect(run.process.output.contains(#","lost":0,"#))
        #expect(run.process.output.contains("obligations ·"))
        #expect(run.running == [])
        #expect(try await run.judgedAgain() == report)
    }

    @Test func `a second interruption ends it without a result or a loss`() async throws {
        let run = try Run(["--duration", "600"])
        try await waitUntil("some events", within: .seconds(60)) { run.events() > 50 }
        // Nothing arrives any more, so that there is something to wait for.
        let workers = run.workers
        #expect(workers.count == 2)
        for worker in workers { kill(worker, SIGSTOP) }
        let events = run.events()
        try await waitUntil("events that nobody takes", within: .seconds(60)) {
            run.events() > events + 50
        }
        run.process.signal(SIGINT)
        try await waitUntil("the traffic to end", within: .seconds(60)) { run.isTrafficOver }
        run.process.signal(SIGINT)
        try await waitUntil("its last word", within: .seconds(60)) {
            run.process.output.contains("no result")
        }
        // So that they end in order, which is sooner.
        for worker in workers { kill(worker, SIGCONT) }
        #expect(try await run.process.finish(within: .seconds(60)) == 130, "\(run.process.excerpt)")
        let said = run.process.output
        #expect(said.contains("pushes not awaited, no result"), "\(run.process.excerpt)")
        #expect(!said.contains(": 0 pushes not awaited"))
        #expect(!said.contains(" lost · "))
        #expect(run.running == [])
    }

    @Test func `a worker that ends by itself is named, and fails the demo`() async throws {
        let run = try Run(["--duration", "600"])
        try await waitUntil("some events", within: .seconds(60)) { run.events() > 50 }
        kill(try #require(run.workers.first), SIGTERM)
        try await waitUntil("it to be replaced", within: .seconds(60)) {
            run.process.output.contains("by itself; started another")
        }
        run.process.signal(SIGINT)
        #expect(try await run.process.finish(within: .seconds(80)) == 1, "\(run.process.excerpt)")
        #expect(run.process.output.contains(/worker [12] ended by itself: it has exited with 0: ./))
        #expect(run.running == [])
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func `says that there is no result before the first event`(signal: Int32) async throws {
        let run = try Run(["--duration", "600"])
        try await waitUntil("its simulators", within: .seconds(60)) { run.running.count > 1 }
        run.process.signal(signal)
        #expect(try await run.process.finish(within: .seconds(60)) == 130, "\(run.process.excerpt)")
        #expect(run.process.output.contains("no result: ended before the first event"))
    }

    @Test func `a folder that cannot be made is named in one line`() async throws {
        let directory = FileManager.default.temporaryDirectory
            .appending(path: "lamplighter-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let file = directory.appending(path: "file")
        try Data().write(to: file)
        let unusable = [file.path, file.appending(path: "below").path, directory.path]
        for (number, path) in unusable.enumerated() {
            let demo = try FleetProcess(
                "demo", program: try Fleet.lab, arguments: ["demo", "--keep", path],
                log: directory.appending(path: "output-\(number)").path)
            #expect(try await demo.finish(within: .seconds(60)) == 78, "\(demo.excerpt)")
            #expect(demo.output.hasPrefix("lamplighter-lab: \(path): "))
            #expect(demo.output.split(separator: "\n").count == 1)
        }
    }

    @Test func `ends with the result when it is interrupted`() async throws {
        let run = try Run(["--duration", "600"])
        try await waitUntil("some events", within: .seconds(60)) { run.events() > 50 }
        run.process.signal(SIGINT)
        #expect(try await run.process.finish(within: .seconds(80)) == 0, "\(run.process.excerpt)")
        #expect(run.process.output.contains(" 0 lost · "))
        #expect(run.running == [])
    }

    @Test func `leaves no process when it is killed`() async throws {
        let run = try Run(["--duration", "600"])
        try await waitUntil("some events", within: .seconds(60)) { run.events() > 0 }
        // Itself, Kafka, APNs, two workers, the traffic.
        #expect(run.running.count == 6)
        run.process.signal(SIGKILL)
        try await waitUntil("the others to end", within: .seconds(60)) { run.running.isEmpty }
    }
}
