// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import FleetKit
import Foundation
import Glibc
import PushModel
import Testing

@Suite(.serialized, .fleet())
struct `Signals to a worker` {
    private static func rewrite(_ fleet: Fleet, _ old: String, _ new: String) throws {
        let text = try String(contentsOf: fleet.configurationFile, encoding: .utf8)
        try #require(text.contains(old), "the configuration has no \(old)")
        try text.replacing(old, with: new)
            .write(to: fleet.configurationFile, atomically: true, encoding: .utf8)
    }

    @Test func `SIGHUP reloads the configuration, as a whole or not at all`() async throws {
        let fleet = try #require(Fleet.current)
        let worker = fleet.workers[0]
        let token = TestToken()
        try fleet.register(.controls([token], show: ["door"]))
        try await fleet.registrationsApplied()
        try await fleet.change("door", heardBy: token)
        #expect(fleet.requests(for: token).last?["apns-priority"] == "10")

        // One mistake, and what is right beside it has no effect.
        let settings = "planning:\n"
        try Self.rewrite(
            fleet, settings,
            settings + "  ttl: never\n  wire: {controls: {priority: 5}}\n")
        worker.signal(SIGHUP)
        try await fleet.eventually("the refusal") {
            worker.output.contains("the configuration is not reloaded")
        }
        #expect(worker.output.contains("has a problem problem=\"planning.ttl (line "))
        try await fleet.change("door", heardBy: token)
        #expect(fleet.requests(for: token).last?["apns-priority"] == "10")

        try Self.rewrite(fleet, "ttl: never", "ttl: 12h")
        try Self.rewrite(fleet, "format: text", "format: json\n  level: debug")
        try Self.rewrite(
            fleet, "index:\n  registrationGrace: 2s", "index:\n  registrationGrace: 3s")
        worker.signal(SIGHUP)
        try await fleet.eventually("the audit line") {
            worker.output.contains("the configuration is reloaded in part")
        }
        let audit = try #require(
            worker.output.split(separator: "\n").last { $0.contains("reloaded in part") })
        #expect(audit.hasPrefix("{"), "the line is written in the new format")
        #expect(audit.contains("planning.ttl: 24h -> 12h"))
        #expect(audit.contains("planning.wire.controls.priority: 10 -> 5"))
        #expect(audit.contains("log.level: info -> debug"))
        #expect(audit.contains("index.registrationGrace: 2s -> 3s"))
        try await fleet.change("door", heardBy: token)
        #expect(fleet.requests(for: token).last?["apns-priority"] == "5")

        worker.signal(SIGHUP)
        try await fleet.eventually("what still waits") {
            worker.output.components(separatedBy: "reloaded in part").count == 3
        }
        #expect(worker.isRunning)
    }

    @Test func `SIGUSR1 has it write its counters, and SIGUSR2 does nothing`() async throws {
        let fleet = try #require(Fleet.current)
        let worker = fleet.workers[0]
        try await fleet.registrationsApplied()
        worker.signal(SIGUSR2)
        try await fleet.eventually("the line about it") { worker.output.contains("SIGUSR2") }
        // Without the signal, the totals come once a minute at most.
        let reports = { worker.output.components(separatedBy: "totals since the start").count }
        let before = reports()
        for count in 1...3 {
            worker.signal(SIGUSR1)
            try await fleet.eventually("the counters") { reports() >= before + count }
        }
        worker.signal(SIGTERM)
        #expect(try await worker.finish() == 0)
    }
}
