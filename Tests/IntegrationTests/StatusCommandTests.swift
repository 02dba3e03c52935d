// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import Glibc
import LinuxIO
import Testing
import Worker

/// The command as a process, and what it asks, with curl.
@Suite(.serialized, .fleet())
struct `The status command` {
    private let fleet: Fleet
    private let worker: FleetProcess

    init() throws {
        fleet = try #require(Fleet.current)
        worker = fleet.workers[0]
    }

    private func status(_ arguments: String...) async throws -> CommandResult {
        try await fleet.run(["status"] + Fleet.patiently + arguments)
    }

    @Test func `status says how a worker does, in lines and as JSON`() async throws {
        let token = TestToken()
        try fleet.register(.controls([token], show: ["door"]))
        try await fleet.registrationsApplied()
        try await fleet.statusSays("running: ", of: worker)
        // What took how long is told of the last seconds, which a slow command may be later than.
        var lines: CommandResult
        let patience = Patience()
        repeat {
            try await fleet.change("door", heardBy: token)
            lines = try await fleet.status(of: worker)
        } while !lines.output.contains("round trip p50 ") && !patience.isOver
        #expect(lines.status == 0)
        lines.expect(
            "worker ", "group \(fleet.topics.prefix)", "partitions ", "throughput ", "latency ",
            "round trip p50 ", " queued, ", " in flight", "index ", " accepted")

        var json: CommandResult
        var report: StatusReport
        repeat {
            json = try await fleet.status(of: worker, ["--json"])
            #expect(json.status == 0)
            #expect(json.lines.count == 1)
            report = try #require(StatusReport(json: Array(json.output.utf8)), "\(json.output)")
            // An answer may be a fifth of a second old.
        } while report.totals["accepted"] ?? 0 < 2 && !patience.isOver
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
        let both = try await status(url, String(url.dropFirst("http://".count)))
        #expect(both.status == 0)
        both.expect("phase", "events/s", "running")
        let one = try await status(url, "http://127.0.0.1:1")
        #expect(one.status == 1)
        one.expect("running", "http://127.0.0.1:1: ", "check that the worker runs")
        let none = try await status("127.0.0.1:1")
        #expect(none.status == 69)
        let other = try await status("http://127.0.0.1:\(worker.healthPort ?? 0)")
        #expect(other.status == 69)
        other.expect("answers 404 and not what was asked")
        let wrong = try await status("ftp://worker")
        #expect(wrong.status == 64)
        let port = try await status("39017")
        #expect(port.status == 64)
        port.expect("write 127.0.0.1:39017")
        let secure = try await status(url.replacing("http:", with: "https:"))
        #expect(secure.status == 69)
        secure.expect("answers without TLS", "write \(url)")
    }

    @Test func `status says so where the worker has no place left for this address`() async throws {
        let port = try await fleet.adminPort(of: worker)
        var refused: CommandResult
        var held: [OpenConnection] = []
        let patience = Patience()
        repeat {
            held = try (0..<16).map { _ in
                OpenConnection(try Socket.connecting(to: .loopback(port: UInt16(port))))
            }
            refused = try await status("http://127.0.0.1:\(port)")
            // The worker closes one that has not asked for 10 s, and those of the round before take places.
        } while held.contains(where: \.hasEnded) && !patience.isOver
        #expect(refused.status == 69)
        refused.expect(
            "http://127.0.0.1:\(port) accepted the connection and closed it at once",
            "while 16 connections from this address are open")
        #expect(held.count == 16)
    }

    @Test func `status --watch asks again every second until it is interrupted`() async throws {
        let port = try await fleet.adminPort(of: worker)
        let log = fleet.directory.appending(path: "watch.log").path
        let watch = try FleetProcess(
            "watch", program: try Fleet.program,
            arguments: ["status", "--watch", "http://127.0.0.1:\(port)"] + Fleet.patiently,
            log: log, input: "")
        try await fleet.eventually("three answers") {
            watch.output.components(separatedBy: "throughput ").count > 3
        }
        watch.signal(SIGINT)
        #expect(try await watch.finish() == -SIGINT)
        #expect(!watch.output.contains("\u{1B}"), "this is no terminal")
    }

