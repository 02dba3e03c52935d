// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Foundation
import Testing

/// What an operator does about an event of too many tokens, and reads in the history afterwards.
@Suite(
    .serialized,
    .fleet(TestPlan(workers: 2, registrationGrace: .milliseconds(200), fanOutMax: 4)))
struct `An event that is withheld` {
    private let fleet: Fleet

    init() throws { fleet = try #require(Fleet.current) }

    @Test func `it waits until dead-letters redrive releases it, and others go on`() async throws {
        let tokens = (0..<5).map { _ in TestToken() }
        let other = TestToken()
        for token in tokens { try fleet.register(.controls([token], show: ["crowd"])) }
        try fleet.register(.controls([other], show: ["one"]))
        try await fleet.registrationsApplied()
        try fleet.emit("crowd")
        let patience = Patience()
        var place: String?
        while place == nil {
            try #require(!patience.isOver, "no status names it")
            place = try await withheld()
        }
        try await fleet.change("one", heardBy: other)
        #expect(tokens.allSatisfy { fleet.accepted($0) == 0 })
        let result = try await fleet.command([
            "dead-letters", "redrive", "--event", try #require(place),
        ])
        result.expect("redriven 0 pushes and 1 unreadable event of 1 letter")
        try await fleet.eventually("all pushes") {
            tokens.allSatisfy { fleet.accepted($0) == 1 }
        }
        let left = try await withheld()
        #expect(left == nil)
    }

    /// The event that a worker's status names as withheld.
    private func withheld() async throws -> String? {
        for worker in fleet.workers where worker.isRunning {
            let words = try await fleet.status(of: worker).output.split(
                whereSeparator: \.isWhitespace)
            if let option = words.firstIndex(of: "--event"), option + 1 < words.count {
                return String(words[option + 1].prefix { $0 != "," })
            }
        }
        return nil
    }

    @Test func `the history says who has asked for what, and who has lifted it`() async throws {
        for arguments in [
            ["pause", "--class", "widget", "--by", "anna", "--reason", "slow backend"],
            ["resume", "--class", "widget", "--by", "ben", "--reason", "it is back"],
        ] {
            let result = try await fleet.command(arguments)
            try #require(result.status == 0, "\(result.output)")
        }
        let history = try await fleet.command(["restrictions", "--history"])
        history.expect(
            "pause  class widget  by anna  \"slow backend\"",
            "resume  class widget  by ben  \"it is back\"")
        #expect(history.lines.last == "2 changes")
        let pause = try #require(history.lines.firstIndex { $0.contains("anna") })
        let resume = try #require(history.lines.firstIndex { $0.contains("ben") })
        #expect(pause < resume)
    }

    /// A place that is written in another way than in letters would select none of them.
    @Test(arguments: ["crowd", "events/0/+412", "events/00/412"])
    func `what is no place of an event is refused`(place: String) async throws {
        let result = try await fleet.command(["dead-letters", "list", "--event", place])
        #expect(result.status == 64)
        result.expect("--event is TOPIC/PARTITION/OFFSET")
    }
}
