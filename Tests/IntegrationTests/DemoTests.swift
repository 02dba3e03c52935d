// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Glibc
import Testing

/// The demo as people start it, but short.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct `A demo` {
    private struct Report: Decodable {
        var events: Int
        var obligations: Int
        var lost: Int
        var kills: Int
    }

    /// A demo whose files are in a folder of the test, by which its processes can be told.
    private final class Run {
        let directory: URL
        let process: ChildProcess
        var logs: URL { directory.appending(path: "logs") }
        var verdict: URL { logs.appending(path: "verdict.json") }

        init(_ arguments: [String]) throws {
            directory = FileManager.default.temporaryDirectory
                .appending(path: "lamplighter-\(UUID().uuidString)")
            try FileManager.default.createDirectory(
                at: directory, withIntermediateDirectories: true)
            process = try ChildProcess(
                "demo", executable: try Fleet.program,
                arguments: [
                    "demo", "--installations", "300", "--rate", "100", "--keep",
                    directory.appending(path: "logs").path,
                ] + arguments,
                outputFile: directory.appending(path: "output"))
        }

        deinit {
            process.signal(SIGKILL)
            try? FileManager.default.removeItem(at: directory)
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

        func report() throws -> Report {
            try JSONDecoder().decode(Report.self, from: Data(contentsOf: verdict))
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
        #expect(status == 0, "\(run.process.tail)")
        let report = try run.report()
        #expect(report.lost == 0)
        #expect(report.kills >= 1)
        #expect(report.obligations > report.events)
        // With the JSON on standard output, which shares a file with standard error here.
        #expect(run.process.output.contains(#","lost":0,"#))
        #expect(run.process.output.contains("obligations ·"))
        #expect(run.running == [])
    }

    @Test func `ends with the verdict when it is interrupted`() async throws {
        let run = try Run(["--duration", "600"])
        try await waitUntil("some events", within: .seconds(30)) { run.events() > 50 }
        run.process.signal(SIGINT)
        #expect(try await run.process.finish(within: .seconds(80)) == 0, "\(run.process.tail)")
        #expect(run.process.output.contains(" 0 lost · "))
        #expect(run.running == [])
    }

    @Test func `leaves no process when it is killed`() async throws {
        let run = try Run(["--duration", "600"])
        try await waitUntil("some events", within: .seconds(30)) { run.events() > 0 }
        // Itself, Kafka, APNs, two workers, the traffic.
        #expect(run.running.count == 6)
        run.process.signal(SIGKILL)
        try await waitUntil("the others to end", within: .seconds(10)) { run.running.isEmpty }
    }
}
