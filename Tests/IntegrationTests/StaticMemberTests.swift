// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Checker
import FleetKit
import Foundation
import Glibc
import Testing

/// The embedded Kafka knows no static members, so the group's coordinator is that of the benchmarks,
/// which answers as Apache Kafka does. Sessions are longer than a test waits for anything.
@Suite(.serialized, .enabled(if: Fleet.testBootstrap == nil))
enum `Static members of a group` {
    @Suite(.serialized, .fleet(.underTraffic(workers: 0)))
    struct `one of which dies` {
        @Test func `a worker that dies and is back under its name stops no other worker`()
            async throws
        {
            let group = try await StaticGroup(of: try #require(Fleet.current))
            let traffic = try await group.traffic()
            let (dying, other) = (try group.start("worker-0"), try group.start("worker-1"))
            try await group.isShared(by: [dying, other])
            try await traffic.begin()
            let emission = Task { try await traffic.emit(4000) }
            try await traffic.accepted(3000)
            let given = other.givenUp
            dying.signal(SIGKILL)
            #expect(try await dying.finish() == -SIGKILL)
            let successor = try group.start("worker-0")
            try await emission.value
            #expect(try await traffic.delivered().obligations == 4004 * 3)
            #expect(other.givenUp == given, "\(other.output)")
            #expect(successor.output.contains("partitions="))
        }
    }

    @Suite(.serialized, .fleet(.underTraffic(workers: 0)))
    struct `one of which is stopped` {
        @Test func `a worker that is stopped in order hands its partitions to the others at once`()
            async throws
        {
            let group = try await StaticGroup(of: try #require(Fleet.current))
            let traffic = try await group.traffic()
            let (stopping, other) = (try group.start("worker-0"), try group.start("worker-1"))
            try await group.isShared(by: [stopping, other])
            try await traffic.begin()
            let emission = Task { try await traffic.emit(4000) }
            try await traffic.accepted(3000)
            stopping.signal(SIGTERM)
            #expect(try await stopping.finish() == 0)
            try await emission.value
            let report = try await traffic.delivered()
            #expect(report.obligations == 4004 * 3)
            #expect(report.duplicates == 0)
        }
    }

    @Suite(.serialized, .fleet(.underTraffic(workers: 0)))
    struct `two of which have one name` {
        @Test func `of two workers of one name the older ends with 78 and says why`()
            async throws
        {
            let group = try await StaticGroup(of: try #require(Fleet.current))
            let traffic = try await group.traffic()
            let older = try group.start("worker-0")
            try await group.isShared(by: [older])
            let newer = try group.start("worker-0")
            // With 78 a supervisor does not start it again, to take the name from the other once more.
            #expect(try await older.finish() == 78)
            let lines = older.output.split(separator: "\n")
            #expect(
                lines.count {
                    $0.contains(
                        "another running worker has the same kafka.groupInstanceID, 'worker-0'")
                } == 1, "\(older.output)")
            try await traffic.begin()
            try await traffic.emit(1000)
            #expect(try await traffic.delivered().obligations == 1004 * 3)
            #expect(newer.isRunning)
        }
    }
}

private final class StaticGroup {
    private let fleet: Fleet
    private let coordinator: FleetProcess
    private let bootstrap: String

    init(of fleet: Fleet) async throws {
        self.fleet = fleet
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let address = fleet.directory.appending(path: "coordinator.address").path
        coordinator = try FleetProcess(
            "coordinator", program: "/usr/bin/env",
            arguments: [
                "python3", root.appending(path: "benchmarks/coordinator.py").path, fleet.bootstrap,
                address,
            ], log: fleet.directory.appending(path: "coordinator.log").path)
        var found = ""
        try await waitUntil("the coordinator") {
            found = (try? String(contentsOfFile: address, encoding: .utf8)) ?? ""
            return found.hasSuffix("\n")
        }
        bootstrap = found.trimmingCharacters(in: .newlines)
    }

    func start(_ name: String) throws -> FleetProcess {
        try fleet.processes.startWorker(variables: [
            "LAMPLIGHTER_KAFKA_BOOTSTRAP": bootstrap,
            "LAMPLIGHTER_KAFKA_GROUPINSTANCEID": name,
            "LAMPLIGHTER_KAFKA_PROPERTIES_SESSION_TIMEOUT_MS": "200000",
        ])
    }

    func traffic() async throws -> Traffic { try Traffic(fleet, subjects: 200, tokensEach: 3) }

    func isShared(by workers: [FleetProcess]) async throws {
        try await fleet.eventually("both workers to have partitions") {
            workers.allSatisfy { $0.output.contains("partitions=") }
        }
    }
}

extension FleetProcess {
    /// How often the worker has given up partitions so far.
    fileprivate var givenUp: Int {
        output.split(separator: "\n").count { $0.contains(" info unassigned ") }
    }
}
