// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import PushModel
import Testing

/// `lamplighter replay`; no worker runs.
@Suite(.serialized, .fleet(TestPlan(workers: 0, allowsInstallations: true)))
struct `A replay on the command line` {
    private let fleet: Fleet

    init() throws { fleet = try #require(Fleet.current) }

    private func replay(_ arguments: String...) async throws -> CommandResult {
        try await fleet.command(
            ["replay", "--topic", fleet.topics[.events], "--from", "1h"] + arguments)
    }

    private func records(_ key: String) async throws -> [TopicRecord] {
        try await fleet.log(of: .events).readToEnd().filter { $0.key == key }
    }

    @Test func `a replay writes what is selected again, as it was`() async throws {
        let subject = "replay-\(UUID())"
        let event = #"{"v":1,"subject":"\#(subject)","id":"e1","unknown":7}"#
        try fleet.write(to: .events, key: "k-\(subject)", value: event)
        try fleet.write(to: .events, key: subject, value: nil)
        try fleet.write(to: .events, key: "other-\(subject)", value: nil)
        let dry = try await replay("--subject", subject, "--dry-run")
        #expect(dry.status == 0, "\(dry.output)")
        dry.expect("would replay 2 events")
        #expect(try await records(subject).count == 1)
        try await replay("--subject", subject).expect("replayed 2 events")
        let again = try await records("k-\(subject)")
        #expect(again.map(\.value) == [event, event])
        #expect(Set(again.map(\.partition)).count == 1)
        #expect(try await records(subject).map(\.value) == [nil, nil])
        #expect(try await records("other-\(subject)").count == 1)
        // What a replay has written is replayed as any other.
        try await replay("--subject", subject, "--json", "--dry-run").expect(#""events":4"#)
    }

    @Test func `a replay of a subject leaves out an installation of the same name`() async throws {
        let name = "replay-\(UUID())"
        try fleet.write(to: .events, key: "k-\(name)", value: #"{"v":1,"installation":"\#(name)"}"#)
        try await replay("--subject", name, "--dry-run").expect("would replay 0 events")
        try fleet.write(to: .events, key: name, value: nil)
        try await replay("--subject", name, "--dry-run").expect("would replay 1 event")
    }

    @Test func `a replay leaves out shards, what nobody reads, and other times and apps`()
        async throws
    {
        let subject = "replay-\(UUID())"
        try fleet.write(to: .events, key: subject, value: "not JSON")
        try fleet.write(
            to: .events, key: subject,
            value: #"{"v":1,"shard":{"index":0,"of":2,"topic":"t","partition":0,"offset":1}}"#)
        let result = try await replay("--subject", subject)
        result.expect("replayed 0 events; left out ", " shards", " that no worker reads")
        #expect(try await records(subject).count == 2)
        try fleet.write(to: .events, key: subject, value: nil)
        try await replay("--subject", subject, "--app", TestApp.home, "--dry-run").expect(
            "would replay 1 event")
        try await replay("--subject", subject, "--app", TestApp.garden, "--dry-run").expect(
            "would replay 0 events")
        let before = try await fleet.command([
            "replay", "--topic", fleet.topics[.events], "--from", "3h", "--to", "2h", "--dry-run",
        ])
        before.expect("would replay 0 events")
    }

    @Test(arguments: [
        ["replay"], ["replay", "--from", "yesterday"], ["replay", "--from", "1h", "--to", "2h"],
        ["replay", "--from", "1h", "--subject", ""], ["replay", "--from", "1h", "--rate", "0"],
    ])
    func `a slip on the command line of a replay is 64`(_ arguments: [String]) async throws {
        #expect(try await fleet.run(arguments).status == 64)
    }
}
