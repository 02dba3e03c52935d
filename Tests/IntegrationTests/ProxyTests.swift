// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import FleetKit
import Foundation
import LinuxIO
import PushModel
import Testing

@Suite(.serialized)
struct `Behind a proxy` {
    /// tinyproxy, which is not ours, asks for a password; the configuration's transport is `auto`.
    @Test func `a worker takes libcurl, its pushes arrive, and check says what is wrong`()
        async throws
    {
        let fleet = try await Fleet(TestPlan(workers: 0, transport: "auto"))
        defer { fleet.end() }
        let (port, proxy) = try await Self.tinyproxy(in: fleet.directory)
        defer { proxy.signal(SIGKILL) }
        try Self.write("http://user:swordfish@127.0.0.1:\(port)", for: fleet)

        let worker = try fleet.startWorker()
        let token = TestToken()
        try fleet.register(.controls([token], show: ["door"]))
        try await fleet.registrationsApplied()
        try await fleet.change("door", heardBy: token)
        #expect(worker.output.contains("apns.proxy is set"))
        // Every connection has come through it.
        let opened = fleet.simulator.counts.connectionsOpened
        let tunnel = "CONNECT 127.0.0.1:\(fleet.simulator.port(of: .production)!) "
        let tunnels = proxy.output.split(separator: "\n").count { $0.contains(tunnel) }
        #expect(opened > 0 && tunnels >= opened)

        let good = try await fleet.command(["check"])
        #expect(good.status == 0)
        good.expect("ok      APNs production (127.0.0.1:")
        let refused = try await fleet.command(
            ["check"], changing: ["swordfish": "anchovy", "holdMax: 10s": "holdMax: 2s"])
        #expect(refused.status == 69)
        refused.expect("APNs production (127.0.0.1:", "127.0.0.1:\(port)", "apns.proxy")
        for output in [worker.output, good.output, refused.output] {
            #expect(!output.contains("swordfish") && !output.contains("anchovy"))
        }
    }

    /// Puts the proxy into the configuration that the fleet has written.
    private static func write(_ proxy: String, for fleet: Fleet) throws {
        let text = try String(contentsOf: fleet.configurationFile, encoding: .utf8)
        try text.replacing("transport: auto", with: "transport: auto\n  proxy: \(proxy)")
            // What holds no secret at this level, holds none at any.
            .replacing("log:\n", with: "log:\n  level: trace\n")
            .write(to: fleet.configurationFile, atomically: true, encoding: .utf8)
    }

    /// Returns when it listens. What it is asked for is in its output.
    private static func tinyproxy(
        in directory: URL
    ) async throws -> (port: UInt16, process: FleetProcess) {
        let port = try Socket.listening(onLoopbackPort: 0).localPort()
        let file = directory.appending(path: "tinyproxy.conf")
        let lines = [
            "Listen 127.0.0.1", "Port \(port)", "BasicAuth user swordfish", "LogLevel Info", "",
        ]
        try lines.joined(separator: "\n").write(to: file, atomically: true, encoding: .utf8)
        let proxy = try FleetProcess(
            "tinyproxy", program: "/usr/bin/tinyproxy",
            arguments: ["-d", "-c", file.path],
            log: directory.appending(path: "tinyproxy.log").path)
        try await waitUntil("tinyproxy") { proxy.output.contains("Accepting connections") }
        return (port, proxy)
    }
}
