// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import Glibc
import PushModel
import Testing

@Suite(.serialized, .fleet())
struct `Worker health` {
    /// What the worker answers to a request of curl's.
    private static func get(
        _ path: String, of worker: FleetProcess, _ options: [String] = []
    ) async throws -> ListenerAnswer {
        let fleet = try #require(Fleet.current)
        try await fleet.eventually("the listener") { worker.healthPort != nil }
        return try await fleet.request(path, port: try #require(worker.healthPort), options)
    }

    /// The value of one series.
    private static func value(_ series: String, in page: String) -> Double? {
        page.split(separator: "\n").first { $0.hasPrefix("\(series) ") }
            .flatMap { Double($0.dropFirst(series.count + 1)) }
    }

    /// The metrics once they are as said: an answer may be a fifth of a second old.
    private static func page(
        of worker: FleetProcess, where isWanted: (String) -> Bool
    ) async throws -> String {
        let patience = Patience()
        while true {
            let page = try await get("/metrics", of: worker).body
            if isWanted(page) { return page }
            try #require(!patience.isOver, "\(page)")
        }
    }

    @Test func `probes and metrics tell of a worker that starts, pushes and stops`() async throws {
        let fleet = try #require(Fleet.current)
        let worker = fleet.workers[0]
        #expect(try await Self.get("/livez", of: worker).status == 200)
        let patience = Patience()
        while try await Self.get("/readyz", of: worker).status != 200 {
            try #require(!patience.isOver, "it is never ready")
        }
        #expect(try await Self.get("/startupz", of: worker).body == "ok\n")

        let token = TestToken()
        try fleet.register(.controls([token], show: ["door"]))
        try await fleet.registrationsApplied()
        let series = [
            """
            lamplighter_pushes_total{app="\(TestApp.home)",type="controls",outcome="accepted",reason=""}
            """,
            "lamplighter_event_to_accepted_seconds_count{type=\"controls\"}",
            "lamplighter_apns_requests_total{thread=\"0\"}",
        ]
        let before = try await Self.page(of: worker) { _ in true }
        try await fleet.change("door", heardBy: token)
        let page = try await Self.page(of: worker) { page in
            series.allSatisfy { name in
                (Self.value(name, in: page) ?? 0) > (Self.value(name, in: before) ?? 0)
            }
        }
        #expect(try #require(Self.value("lamplighter_index_tokens", in: page)) >= 1)
        #expect(Self.value("lamplighter_phase{phase=\"running\"}", in: page) == 1)
        #expect(page.contains("\nlamplighter_apns_connections{credential="))
        #expect(page.contains("\nlamplighter_apns_provider_token_age_seconds{credential="))
        #expect(Self.value("lamplighter_oldest_waiting_seconds", in: page) == 0)
        let memory = try #require(Self.value("process_resident_memory_bytes", in: page))
        #expect(memory > 1_000_000)
        let seconds = try #require(Self.value("process_cpu_seconds_total", in: page))
        let descriptors = try #require(Self.value("process_open_fds", in: page))
        let descriptorsMax = try #require(Self.value("process_max_fds", in: page))
        #expect(seconds > 0 && descriptors > 10 && descriptorsMax > descriptors)
        let pool = #"credential="home",environment="production""#
        let devices = #"{\#(pool),service=""}"#
        #expect(Self.value("lamplighter_apns_connects_total\(devices)", in: page) ?? 0 >= 1)
        let breaker = #"{of="credential",\#(pool),app="",apns_topic=""}"#
        #expect(Self.value("lamplighter_breaker_state\(breaker)", in: page) == 0)
        let open = try await Self.get(
            "/metrics", of: worker, ["--header", "Accept: application/openmetrics-text"])
        #expect(open.body.hasSuffix("# EOF\n"))
        #expect(try await Self.get("/status", of: worker).status == 404)
    }

    @Test(arguments: ["health", "admin"])
    func `a worker whose port another program has says so and does not start`(
        listener: String
    ) async throws {
        let fleet = try #require(Fleet.current)
        let worker = fleet.workers[0]
        try await fleet.eventually("the listeners") {
            worker.healthPort != nil && worker.adminPort != nil
        }
        let port = try #require(listener == "health" ? worker.healthPort : worker.adminPort)
        let result = try await fleet.run(
            ["run", "--config", fleet.configurationFile.path],
            variables: [WorkerConfiguration.variable(of: "\(listener).port"): "\(port)"])
        #expect(result.status == 78)
        #expect(result.output.contains("\(listener) cannot listen on 127.0.0.1:\(port)"))
    }

    @Test func `probes and operators are answered when little else wants the core`()
        async throws
    {
        let fleet = try #require(Fleet.current)
        let worker = fleet.workers[0]
        try await fleet.eventually("the listeners") {
            worker.healthPort != nil && worker.adminPort != nil
        }
        let found = try ThreadStatus.all(of: worker.identifier)
            .filter { $0.name.hasPrefix("NIO-ELT-") }.map(\.scheduling)
        #expect(found == ["batch, nice 10", "batch, nice 10"], "\(found)")
    }

    @Test func `an orderly stop logs no error`() async throws {
        let fleet = try #require(Fleet.current)
        let worker = try fleet.startWorker()
        try await fleet.eventually("the listeners") {
            worker.healthPort != nil && worker.adminPort != nil
        }
        worker.signal(SIGTERM)
        #expect(try await worker.finish() == 0)
        #expect(!worker.output.contains(" error "), "\(worker.output)")
    }
}