    @Test func `status --watch ends when nobody reads it any more`() async throws {
        let url = "http://127.0.0.1:\(try await fleet.adminPort(of: worker))"
        let script =
            #""$0" status --timeout 600s --watch "$1" | head -n 1; echo "${PIPESTATUS[0]}""#
        let run = try await fleet.run(
            ["-c", script, try Fleet.program, url], program: "/bin/bash")
        #expect(run.lines.last == "1")
        #expect(run.lines.count == 2)
    }

    @Test func `status --watch --json says on standard error who does not answer`() async throws {
        let url = "http://127.0.0.1:\(try await fleet.adminPort(of: worker))"
        // Only what is written to standard error.
        let script =
            #"{ "$0" status --timeout 600s --watch --json "$1" "$2" | head -n 2 >/dev/null; } 2>&1"#
        let run = try await fleet.run(
            ["-c", script, try Fleet.program, url, "http://127.0.0.1:1"], program: "/bin/bash")
        run.expect("http://127.0.0.1:1: ", "check that the worker runs")
        #expect(!run.output.contains("{"))
    }

    /// More than there are cores, since a task that blocks holds one.
    @Test func `workers that are silent are asked all at once`() async throws {
        let silent = try Socket.listening()
        let count = ProcessInfo.processInfo.activeProcessorCount + 8
        let url = "http://127.0.0.1:\(try silent.localPort())"
        let status = try FleetProcess(
            "status", program: try Fleet.program,
            arguments: ["status"] + Fleet.patiently + [String](repeating: url, count: count),
            log: fleet.directory.appending(path: "silent.log").path, input: "")
        var open: [OpenConnection] = []
        let patience = Patience()
        while open.count < count, !patience.isOver {
            if let socket = try silent.accept() { open.append(OpenConnection(socket)) }
            try await Task.sleep(for: .milliseconds(5))
        }
        #expect(open.count == count)
        let areAllHeld = !open.contains(where: \.hasEnded)
        #expect(areAllHeld)
        open.removeAll()
        #expect(try await status.finish() == 69)
    }

    private final class OpenConnection {
        private let socket: Socket

        init(_ socket: consuming Socket) { self.socket = socket }

        var hasEnded: Bool {
            var buffer = [UInt8](repeating: 0, count: 4096)
            return switch buffer.withUnsafeMutableBytes({ socket.read(into: $0) }) {
            case .bytes, .wouldBlock: false
            case .closed, .failed: true
            }
        }
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
        // 503 while the planner has no time for it, as on a busy machine.
        try await fleet.request("/status", port: port, bearer, until: 200, "{")
        #expect(try await fleet.request("/nothing", port: port, bearer).status == 404)

        let url = "http://127.0.0.1:\(port)"
        let without = try await status(url)
        #expect(without.status == 78)
        without.expect("asks for a token: name its file (--token-file)")
        let other = try await status(url, "--token-file", file.path + ".other")
        #expect(other.status == 78)
        other.expect("refuses the token")
        let watching = try await status(url, "--watch", "--json")
        #expect(watching.status == 78)
        watching.expect("asks for a token")
        let short = file.appendingPathExtension("short")
        try "short\n".write(to: short, atomically: true, encoding: .utf8)
        let invalid = try await status(url, "--token-file", short.path)
        #expect(invalid.status == 78)
        invalid.expect("--token-file is ", "which holds no token")
        let right = try await status(url, "--token-file", file.path)
        #expect(right.status == 0, "\(right.output)")
        // The port and the token of the configuration.
        let own = try await fleet.run(
            ["status", "--config", fleet.configurationFile.path] + Fleet.patiently,
            variables: [
                WorkerConfiguration.variable(of: "admin.port"): "\(port)",
                WorkerConfiguration.variable(of: "admin.tokenFile"): file.path,
            ])
        #expect(own.status == 0, "\(own.output)")
        for text in [guarded.output, right.output, own.output] { #expect(!text.contains(token)) }
        guarded.signal(SIGTERM)
        #expect(try await guarded.finish() == 0)
    }

    @Test func `the admin listener refuses what is not served, and other hosts`() async throws {
        let port = try await fleet.adminPort(of: worker)
        #expect(try await fleet.request("/metrics", port: port).status == 404)
        let post = try await fleet.request("/status", port: port, ["--data", "x"])
        #expect(post.status == 405)
        // Before that its status is one of a worker that starts.
        let patience = Patience(.seconds(60))
        while try await fleet.request("/status", port: port).status != 200, !patience.isOver {}
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
