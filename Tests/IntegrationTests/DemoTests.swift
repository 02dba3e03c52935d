// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import Glibc
import Testing

/// The demo as people start it, but short. Those that somebody ends are a suite of their own, which
/// runs beside this one.
@Suite(.serialized)
struct `A demo` {
    @Test func `a demo kills its workers, loses nothing, and leaves no process`() async throws {
        let run = try DemoRun(["--duration", "20", "--json"])
        let status = try await run.process.finish(within: .seconds(120))
        #expect(status == 0, "\(run.process.excerpt)")
        let report = try run.report()
        #expect(report.lost == 0)
        #expect(report.kills >= 1)
        #expect(run.process.output.contains("kill -9 of the registrar"))
        #expect(report.obligations > report.events)
        // With the JSON on standard output, which shares a file with standard error here.
        #expect(run.process.output.contains(#","lost":0,"#))
        #expect(run.process.output.contains("obligations ·"))
        #expect(run.running == [])
        #expect(try await run.judgedAgain() == report)
    }

    @Test func `a worker that ends by itself is named, and fails the demo`() async throws {
        let run = try DemoRun(["--duration", "600"])
        try await waitUntil("some events") { run.events() > 50 }
        kill(try #require(run.workers.first), SIGTERM)
        try await waitUntil("it to be replaced") {
            run.process.output.contains("by itself; started another")
        }
        run.process.signal(SIGINT)
        #expect(try await run.process.finish() == 1, "\(run.process.excerpt)")
        #expect(run.process.output.contains(/worker [12] ended by itself: it has exited with 0: ./))
        #expect(run.running == [])
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
            #expect(try await demo.finish() == 78, "\(demo.excerpt)")
            #expect(demo.output.hasPrefix("lamplighter-lab: \(path): "))
            #expect(demo.output.split(separator: "\n").count == 1)
        }
    }
}
