// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import FleetKit
import Foundation
import Glibc
import Testing

@Suite(.serialized)
struct `A schema registry` {
    /// Record 1 of the registry: an order.
    private static let schemas = #"""
        [{"subject": "orders-value", "schema":
          "{\"type\":\"record\",\"name\":\"Order\",\"fields\":[{\"name\":\"orderId\",\"type\":\"int\"},{\"name\":\"state\",\"type\":\"string\"}]}"}]
        """#

    /// A record of an order in Avro; its number and its state are less than 64.
    private static func order(_ number: UInt8, _ state: String, schema: UInt8 = 1) -> String {
        let frame: [UInt8] = [0, 0, 0, 0, schema]
        return String(
            decoding: frame + [number * 2, UInt8(state.utf8.count) * 2] + state.utf8,
            as: UTF8.self)
    }

    @Test func `that is away holds the partitions of its records and nothing else`() async throws {
        let registry = try RegistryProcess(Self.schemas)
        registry.behave("status 503")
        let fleet = try await Fleet(TestPlan(schemaRegistry: registry.url))
        defer { fleet.end() }
        let (orders, door) = (TestToken(), TestToken())
        try fleet.register(.controls([orders], show: ["order-7", "order-8"]))
        try fleet.register(.controls([door], show: ["door"]))
        try await fleet.registrationsApplied()
        for number in 7...8 as ClosedRange<UInt8> {
            try fleet.write(
                to: .orders, key: "a", value: Self.order(number, "packed"), partition: 2)
        }
        let worker = fleet.workers[0]
        let partition = "\(fleet.topics[.orders])/2"
        try await fleet.statusSays(
            "\(partition) waits at offset 0 for schema 1, and \(registry.url) answers 503.",
            of: worker)
        // Other partitions go on, also of the same topic.
        try fleet.emit("door")
        try await fleet.eventually("the push of another topic") { fleet.accepted(door) == 1 }
        try await fleet.eventually("the listener") { worker.healthPort != nil }
        let port = try #require(worker.healthPort)
        try await fleet.request(
            "/metrics", port: port, until: 200,
            "lamplighter_partitions_held{topic=\"\(fleet.topics[.orders])\"} 1")
        #expect(fleet.accepted(orders) == 0)

        registry.behave("well")
        try await fleet.eventually("the pushes of orders") { fleet.accepted(orders) >= 1 }
        try fleet.write(to: .orders, key: "a", value: Self.order(8, "sent"), partition: 2)
        try await fleet.eventually("the push of an order that was not held") {
            fleet.accepted(orders) >= 2
        }
        try await fleet.request(
            "/metrics", port: port, until: 200,
            "lamplighter_partitions_held{topic=\"\(fleet.topics[.orders])\"} 0")
        #expect(try await fleet.deadLetterLog.readToEnd().isEmpty)
    }

    @Test func `that is away costs a worker that stops nothing`() async throws {
        let registry = try RegistryProcess(Self.schemas)
        registry.behave("silence")
        let fleet = try await Fleet(TestPlan(schemaRegistry: registry.url))
        defer { fleet.end() }
        let token = TestToken()
        try fleet.register(.controls([token], show: ["order-7"]))
        try await fleet.registrationsApplied()
        for state in ["packed", "sent"] {
            try fleet.write(to: .orders, key: "a", value: Self.order(7, state), partition: 1)
        }
        try await fleet.statusSays("is held", of: fleet.workers[0])
        fleet.workers[0].signal(SIGTERM)
        #expect(try await fleet.workers[0].finish() == 0)
        registry.behave("well")
        try fleet.startWorker()
        try await fleet.eventually("the push of the order") { fleet.accepted(token) >= 1 }
    }

    @Test func `makes dead letters of what it does not have, and of nothing else`() async throws {
        let registry = try RegistryProcess(Self.schemas)
        let fleet = try await Fleet(TestPlan(schemaRegistry: registry.url))
        defer { fleet.end() }
        let token = TestToken()
        try fleet.register(.controls([token], show: ["order-7"]))
        try await fleet.registrationsApplied()
        for value in [Self.order(7, "x", schema: 9), "plain text", Self.order(7, "packed")] {
            try fleet.write(to: .orders, key: "a", value: value, partition: 3)
        }
        try await fleet.eventually("the push of the order") { fleet.accepted(token) == 1 }
        let log = try fleet.deadLetterLog
        try await fleet.eventually("the dead letters") { log.records.count == 2 }
        let letters = try log.records.map { try $0.decoded(as: DeadLetterValue.self) }
        #expect(Set(letters.map(\.reason)) == ["unknownSchema", "schemaFrame"])

        let check = try await fleet.run([
            "check", "--config", fleet.configurationFile.path, "--skip-apns", "--sample", "3",
        ])
        #expect(check.status == 0, "\(check.output)")
        for line in [
            "ok      schema registry", "3 records, 1 events, 0 filtered, 2 dead letters",
            "dead letters for unknownSchema", "order-7, look again",
        ] { #expect(check.output.contains(line), "\(check.output)") }

        registry.stop()
        let failing = try await fleet.run([
            "check", "--config", fleet.configurationFile.path, "--skip-apns",
        ])
        #expect(failing.status != 0)
        #expect(failing.output.contains("wrong   the schema registry: \(registry.url): "))
    }
}

/// The schema registry of `Tests/Schemas`, which ends with the test.
private final class RegistryProcess {
    private let process: FleetProcess
    private let folder: URL
    let url: String

    init(_ schemas: String) throws {
        folder = FileManager.default.temporaryDirectory
            .appending(path: "registry-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        try schemas.write(
            to: folder.appending(path: "schemas.json"), atomically: true, encoding: .utf8)
        let program = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().appending(path: "Schemas/registry.py")
        process = try FleetProcess(
            "registry", program: "/usr/bin/python3", arguments: [program.path, folder.path],
            log: folder.appending(path: "log").path)
        let port = folder.appending(path: "port")
        let patience = Patience()
        while !FileManager.default.fileExists(atPath: port.path) {
            guard process.isRunning, !patience.isOver else {
                throw Timeout(description: "the registry does not start: \(process.output)")
            }
            usleep(5000)
        }
        url = "http://127.0.0.1:\(try String(contentsOf: port, encoding: .utf8))"
    }

    deinit {
        stop()
        try? FileManager.default.removeItem(at: folder)
    }

    /// Tells the registry how to answer.
    func behave(_ words: String) {
        try! words.write(
            to: folder.appending(path: "behaviour"), atomically: true, encoding: .utf8)
    }

    func stop() { process.signal(SIGKILL) }
}
