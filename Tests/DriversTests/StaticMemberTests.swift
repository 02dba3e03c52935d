// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import EmbeddedKafka
import FleetKit
import Foundation
import KafkaLog
import Logging
import PushModel
import Testing

/// The embedded Kafka knows no static members, so the coordinator is that of the benchmarks, which answers
/// as Apache Kafka does. A member that is dead keeps its partitions for longer than a test waits.
@Suite struct `A static member that is closed in the midst of a rebalance` {
    private let group: StaticGroup

    init() async throws { group = try await StaticGroup() }

    /// Two members, of which the first has all partitions, and the group wants them back.
    private func rebalance() async throws -> (first: Reading, second: Reading) {
        let first = Reading(try group.member("a"))
        first.onRevoking = { _, _ in }
        try await first.waitForAssignment()
        let second = Reading(try group.member("b"))
        try await waitUntil("the revocation") {
            first.turn()
            second.turn()
            return first.consumer.isRevoking
        }
        return (first, second)
    }

    private func hasAll(_ reading: Reading) async throws {
        try await waitUntil("all partitions") {
            reading.turn()
            return reading.assignments.count == StaticGroup.partitions
        }
    }

    @Test func `a member that is closed before it has answered leaves`() async throws {
        let (first, second) = try await rebalance()
        #expect(first.consumer.close(timeout: .seconds(10), now: .current))
        try await hasAll(second)
        second.close()
    }

    @Test func `a member that answers while it stops leaves with its answer`() async throws {
        let (first, second) = try await rebalance()
        first.consumer.completeRevoke(commit: [], isLeaving: true, now: .current)
        try await waitUntil("all partitions") {
            first.turn()
            second.turn()
            return second.assignments.count == StaticGroup.partitions
        }
        #expect(first.assignmentCount == 1, "it has joined again")
        #expect(first.consumer.close(timeout: .seconds(10), now: .current))
        second.close()
    }
}

private final class StaticGroup {
    static let partitions = 4
    private let fixture: KafkaFixture
    private let directory: ScratchDirectory
    private let coordinator: FleetProcess
    private let bootstrap: String

    init() async throws {
        fixture = try KafkaFixture(["events": Self.partitions])
        directory = try ScratchDirectory()
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let address = directory.file("address")
        coordinator = try FleetProcess(
            "coordinator", program: "/usr/bin/env",
            arguments: [
                "python3", root.appending(path: "benchmarks/coordinator.py").path,
                fixture.kafka.bootstrap, address,
            ], log: directory.file("log"))
        var found = ""
        try await waitUntil("the coordinator") {
            found = (try? String(contentsOfFile: address, encoding: .utf8)) ?? ""
            return found.hasSuffix("\n")
        }
        bootstrap = found.trimmingCharacters(in: .newlines)
    }

    func member(_ name: String) throws -> EventConsumer {
        try EventConsumer(
            settings: KafkaClientSettings(
                bootstrap: bootstrap, group: "fleet",
                properties: [
                    "group.instance.id": name, "session.timeout.ms": "200000",
                    "heartbeat.interval.ms": "200", "fetch.wait.max.ms": "20",
                ]),
            topics: ["events"], startFrom: .earliest, logger: fixture.logger)
    }
}
