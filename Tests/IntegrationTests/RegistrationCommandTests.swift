// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import PushModel
import RecordFormats
import Testing

/// `lamplighter registrations` on records that this suite writes; no worker runs.
@Suite(.serialized, .fleet(TestPlan(workers: 0)))
struct `Registrations on the command line` {
    private let fleet: Fleet

    init() throws { fleet = try #require(Fleet.current) }

    private func condemn(_ token: TestToken, registeredAt: WallTime) throws -> String {
        let suppression = Suppression(
            status: 410, reason: "Unregistered", apnsTimestamp: nil, registeredAt: registeredAt)
        let key = "production/\(TestApp.home).push-type.controls/\(token.hex)"
        try fleet.write(
            to: .suppressions, key: key,
            value: String(decoding: SuppressionEncoder.value(suppression), as: UTF8.self))
        return key
    }

    /// - Returns: the record's key.
    private func register(
        _ installation: String, _ tokens: [TestToken], at time: WallTime,
        showing subjects: [String] = ["door"], handler: String = "Doors"
    ) throws -> String {
        let targets = tokens.map { token in
            let names = subjects.map { "\"\($0)\"" }.joined(separator: ",")
            return #"{"class":"control","token":"\#(token.hex)","ofALaterRelease":7,"#
                + #""shows":[{"kind":"k","subjects":[\#(names)]}]}"#
        }
        let key = "production/\(TestApp.home)/\(installation)/\(handler)"
        try fleet.write(
            to: .registrations, key: key,
            value: #"{"v":1,"registeredAt":"\#(time.rfc3339)","sequence":9007199254740993,"#
                + #""targets":["# + targets.joined(separator: ",") + "]}")
        return key
    }

    /// The last value of each key, "" for a tombstone.
    private func values(
        of keys: [String], in topic: FleetTopics.Written
    ) async throws -> [String] {
        let records = try await fleet.log(of: topic).readToEnd()
        return keys.map { key in records.last { $0.key == key }?.value ?? "" }
    }

    private func run(_ arguments: String...) async throws -> CommandResult {
        try await fleet.command(["registrations"] + arguments)
    }

    private static let early = WallTime(rfc3339: "2026-01-01T00:00:00Z")!
    private static let late = WallTime(rfc3339: "2026-02-01T00:00:00Z")!

    @Test func `collect removes what is dead, then its suppressions, and nothing the second time`()
        async throws
    {
        let (dead, revived, shared) = (TestToken(), TestToken(), TestToken())
        let suppressions = try [dead, revived, shared].map {
            try condemn($0, registeredAt: Self.early)
        }
        let living = TestToken()
        let keys = [
            try register("C1", [dead], at: Self.early),
            try register("C2", [revived], at: Self.late),
            try register("C3", [shared], at: Self.early),
            try register("C4", [shared, living], at: Self.early),
        ]
        let young = try await run("collect")
        #expect(young.status == 0 && young.lines == ["removed 0 registrations and 0 suppressions"])
        try await Task.sleep(for: .milliseconds(1200))
        let dry = try await run("collect", "--dead-for", "1s", "--dry-run")
        #expect(dry.lines.last == "would remove 2 registrations and 1 suppression")
        #expect(try await values(of: keys, in: .registrations).allSatisfy { !$0.isEmpty })
        let result = try await run("collect", "--dead-for", "1s")
        #expect(result.status == 0)
        #expect(result.lines.last == "removed 2 registrations and 1 suppression")
        result.expect("C1/Doors", "C3/Doors", dead.name)
        for token in [dead, revived, shared] { #expect(!result.output.contains(token.hex)) }
        #expect(
            try await values(of: keys, in: .registrations).map(\.isEmpty)
                == [true, false, true, false])
        // The shared token is still registered: without its suppression it would be sent pushes again.
        #expect(
            try await values(of: suppressions, in: .suppressions).map(\.isEmpty) == [
                true, false, false,
            ])
        let again = try await run("collect", "--dead-for", "1s")
        #expect(again.lines == ["removed 0 registrations and 0 suppressions"])
    }

    @Test func `forget takes an installation away with all its handlers`() async throws {
        let (mine, both) = (TestToken(), TestToken())
        let suppressions = [
            try condemn(mine, registeredAt: Self.early),
            try condemn(both, registeredAt: Self.early),
        ]
        let keys = [
            try register("F1", [mine], at: Self.late),
            try register("F1", [both], at: Self.late, handler: "Lights"),
            try register("F2", [both], at: Self.late),
        ]
        let dry = try await run("forget", "--installation", "F1", "--dry-run")
        #expect(dry.lines.last == "would remove 2 registrations and 1 suppression")
        let other = try await run(
            "forget", "--installation", "F1", "--environment", "development")
        #expect(other.lines == ["removed 0 registrations and 0 suppressions"])
        let result = try await run("forget", "--installation", "F1")
        #expect(result.lines.last == "removed 2 registrations and 1 suppression")
        #expect(
            try await values(of: keys, in: .registrations).map(\.isEmpty) == [true, true, false])
        #expect(
            try await values(of: suppressions, in: .suppressions).map(\.isEmpty) == [true, false])
    }

    @Test func `forget takes a subject out, and leaves the rest as it was`() async throws {
        let token = TestToken()
        let keys = [
            try register("S1", [token], at: Self.late, showing: ["person-1", "door-7"]),
            try register("S2", [token], at: Self.late, showing: ["person-10"]),
        ]
        let before = try await values(of: keys, in: .registrations)
        let result = try await run("forget", "--subject", "person-1")
        #expect(result.lines.last == "changed 1 registration")
        let after = try await values(of: keys, in: .registrations)
        #expect(after[1] == before[1])
        for part in [
            #""subjects":["door-7"]"#, "9007199254740993", token.hex, Self.late.rfc3339,
            #""ofALaterRelease":7"#,
        ] {
            #expect(after[0].contains(part))
        }
        #expect(!after[0].contains("person-1"))
        #expect(
            try await run("forget", "--subject", "person-1").lines.last == "changed 0 registrations"
        )
    }

    @Test func `forget by a token takes all of the installations that have it`() async throws {
        let (mine, others) = (TestToken(), TestToken())
        let keys = [
            try register("T1", [mine], at: Self.late),
            try register("T1", [TestToken()], at: Self.late, handler: "Lights"),
            try register("T2", [others], at: Self.late),
        ]
        let dry = try await run("forget", "--token-id", mine.name, "--dry-run")
        #expect(dry.lines.last == "would remove 2 registrations and 0 suppressions")
        let elsewhere = try await run(
            "forget", "--token-id", mine.name, "--environment", "development")
        #expect(elsewhere.lines.last == "removed 0 registrations and 0 suppressions")
        let result = try await fleet.command(
            ["registrations", "forget", "--token", "-"], input: mine.hex + "\n")
        #expect(result.lines.last == "removed 2 registrations and 0 suppressions")
        #expect(!result.output.contains(mine.hex))
        #expect(
            try await values(of: keys, in: .registrations).map(\.isEmpty) == [true, true, false])
    }

    @Test func `list prints what is in force by its filters, and never a token`() async throws {
        let tokens = (0..<4).map { _ in TestToken() }
        _ = try register("L1", [tokens[0]], at: Self.early, showing: ["list-a", "list-b"])
        _ = try register("L2", [tokens[1], tokens[2]], at: Self.late, showing: ["list-b"])
        _ = try register("L3", [tokens[3]], at: Self.late, showing: ["list-b"])
        try fleet.write(
            to: .registrations, key: "production/\(TestApp.home)/L3/Doors", value: nil)
        func listed(_ arguments: String...) async throws -> [Int] {
            let result = try await fleet.command(["registrations", "list"] + arguments)
            #expect(result.status == 0, "\(result.output)")
            for token in tokens { #expect(!result.output.contains(token.hex)) }
            return tokens.indices.filter { result.output.contains(tokens[$0].name) }
        }
        #expect(try await listed() == [0, 1, 2])
        #expect(try await listed("--subject", "list-a") == [0])
        #expect(try await listed("--subject", "list-b", "--json") == [0, 1, 2])
        #expect(try await listed("--before", "2026-01-15T00:00:00Z") == [0])
        #expect(try await listed("--since", "2026-01-15T00:00:00Z") == [1, 2])
        #expect(try await listed("--installation", "L2") == [1, 2])
        #expect(try await listed("--token-id", tokens[2].name) == [2])
        #expect(try await listed("--class", "widget").isEmpty)
        #expect(try await listed("--app", TestApp.garden).isEmpty)
        #expect(try await listed("--environment", "development").isEmpty)
        #expect(try await listed("--imported").isEmpty)
        let counts = try await run("list", "--count", "--subject", "list-b")
        #expect(counts.lines == ["\(TestApp.home)  production  control  3", "3 tokens"])
    }

    @Test func `export writes a file of one user's, with tokens only if it is asked to`()
        async throws
    {
        let token = TestToken()
        _ = try register("E1", [token], at: Self.late, showing: ["export-a"])
        func export(_ options: String...) async throws -> (text: String, status: Int32) {
            let path = fleet.directory.appending(path: "export-\(UUID())").path
            let arguments = ["registrations", "export", "--to", path, "--installation", "E1"]
            let result = try await fleet.command(arguments + options)
            #expect(result.lines.last == "1 token" && !result.output.contains(token.hex))
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            #expect((attributes[.posixPermissions] as? Int) == 0o600)
            let again = try await fleet.command(arguments)
            #expect(again.status == 65)
            again.expect("Name a file that does not exist")
            return (try String(contentsOfFile: path, encoding: .utf8), again.status)
        }
        let plain = try await export().text
        #expect(plain.contains(token.name) && !plain.contains(token.hex))
        let whole = try await export("--tokens").text
        #expect(whole.contains(#""token":"\#(token.hex)""#) && whole.contains("export-a"))
        let missing = try await fleet.command([
            "registrations", "export", "--to", "/no/such/folder/file",
        ])
        #expect(missing.status == 65)
    }

    @Test(arguments: [
        ["forget"], ["forget", "--installation", "A", "--subject", "B"],
        ["forget", "--token", "00fc13"], ["forget", "--token-id", "12"], ["export"],
        ["forget", "--token-id", "0123456789abcdef", "--subject", "B"],
        ["list", "--token-id", "12"], ["list", "--class", "moon"], ["list", "--since", "long"],
        ["collect", "--dead-for", "long"], ["forget", "--subject", "B", "--environment", "moon"],
    ])
    func `a slip on the command line of registrations is 64`(_ arguments: [String]) async throws {
        #expect(try await fleet.run(["registrations"] + arguments).status == 64)
    }
}
