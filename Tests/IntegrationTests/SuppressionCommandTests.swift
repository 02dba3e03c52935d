// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import PushModel
import RecordFormats
import Testing

/// `lamplighter suppressions` on suppressions that this suite writes; no worker runs.
@Suite(.serialized, .fleet(TestPlan(workers: 0)))
struct `Suppressions on the command line` {
    private let fleet: Fleet

    init() throws { fleet = try #require(Fleet.current) }

    /// - Returns: the record's key.
    @discardableResult
    private func condemn(
        _ token: TestToken, app: String = TestApp.home, environment: String = "production",
        reason: String = "Unregistered"
    ) throws -> String {
        let suppression = Suppression(
            status: reason == "BadDeviceToken" ? 400 : 410, reason: reason, apnsTimestamp: nil,
            registeredAt: WallTime(milliseconds: 1))
        let key = "\(environment)/\(app).push-type.controls/\(token.hex)"
        try fleet.write(
            to: .suppressions, key: key,
            value: String(decoding: SuppressionEncoder.value(suppression), as: UTF8.self))
        return key
    }

    /// Whether the last record of each key is a suppression.
    private func stands(_ keys: [String]) async throws -> [Bool] {
        let records = try await fleet.log(of: .suppressions).readToEnd()
        return keys.map { key in records.last { $0.key == key }?.value != nil }
    }

    private func run(_ arguments: String..., input: String = "") async throws -> CommandResult {
        try await fleet.command(["suppressions"] + arguments, input: input)
    }

    @Test func `list prints what stands, by its filters, and never a token`() async throws {
        let tokens = (0..<4).map { _ in TestToken() }
        try condemn(tokens[0], app: TestApp.garden)
        try condemn(tokens[1], app: TestApp.garden, environment: "development")
        try condemn(tokens[2], app: TestApp.garden, reason: "BadDeviceToken")
        let revoked = try condemn(tokens[3], app: TestApp.garden)
        try fleet.write(to: .suppressions, key: revoked, value: nil)
        func listed(_ arguments: String...) async throws -> Set<Int> {
            let result = try await fleet.command(
                ["suppressions", "list", "--app", TestApp.garden] + arguments)
            #expect(result.status == 0)
            for token in tokens { #expect(!result.output.contains(token.hex)) }
            return Set(tokens.indices.filter { result.output.contains(tokens[$0].name) })
        }
        #expect(try await listed() == [0, 1, 2])
        #expect(try await listed("--environment", "production") == [0, 2])
        #expect(try await listed("--reason", "BadDeviceToken") == [2])
        #expect(try await listed("--since", "1h") == [0, 1, 2])
        #expect(try await listed("--since", "2100-01-01T00:00:00Z") == [])
        #expect(try await listed("--json") == [0, 1, 2])
        let json = try await run("list", "--app", TestApp.garden, "--json").objects()
        #expect((json.last?["summary"] as? [String: Int])?["suppressions"] == 3)
        #expect(json.dropLast().allSatisfy { $0["apnsTopic"] as? String != nil })
    }

    @Test func `revoke takes back the suppression on a token by its digits`() async throws {
        let (token, other) = (TestToken(), TestToken())
        let keys = [try condemn(token), try condemn(other)]
        let dry = try await run("revoke", "--token-id", token.name, "--dry-run")
        #expect(dry.status == 0 && dry.lines.last == "would revoke 1 suppression")
        #expect(try await stands(keys) == [true, true])
        let result = try await run("revoke", "--token-id", token.name)
        #expect(result.status == 0 && result.lines.last == "revoked 1 suppression")
        result.expect(token.name)
        #expect(!result.output.contains(token.hex))
        #expect(try await stands(keys) == [false, true])
        let again = try await run("revoke", "--token-id", token.name)
        #expect(again.status == 0 && again.lines == ["revoked 0 suppressions"])
    }

    @Test func `revoke takes back those of an app in one environment`() async throws {
        let keys = [
            try condemn(TestToken(), app: TestApp.other),
            try condemn(TestToken(), app: TestApp.other, environment: "development"),
            try condemn(TestToken()),
        ]
        let scope = ["--app", TestApp.other, "--environment", "production"]
        let none = try await fleet.command(
            ["suppressions", "revoke"] + scope + ["--since", "2100-01-01T00:00:00Z"])
        #expect(none.lines == ["revoked 0 suppressions"])
        let result = try await fleet.command(
            ["suppressions", "revoke"] + scope + ["--since", "1h"])
        #expect(result.lines.last == "revoked 1 suppression")
        #expect(try await stands(keys) == [false, true, true])
    }

    @Test func `revoke reads a token from standard input and shows it nowhere`() async throws {
        let (token, other) = (TestToken(), TestToken())
        let keys = [
            try condemn(token), try condemn(token, environment: "development"),
            try condemn(other),
        ]
        let result = try await run(
            "revoke", "--token", "-", "--environment", "production",
            input: token.hex.uppercased() + "\n")
        #expect(result.lines.last == "revoked 1 suppression")
        #expect(!result.output.lowercased().contains(token.hex))
        #expect(try await stands(keys) == [false, true, true])
    }

    @Test(arguments: [
        ["revoke"], ["revoke", "--app", TestApp.home], ["revoke", "--environment", "production"],
        ["revoke", "--token", "00ff"], ["revoke", "--token-id", "00ff"],
        ["list", "--environment", "moon"], ["list", "--since", "soon"],
    ])
    func `a slip on the command line of suppressions is 64`(_ arguments: [String]) async throws {
        #expect(try await fleet.run(["suppressions"] + arguments).status == 64)
    }

    @Test func `a suppression for an app that nobody serves is 78`() async throws {
        let result = try await run("list", "--app", "com.example.Gone")
        #expect(result.status == 78)
        result.expect("com.example.Gone", "apns.credentials")
    }
}
