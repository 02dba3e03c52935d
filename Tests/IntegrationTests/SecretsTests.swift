// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import FleetKit
import Foundation
import Glibc
import PushModel
import Testing

/// Runs at `log.level: trace`, librdkafka's own `debug` included, and looks for each secret in
/// everything that was printed. The proxy's password is looked for in `Behind a proxy`.
@Suite(.serialized)
struct `Secrets in what a worker prints` {
    private static func trace(_ fleet: Fleet, properties: String...) throws {
        let lines = ["properties:", "  debug: all"] + properties.map { "  \($0)" }
        var text = try String(contentsOf: fleet.configurationFile, encoding: .utf8)
        text.replace("  properties:\n", with: lines.map { "  \($0)\n" }.joined())
        text.replace("log:\n", with: "log:\n  level: trace\n")
        try text.write(to: fleet.configurationFile, atomically: true, encoding: .utf8)
    }

    @Test func `what a worker prints holds no password, key or token at any level`() async throws {
        let fleet = try await Fleet(TestPlan(workers: 0))
        defer { fleet.end() }
        try Self.trace(
            fleet, properties: "sasl.username: lamplighter", "sasl.password: hunter-sasl",
            "ssl.key.password: hunter-key")
        let worker = try fleet.startWorker()
        let (shown, dead) = (TestToken(), TestToken())
        try fleet.register(.controls([shown, dead], show: ["door"]))
        try await fleet.registrationsApplied()
        try await fleet.change("door", heardBy: shown)
        worker.signal(SIGTERM)
        #expect(try await worker.finish() == 0)

        // The levels below `info` were printed, and so was what the services are called.
        #expect(worker.output.contains("debug") && worker.output.contains("librdkafka"))
        let authorization = try #require(fleet.requests(for: shown).first?["authorization"])
        let key = SigningTeam.home.privatePEM.split(separator: "\n").dropFirst().dropLast()
        let secrets =
            ["hunter", "-----BEGIN", shown.hex, dead.hex, String(authorization.dropFirst(7))]
            + key.map(String.init)
        let printed = worker.output.lowercased()
        let leaked = secrets.filter { printed.contains($0.lowercased()) }
        #expect(leaked == [])
        // Nor any part of a JSON Web Token.
        let hasToken = worker.output.contains("eyJ")
        #expect(!hasToken)
    }

    @Test func `what a worker prints holds no client secret of a silent token endpoint`()
        async throws
    {
        let fleet = try await Fleet(TestPlan(workers: 0))
        defer { fleet.end() }
        try Self.trace(
            fleet,
            properties: "security.protocol: sasl_plaintext", "sasl.mechanisms: OAUTHBEARER",
            "sasl.oauthbearer.method: oidc",
            "sasl.oauthbearer.token.endpoint.url: http://127.0.0.1:1/token?key=hunter-url",
            "sasl.oauthbearer.client.id: lamplighter",
            "sasl.oauthbearer.client.secret: hunter-oidc")
        let worker = try fleet.startWorker()
        // On a busy machine it may give Kafka up first; that says the same.
        try await waitUntil("the complaint about the endpoint") {
            worker.output.contains("http://127.0.0.1:1/token") || !worker.isRunning
        }
        #expect(worker.output.contains("http://127.0.0.1:1/token"), "\(worker.excerpt)")
        worker.signal(SIGTERM)
        _ = try await worker.finish()
        let hasSecret = worker.output.contains("hunter")
        #expect(!hasSecret)
    }

    @Test func `no log, page or dead letter of workers that say all they can shows a secret`()
        async throws
    {
        let fleet = try await Fleet(TestPlan(workers: 0, saysAll: true))
        defer { fleet.end() }
        for format in ["json", "text"] {
            let variable = WorkerConfiguration.variable(of: "log.format")
            try fleet.processes.startWorker(variables: [variable: format])
        }
        try await Self.meetEverything(fleet)
        var shown = try fleet.processes.pages() + fleet.processes.arguments()
        for worker in fleet.workers { worker.signal(SIGTERM) }
        for worker in fleet.workers {
            #expect(try await worker.finish() == 0)
        }
        let logs = try fleet.processes.workerLogs()
        #expect(logs.map { $0.bytes.first == UInt8(ascii: "{") } == [true, false])
        let letters = try fleet.processes.deadLetters()
        #expect(letters.count >= 2)
        shown += logs + letters

        let search = try SecretSearch(of: fleet.processes)
        #expect(shown.flatMap { $0.leaks(search) } == [])

        // The same search finds the authorization of a push, and the token it was sent to.
        let request = try #require(fleet.simulator.recordedRequests.last)
        let headers = "\(request[":path"] ?? "") \(request["authorization"] ?? "")"
        let log = ShownText("log", logs[0].bytes + Array(headers.utf8))
        #expect(log.leaks(search).count == 2)
    }

    /// Goes through what has workers speak of tokens, keys and records.
    private static func meetEverything(_ fleet: Fleet) async throws {
        let (shown, gone, rejected, misread) = (TestToken(), TestToken(), TestToken(), TestToken())
        try fleet.register(.controls([shown, gone, rejected], show: ["door"]))
        try fleet.write(
            to: .registrations, key: "production/\(TestApp.home)/phone/Controls",
            value: #"{"v":1,"targets":[{"class":"control","token":"\#(misread.hex)""#)
        try await fleet.registrationsApplied()
        try await fleet.eventually("word of the registration") {
            fleet.workers.allSatisfy { $0.output.contains("a record is skipped") }
        }
        fleet.simulator.perform(
            .rules([
                .gone(gone, at: Now.current.wall),
                ScriptedRule(
                    tokenPrefix: rejected.hex, answer: .reason(413, "PayloadTooLarge")),
            ]))
        try await fleet.change("door", heardBy: shown)
        try fleet.write(to: .events, key: "door", value: #"{"subject":"#)
        let (letters, suppressions) = (try fleet.deadLetterLog, try fleet.suppressionLog)
        try await fleet.eventually("dead letters and a suppression") {
            letters.records.count >= 2 && !suppressions.records.isEmpty
        }
        fleet.simulator.perform(
            .rules([ScriptedRule(answer: .reason(403, "InvalidProviderToken"))]))
        try fleet.emit("door")
        try await fleet.eventually("word of the refusal") {
            fleet.workers.contains {
                // One writes JSON, the other text; either may have the partition.
                $0.output.contains("pushes wait")
                    && $0.output.contains("\"APNs answers InvalidProviderToken\"")
            }
        }
        fleet.simulator.perform(.rules([]))
    }
}
