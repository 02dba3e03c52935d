// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import Glibc
import Testing
import Worker

/// The command as a process, and what it asks, with curl.
@Suite(.serialized, .timeLimit(.minutes(5)), .fleet())
struct `The status command` {
    private let fleet: Fleet
    private let worker: FleetProcess

    init() throws {
        fleet = try #require(Fleet.current)
        worker = fleet.workers[0]
    }

    @Test func `status says how a worker does, in lines and as JSON`() async throws {
        let token = TestToken()
        try fleet.register(.controls([token], show: ["door"]))
        try await fleet.registrationsApplied()
        try await fleet.change("door", heardBy: token)
        try await fleet.statusSays("running: ", of: worker)
        let lines = try await fleet.status(of: worker)
        #expect(lines.status == 0)
        lines.expect(
            "worker ", "group \(fleet.topics.prefix)", "partitions ", "throughput ", "latency ",
            "round trip p50 ", " queued, ", " in flight", "index ", " accepted")

        let json = try await fleet.status(of: worker, ["--json"])
        #expect(json.status == 0)
        #expect(json.lines.count == 1)
        let report = try #require(StatusReport(json: Array(json.output.utf8)), "\(json.output)")
        #expect(report.worker.group == fleet.topics.prefix)
        #expect(report.phase == "running")
        #expect(report.totals["accepted"] ?? 0 >= 2)
        #expect(report.index.tokens >= 1)
        #expect(!report.partitions.isEmpty)
        for output in [lines.output, json.output] {
            #expect(!output.contains(token.hex))
            #expect(!output.contains("PRIVATE KEY"))
        }
    }

    @Test func `several workers are a table, and one that does not answer is named`() async throws {
        let url = "http://127.0.0.1:\(try await fleet.adminPort(of: worker))"
        let both = try await fleet.run(["status", url, String(url.dropFirst("http://".count))])
        #expect(both.status == 0)
        both.expect("phase", "events/s", "running")
        let one = try await fleet.run(["status", url, "http://127.0.0.1:1"])
        #expect(one.status == 1)
        one.expect("running", "http://127.0.0.1:1: ", "check that the worker runs")
        let none = try await fleet.run(["status", "127.0.0.1:1"])
        #expect(none.status == 69)
        let other = try await fleet.run(["status", "http://127.0.0.1:\(worker.healthPort ?? 0)"])
        #expect(other.status == 69)
        other.expect("answers 404 and not what was asked")
        let wrong = try await fleet.run(["status", "ftp://worker"])
        #expect(wrong.status == 64)
    }

    @Test func `status --watch asks again every second until it is interrupted`() async throws {
        let port = try await fleet.adminPort(of: worker)
        let log = fleet.directory.appending(path: "watch.log").path
        let watch = try FleetProcess(
            "watch", program: try Fleet.program,
            arguments: ["status", "--watch", "http://127.0.0.1:\(port)"], log: log, input: "")
        try await fleet.eventually("three answers") {
            watch.output.components(separatedBy: "throughput ").count > 3
        }
        watch.signal(SIGINT)
        #expect(try await watch.finish(within: .seconds(10)) == -SIGINT)
        #expect(!watch.output.contains("\u{1B}"), "this is no terminal")
    }

    @Test func `beyond loopback only who shows the token is answered`() async throws {
        let token = "0123456789abcdef-\(UUID().uuidString)"
        let file = fleet.directory.appending(path: "admin-token")
        try "\(token)\n".write(to: file, atomically: true, encoding: .utf8)
        try "another-token-0123\n".write(
            to: file.appendingPathExtension("other"), atomically: true, encoding: .utf8)
        let guarded = try fleet.processes.startWorker(variables: [
            WorkerConfiguration.variable(of: "admin.host"): "0.0.0.0",
            WorkerConfiguration.variable(of: "admin.tokenFile"): file.path,
        ])
        let port = try await fleet.adminPort(of: guarded)
        let bearer = ["--header", "Authorization: Bearer \(token)"]
        for path in ["/status", "/log-level", "/nothing", "/explain"] {
            #expect(try await fleet.request(path, port: port).status == 401, "\(path)")
            let wrong = ["--header", "Authorization: Bearer \(token)x"]
            #expect(try await fleet.request(path, port: port, wrong).status == 401, "\(path)")
        }
        #expect(try await fleet.request("/status", port: port, bearer).status == 200)
        #expect(try await fleet.request("/nothing", port: port, bearer).status == 404)

        let url = "http://127.0.0.1:\(port)"
        let without = try await fleet.run(["status", url])
        #expect(without.status == 78)
        without.expect("asks for a token: name its file (--token-file)")
        let other = try await fleet.run(["status", url, "--token-file", file.path + ".other"])
        #expect(other.status == 78)
        other.expect("refuses the token")
        let right = try await fleet.run(["status", url, "--token-file", file.path])
        #expect(right.status == 0, "\(right.output)")
        // The port and the token of the configuration.
        let own = try await fleet.run(
            ["status", "--config", fleet.configurationFile.path],
            variables: [
                WorkerConfiguration.variable(of: "admin.port"): "\(port)",
                WorkerConfiguration.variable(of: "admin.tokenFile"): file.path,
            ])
        #expect(own.status == 0, "\(own.output)")
        for text in [guarded.output, right.output, own.output] { #expect(!text.contains(token)) }
        guarded.signal(SIGTERM)
        #expect(try await guarded.finish(within: .seconds(30)) == 0)
    }

    @Test func `the admin listener refuses what is not served, and other hosts`() async throws {
        let port = try await fleet.adminPort(of: worker)
        #expect(try await fleet.request("/metrics", port: port).status == 404)
        let post = try await fleet.request("/status", port: port, ["--data", "x"])
        #expect(post.status == 405)
        let head = try await fleet.request("/status", port: port, ["--head"])
        #expect(head.status == 200)
        #expect(!head.body.contains("{"))
        let host = try await fleet.request(
            "/status", port: port, ["--header", "Host: rebound.example"])
        #expect(host.status == 421)
    }

    @Test func `the log's level is changed until the next reload`() async throws {
        let port = try await fleet.adminPort(of: worker)
        let put = { (level: String) in
            try await fleet.request(
                "/log-level", port: port, ["--request", "PUT", "--data", level])
        }
        #expect(try await put("{\"level\":\"debug\"}").body.contains("{\"level\":\"debug\"}"))
        #expect(worker.output.contains("an operator has changed the level of the log"))
        #expect(try await put("loud").status == 400)
        let level = try await fleet.request("/log-level", port: port)
        #expect(level.body.contains("{\"level\":\"debug\"}"))
        worker.signal(SIGHUP)
        try await fleet.eventually("the reload") {
            worker.output.contains("the configuration is reloaded")
        }
        #expect(try await fleet.request("/log-level", port: port).body.contains("info"))
    }
}
