// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import Glibc
import Testing

struct DemoReport: Decodable, Equatable {
    var events: Int
    var obligations: Int
    var lost: Int
    var kills: Int
}

/// A demo with its files in a folder of the test, by which its processes are identified.
final class DemoRun {
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
    func judgedAgain() async throws -> DemoReport {
        let marker = "to judge them again: "
        let line = process.output.split(separator: "\n").first { $0.hasPrefix(marker) }
        let command = try #require(line).dropFirst(marker.count)
        let checker = try FleetProcess(
            "checker", program: "/bin/sh",
            arguments: ["-c", String(command)], log: directory.appending(path: "again").path)
        #expect(try await checker.finish() == 0, "\(checker.excerpt)")
        let json = checker.output.split(separator: "\n").first { $0.hasPrefix("{") }
        return try JSONDecoder().decode(DemoReport.self, from: Data(#require(json).utf8))
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

    func report() throws -> DemoReport {
        try JSONDecoder().decode(DemoReport.self, from: Data(contentsOf: result))
    }

    func events() -> Int {
        let log = try? String(
            contentsOf: logs.appending(path: "events.ndjson"), encoding: .utf8)
        return log?.split(separator: "\n").count ?? 0
    }
}
