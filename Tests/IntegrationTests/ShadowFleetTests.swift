// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import Glibc
import OpenSSL
import PushModel
import Testing

extension TestToken {
    /// The SHA-256 of its bytes, in hexadecimal.
    fileprivate var sha256: String { Hexadecimal.encode(SHA256Digest.of(bytes)) }
}

/// A worker that sends and a shadow of it, both with the same topics.
@Suite(.serialized) struct `A shadow beside a fleet that sends` {
    private static func shadow(_ fleet: Fleet, log: URL) throws -> FleetProcess {
        try fleet.processes.startWorker(variables: [
            WorkerConfiguration.variable(of: "delivery.mode"): "shadow",
            WorkerConfiguration.variable(of: "delivery.shadowLog"): log.path,
            WorkerConfiguration.variable(of: "kafka.group"): "\(fleet.topics.prefix)-shadow",
        ])
    }

    private static func lines(_ log: URL) -> [Substring] {
        let text = try? String(contentsOf: log, encoding: .utf8)
        return text?.split(separator: "\n") ?? []
    }

    @Test func `a shadow notes what the sender sends, and sends and writes nothing`() async throws {
        let fleet = try await Fleet(TestPlan(controlGap: .seconds(5)))
        defer { fleet.end() }
        let log = fleet.directory.appending(path: "shadow.ndjson")
        let shadow = try Self.shadow(fleet, log: log)
        let token = TestToken()
        try fleet.register(.controls([token], show: ["door"]))
        try await fleet.registrationsApplied()
        try await fleet.statusSays("running: Nothing is sent: delivery.mode is shadow.", of: shadow)

        let id = token.sha256.prefix(16)
        func noted() -> Int { Self.lines(log).count { $0.contains(id) } }
        // The second push waits for its gap.
        for count in 1...2 {
            try await fleet.change("door", heardBy: token)
            try await fleet.eventually("line \(count) of the shadow") { noted() >= count }
        }
        #expect(fleet.requests(for: token).count == 2, "each push was sent once")
        let text = try String(contentsOf: log, encoding: .utf8)
        #expect(!text.contains(token.hex))
        let mode = try FileManager.default.attributesOfItem(atPath: log.path)[.posixPermissions]
        #expect(mode as? Int == 0o600)

        let compared = try await fleet.run([
            "compare", log.path, try Self.oldLog(of: fleet, token).path,
        ])
        #expect(compared.status == 0, "\(compared.output)")
        compared.expect("100 %")

        shadow.signal(SIGTERM)
        #expect(try await shadow.finish() == 0)
    }

    /// What another sender would have noted of the pushes to this token, as its SHA-256.
    private static func oldLog(of fleet: Fleet, _ token: TestToken) throws -> URL {
        let file = fleet.directory.appending(path: "old.ndjson")
        let lines = fleet.requests(for: token).map { _ in
            #"{"at":"\#(Date().formatted(.iso8601))","tokenSHA256":"\#(token.sha256)"}"#
        }
        try lines.joined(separator: "\n").write(to: file, atomically: true, encoding: .utf8)
        return file
    }

    @Test func `a shadow does not start in the group of those who send`() async throws {
        let fleet = try await Fleet(TestPlan(workers: 0))
        defer { fleet.end() }
        let result = try await fleet.run(
            ["run", "--config", fleet.configurationFile.path],
            variables: [WorkerConfiguration.variable(of: "delivery.mode"): "shadow"])
        #expect(result.status == 78)
        result.expect("kafka.group", "give the shadow a group of its own")
    }
}
