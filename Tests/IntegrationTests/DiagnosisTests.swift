// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import FleetKit
import Foundation
import Glibc
import Testing
import Worker

/// What an operator reads from `lamplighter status` while something is wrong.
@Suite(.serialized)
struct `The diagnosis of a running worker` {
    /// A fleet with a token that shows `door`, and its worker.
    private func fleet() async throws -> (Fleet, FleetProcess, TestToken) {
        let fleet = try await Fleet()
        let token = TestToken()
        try fleet.register(.controls([token], show: ["door"]))
        try await fleet.registrationsApplied()
        return (fleet, fleet.workers[0], token)
    }

    @Test func `a wrong subject is told with the topic's binding`() async throws {
        let (fleet, worker, _) = try await fleet()
        defer { fleet.end() }
        // The status speaks of the last ten seconds, in which a busy machine may not be asked for it.
        let emission = Task {
            while !Task.isCancelled {
                for _ in 0..<20 { try fleet.emit("dor") }
                try await Task.sleep(for: .seconds(1))
            }
        }
        defer { emission.cancel() }
        try await fleet.statusSays(
            "named subjects that nobody shows, such as dor in \(fleet.topics[.events])", of: worker)
        let text = try await fleet.status(of: worker)
        text.expect("check the binding of the topic (kafka.events) and the app")
    }

    @Test func `a revoked key is told with its credential`() async throws {
        let (fleet, worker, _) = try await fleet()
        defer { fleet.end() }
        fleet.simulator.perform(.acceptKey(SigningTeam.home.keyID, false))
        try fleet.emit("door")
        try await fleet.statusSays(
            "Pushes of credential home in production wait: APNs answers InvalidProviderToken. "
                + "Check the credential's key, key ID, team and environments.", of: worker)
        let json = try await fleet.status(of: worker, ["--json"])
        let report = try #require(StatusReport(json: Array(json.output.utf8)))
        #expect(report.breakers.first?.name == "credential home in production")
        #expect(report.problems.first?.severity == .error)
    }

    @Test(arguments: ["takes no connections", "answers nothing"])
    func `an APNs that is away is told`(how: String) async throws {
        let (fleet, worker, _) = try await fleet()
        defer { fleet.end() }
        if how == "answers nothing" {
            fleet.simulator.perform(.blackHole(true))
        } else {
            fleet.simulator.stop()
        }
        try fleet.emit("door")
        let said =
            "Pushes of credential home in production wait: "
            + (how == "answers nothing" ? "APNs " : "no connection to APNs is open")
        try await fleet.statusSays(said, of: worker)
        // It goes on saying so, however the push waits; of an APNs that answers nothing a worker also
        // opens no further connection.
        let causes = [
            said, "Pushes of credential home in production wait: no connection to APNs is open",
        ]
        for _ in 0..<20 {
            let text = try await fleet.statusText(of: worker)
            #expect(causes.contains { text.contains($0) }, "\(text)")
            try await Task.sleep(for: .milliseconds(100))
        }
    }

    @Test func `an APNs that answers nothing from the start is not called unreachable`()
        async throws
    {
        let fleet = try await Fleet(TestPlan(workers: 0))
        defer { fleet.end() }
        let token = TestToken()
        try fleet.register(.controls([token], show: ["door"]))
        // It takes connections and requests.
        fleet.simulator.perform(.stall(true))
        let worker = try fleet.startWorker()
        try await fleet.statusSays("running: All is well.", of: worker)
        try fleet.emit("door")
        try await fleet.statusSays("wait: APNs has not answered for ", of: worker)
        // Until the circuit breaker has opened, and between its probes.
        try await fleet.statusSays("wait: APNs does not answer. ", of: worker)
        for _ in 0..<20 {
            let text = try await fleet.statusText(of: worker)
            #expect(!text.isEmpty && !text.contains("no connection to APNs is open"))
            try await Task.sleep(for: .milliseconds(250))
        }
    }

    /// The embedded Kafka stands still, as one whose machine is away.
    @Test(.enabled(if: Fleet.testBootstrap == nil))
    func `a Kafka that is away is told`() async throws {
        let (fleet, worker, _) = try await fleet()
        defer { fleet.end() }
        let broker = try #require(fleet.broker)
        broker.signal(SIGSTOP)
        defer { broker.signal(SIGCONT) }
        try await fleet.statusSays("Kafka has not answered for ", of: worker)
        broker.signal(SIGCONT)
        try await fleet.statusSays("running: All is well.", of: worker)
    }

    /// Fetches fail at first, so that the broker can be stopped before the worker has read anything.
    @Test(.enabled(if: Fleet.testBootstrap == nil))
    func `a replay that is held is told, and the startup probe waits for its end`() async throws {
        let fleet = try await Fleet(TestPlan(workers: 0))
        defer { fleet.end() }
        try fleet.register(.controls([TestToken()], show: ["door"]))
        // NOT_LEADER_OR_FOLLOWER on Fetch.
        try await fleet.tellKafka("err 1 6 40")
        let worker = try fleet.startWorker()
        try await fleet.eventually("the listener") { worker.healthPort != nil }
        let health = try #require(worker.healthPort)
        let progress = "reading registrations and suppressions: 0 records"
        try await fleet.request("/startupz", port: health, until: 503, progress)
        let broker = try #require(fleet.broker)
        broker.signal(SIGSTOP)
        defer { broker.signal(SIGCONT) }
        for path in ["/startupz", "/readyz"] {
            let answer = try await fleet.request(path, port: health)
            #expect(answer.status == 503 && answer.body.contains(progress), "\(answer)")
        }
        #expect(try await fleet.request("/livez", port: health).status == 200)
        try await fleet.statusSays(
            "Reading registrations and suppressions has stood still for ", of: worker)
        broker.signal(SIGCONT)
        try await fleet.request("/startupz", port: health, until: 200, "ok")
        try await fleet.request("/readyz", port: health, until: 200, "ok")
    }

    @Test func `listeners answer while a worker stops`() async throws {
        let (fleet, worker, _) = try await fleet()
        defer { fleet.end() }
        let admin = try await fleet.adminPort(of: worker)
        let health = try #require(worker.healthPort)
        // A stop ends once nothing has moved for `DrainWatch.patience`: the answers come one by one,
        // for longer than what is asked below takes.
        try fleet.register(
            .controls((0..<Self.answersOfStop).map { _ in TestToken() }, show: ["hatch"]))
        try await fleet.registrationsApplied()
        fleet.simulator.perform(.delay(.uniform(.zero ... .seconds(15))))
        let before = fleet.simulator.counts.accepted
        try fleet.emit("hatch")
        try await fleet.eventually("the first answers") {
            fleet.simulator.counts.accepted > before
        }
        worker.signal(SIGTERM)
        try await fleet.request(
            "/status", port: admin, until: 200, #""phase":"draining""#)
        // At once, since the stop goes on.
        async let live = fleet.request("/livez", port: health)
        async let ready = fleet.request("/readyz", port: health)
        async let metrics = fleet.request("/metrics", port: health)
        async let status = fleet.request("/status", port: admin)
        #expect(try await live.status == 200)
        #expect(try await ready.status == 503)
        #expect(try await ready.body.contains("the worker is stopping"))
        #expect(try await metrics.status == 200)
        #expect(try await status.status == 200)
        #expect(try await status.body.contains("\"phase\":\"draining\""))
        #expect(worker.isRunning)
    }

    /// One every 15 ms.
    private static let answersOfStop = 1000
}
