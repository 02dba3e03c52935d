// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import Glibc
import Testing

/// `lamplighter-lab fleet`, on which the benchmarks run.
@Suite(.serialized)
struct `A fleet for others` {
    private struct Report: Decodable {
        var bootstrap: String
        var apnsPort: UInt16
        var workers: [Int32]
    }

    private let directory = FileManager.default.temporaryDirectory
        .appending(path: "lamplighter-\(UUID().uuidString)")

    private func start(_ arguments: [String]) throws -> FleetProcess {
        try FleetProcess(
            "fleet", program: try Fleet.lab,
            arguments: ["fleet", "--directory", directory.path] + arguments,
            log: directory.path + ".log")
    }

    private func reports(_ fleet: FleetProcess) throws -> [Report] {
        try fleet.output.split(separator: "\n").filter { $0.hasPrefix("{") }
            .map { try JSONDecoder().decode(Report.self, from: Data($0.utf8)) }
    }

    private func removeFiles() {
        for path in [directory.path, directory.path + ".log"] {
            try? FileManager.default.removeItem(atPath: path)
        }
    }

    @Test func `a fleet says where it is, replaces workers when told to, and leaves no process`()
        async throws
    {
        defer { removeFiles() }
        let fleet = try start(["--workers", "1"])
        defer { fleet.signal(SIGKILL) }
        try await waitUntil("the first worker") { try reports(fleet).count == 1 }
        let first = try #require(try reports(fleet).first)
        #expect(first.workers.count == 1)
        #expect(first.apnsPort != 0)
        #expect(first.bootstrap.hasPrefix("127.0.0.1:"))
        // So that it can be ended in order.
        let log = directory.appending(path: "worker-1.log")
        try await waitUntil("its partitions") {
            try String(contentsOf: log, encoding: .utf8).contains("assigned partitions=")
        }
        fleet.say("workers 2 delivery.threads=2")
        try await waitUntil("other workers") { try reports(fleet).count == 2 }
        let second = try #require(try reports(fleet).last)
        #expect(second.workers.count == 2)
        #expect(second.bootstrap == first.bootstrap)
        #expect(kill(first.workers[0], 0) == -1)
        // Empty until the process runs its own program.
        try await waitUntil("the variables of another worker") {
            try String(contentsOfFile: "/proc/\(second.workers[0])/environ", encoding: .utf8)
                .contains("LAMPLIGHTER_DELIVERY_THREADS=2")
        }
        fleet.say("quit")
        #expect(try await fleet.finish() == 0, "\(fleet.excerpt)")
        #expect(second.workers.allSatisfy { kill($0, 0) == -1 })
    }

    @Test func `a fleet goes on without a worker that somebody has stopped, and says so`()
        async throws
    {
        defer { removeFiles() }
        let fleet = try start(["--workers", "1"])
        defer { fleet.signal(SIGKILL) }
        try await waitUntil("the worker") { try reports(fleet).count == 1 }
        let log = directory.appending(path: "worker-1.log")
        try await waitUntil("its partitions") {
            try String(contentsOf: log, encoding: .utf8).contains("assigned partitions=")
        }
        kill(try #require(try reports(fleet).first?.workers.first), SIGTERM)
        try await waitUntil("its end") { fleet.output.contains("worker-1 has ended in order") }
        #expect(fleet.isRunning)
        fleet.say("workers 1")
        try await waitUntil("another worker") { try reports(fleet).count == 2 }
        fleet.say("quit")
        #expect(try await fleet.finish() == 0, "\(fleet.excerpt)")
    }

    @Test func `a line that a fleet does not understand ends it, and is named`() async throws {
        defer { removeFiles() }
        let fleet = try start(["--workers", "0"])
        defer { fleet.signal(SIGKILL) }
        try await waitUntil("its simulators") { try reports(fleet).count == 1 }
        fleet.say("dance")
        #expect(try await fleet.finish() == 70)
        #expect(fleet.output.contains("'dance' is neither 'workers N' nor 'quit'"))
    }
}
