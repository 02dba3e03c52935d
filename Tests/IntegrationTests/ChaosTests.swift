// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import Glibc
import Testing

/// `make chaos`, but short: the first rounds of a seed that has kills in both.
@Suite(.serialized)
struct `Chaos` {
    private struct Report: Decodable {
        var rounds: Int
        var kills: Int
        var events: Int
        var obligations: Int
        var lost: Int
        var duplicates: Int
        var duplicatesMax: Int
        var deadLettered: Int
        var failures: [String]
    }

    private func run(_ arguments: [String]) async throws -> (status: Int32, output: String) {
        let directory = FileManager.default.temporaryDirectory
            .appending(path: "lamplighter-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let process = try FleetProcess(
            "chaos", program: try Fleet.lab,
            arguments: ["chaos", "--directory", directory.appending(path: "rounds").path]
                + (Fleet.testBootstrap.map { ["--bootstrap", $0] } ?? []) + arguments,
            log: directory.appending(path: "output").path)
        defer { process.signal(SIGKILL) }
        let status = try await process.finish(within: .seconds(300))
        return (status, process.output)
    }

    @Test func `chaos loses nothing in two rounds`() async throws {
        let (status, output) = try await run([
            "--rounds", "2", "--seed", "5", "--duration", "8", "--installations", "600", "--rate",
            "150",
        ])
        #expect(status == 0, "\(output)")
        let line = try #require(output.split(separator: "\n").last { $0.hasPrefix("{") })
        let report = try JSONDecoder().decode(Report.self, from: Data(line.utf8))
        #expect(report.rounds == 2)
        #expect(report.kills >= 2)
        #expect(report.lost == 0)
        #expect(report.duplicates <= report.duplicatesMax)
        #expect(report.obligations > report.events)
        // One of a hundred events is unreadable.
        #expect(report.deadLettered > 0)
        #expect(report.failures == [])
    }
}
