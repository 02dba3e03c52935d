// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import PushModel
import RecordFormats
import Testing

/// `lamplighter deferred` on pushes that this suite defers, while a worker owns them.
@Suite(
    .serialized,
    .fleet(TestPlan(registrationGrace: .milliseconds(200))))
struct `Deferred pushes on the command line` {
    private let fleet: Fleet
    private let writer: DeferredWriter
    private let subject = "deferred-\(UUID().uuidString)"

    init() throws {
        fleet = try #require(Fleet.current)
        writer = try DeferredWriter(fleet)
    }

    private func key(_ token: TestToken, _ app: String = TestApp.home) -> String {
        "production/\(app).push-type.controls/\(token.hex)"
    }

    private func push(after delay: Duration) -> DeferredPush {
        var push = DeferredPush(
            notBefore: Now.current.wall + delay, expiresAt: Now.current.wall + .seconds(7200),
            tokenClass: .control)
        push.subject = Array(subject.utf8)
        return push
    }

    private func list(_ arguments: String...) async throws -> CommandResult {
        try await fleet.command(["deferred", "list", "--subject", subject] + arguments)
    }

    /// Tokens of these apps that show the subject: its owner could not name it otherwise when it
    /// writes a record again.
    private func registered(_ apps: String...) async throws -> [TestToken] {
        let tokens = apps.map { _ in TestToken() }
        for (token, app) in zip(tokens, apps) {
            try fleet.register(.controls([token], show: [subject], app: app))
        }
        try await fleet.registrationsApplied()
        return tokens
    }

    @Test func `list prints what waits, the next one first, by its filters, and never a token`()
        async throws
    {
        let tokens = try await registered(TestApp.home, TestApp.garden, TestApp.home, TestApp.home)
        let first = try writer.write(key(tokens[0]), push(after: .seconds(900)))
        // Written again by its owner: the header names where it was written first.
        try writer.write(key(tokens[0]), push(after: .seconds(900)), endedOffset: first)
        try writer.write(key(tokens[1], TestApp.garden), push(after: .seconds(600)))
        // One that has ended, and one that was deferred again after what the tombstone ends.
        try writer.write(key(tokens[2]), push(after: .seconds(600)))
        try writer.write(key(tokens[2]), nil)
        let old = try writer.write(key(tokens[3]), push(after: .seconds(300)))
        try writer.write(key(tokens[3]), push(after: .seconds(1200)))
        try writer.write(key(tokens[3]), nil, endedOffset: old)
        func listed(_ arguments: String...) async throws -> [Int] {
            let result = try await fleet.command(
                ["deferred", "list", "--subject", subject] + arguments)
            #expect(result.status == 0)
            for token in tokens { #expect(!result.output.contains(token.hex)) }
            return result.lines.compactMap { line in
                tokens.firstIndex { line.contains($0.name) }
            }
        }
        #expect(try await listed() == [1, 0, 3])
        #expect(try await listed("--limit", "1") == [1])
        #expect(try await list("--limit", "1").lines.last == "3 pushes, 0 of them due")
        #expect(try await listed("--app", TestApp.garden) == [1])
        #expect(try await listed("--class", "widget") == [])
        #expect(try await listed("--environment", "development") == [])
        #expect(try await listed("--token-id", tokens[3].name) == [3])
        #expect(try await listed("--due") == [])
        let json = try await list("--json").objects()
        #expect((json.last?["summary"] as? [String: Int])?["pushes"] == 3)
        #expect(json.first?["subject"] as? String == subject)
        #expect(json.first?["pushType"] as? String == "controls")
    }

    /// Without a Kafka, whose absence would be told instead if the topic were read first.
    @Test(arguments: ["list", "send", "drop"])
    func `a mistake in the filter is told before the topic is read`(command: String) async throws {
        let kafka = ["bootstrap: \(fleet.bootstrap)": "bootstrap: 127.0.0.1:1"]
        for (option, value, words) in [
            ("--class", "phone", "'phone' is not a class of token"),
            ("--environment", "staging", "'staging' is not an environment"),
            ("--token-id", "00", "is not the 16 digits of a token"),
        ] {
            let result = try await fleet.command(
                ["deferred", command, option, value], changing: kafka)
            #expect(result.status == 64)
            result.expect(words)
        }
    }

    @Test func `send lets pushes go at once, and their waits end`() async throws {
        let tokens = try await registered(TestApp.home, TestApp.home)
        for token in tokens { try writer.write(key(token), push(after: .seconds(900))) }
        let none = try await fleet.command(["deferred", "send"])
        #expect(none.status == 64)
        none.expect("name what is meant")
        let dry = try await fleet.command(["deferred", "send", "--subject", subject, "--dry-run"])
        #expect(dry.lines == ["would send 2 pushes"])
        #expect(tokens.allSatisfy { fleet.accepted($0) == 0 })
        let sent = try await fleet.command(
            ["deferred", "send", "--subject", subject, "--token-id", tokens[0].name])
        #expect(sent.status == 0 && sent.lines == ["sent 1 push"])
        try await fleet.eventually("the push") { fleet.accepted(tokens[0]) == 1 }
        #expect(fleet.accepted(tokens[1]) == 0)
        for _ in 0..<30 where try await list().lines.count > 2 {
            try await Task.sleep(for: .seconds(1))
        }
        #expect(try await list().lines.last == "1 push, 0 of them due")
    }

    @Test func `drop ends pushes unsent, and the worker counts them`() async throws {
        let tokens = try await registered(TestApp.home, TestApp.home)
        // The first is not due before the command ends, however busy the machine is.
        try writer.write(key(tokens[0]), push(after: .seconds(900)))
        try writer.write(key(tokens[1]), push(after: .seconds(4)))
        let dropped = try await fleet.command(
            ["deferred", "drop", "--subject", subject, "--token-id", tokens[0].name])
        #expect(dropped.status == 0 && dropped.lines == ["dropped 1 push"])
        try await fleet.eventually("the other push") { fleet.accepted(tokens[1]) == 1 }
        #expect(fleet.accepted(tokens[0]) == 0)
        #expect(
            try await list("--token-id", tokens[0].name).lines.last == "0 pushes, 0 of them due")
        let port = try #require(fleet.workers[0].healthPort)
        try await fleet.request(
            "/metrics", port: port, until: 200, #"type="controls",outcome="dropped",reason=""} 1"#)
    }
}
