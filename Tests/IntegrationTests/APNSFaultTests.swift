// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import Checker
import Foundation
import Testing

@Suite(.serialized)
enum `Faults at APNs` {
    @Suite(
        .serialized,
        .fleet(TestPlan(transport: "nghttp2", answerDelay: .milliseconds(20))))
    struct `under nghttp2` {
        @Test(arguments: Refusal.all)
        func `a push that is refused is sent again by nghttp2`(_ refusal: Refusal) async throws {
            try await refusal.isOvercome()
        }

        @Test func `connections of nghttp2 that end take nothing with them`() async throws {
            try await nothingIsLost()
        }
    }

    @Suite(
        .serialized,
        .fleet(TestPlan(transport: "curl", answerDelay: .milliseconds(20))))
    struct `under libcurl` {
        @Test(arguments: Refusal.all)
        func `a push that is refused is sent again by libcurl`(_ refusal: Refusal) async throws {
            try await refusal.isOvercome()
        }

        @Test func `connections of libcurl that end take nothing with them`() async throws {
            try await nothingIsLost()
        }
    }

    /// An answer after which the push is owed all the same.
    struct Refusal: Sendable, CustomTestStringConvertible {
        let status: UInt16
        let reason: String
        /// How often it is seen before APNs comes to its senses.
        let times: Int

        static let all = [
            Refusal(status: 503, reason: "ServiceUnavailable", times: 3),
            Refusal(status: 429, reason: "TooManyRequests", times: 1),
        ]

        var testDescription: String { "\(status) \(reason)" }

        func isOvercome() async throws {
            let fleet = try #require(Fleet.current)
            let (refused, witness) = (TestToken(), TestToken())
            let (subject, other) = (
                "busy-\(refused.hex.prefix(8))", "quiet-\(refused.hex.prefix(8))"
            )
            try fleet.register(.controls([refused], show: [subject]))
            try fleet.register(.controls([witness], show: [other]))
            try await fleet.registrationsApplied()
            fleet.simulator.perform(
                .rules([ScriptedRule(tokenPrefix: refused.hex, answer: .reason(status, reason))]))
            defer { fleet.simulator.perform(.rules([])) }
            try fleet.emit(subject)
            try await fleet.eventually("\(times) tries") {
                fleet.requests(for: refused).count >= times
            }
            // It waits alone.
            try await fleet.change(other, heardBy: witness)
            #expect(fleet.accepted(refused) == 0)
            fleet.simulator.perform(.rules([]))
            try await fleet.eventually("the push") { fleet.accepted(refused) == 1 }
            let requests = fleet.requests(for: refused)
            #expect(requests.dropLast().allSatisfy { $0.answer.status == status })
            // The same push each time.
            #expect(Set(requests.map { $0["apns-id"] }).count == 1)
            #expect(Set(requests.map(\.body)).count == 1)
        }
    }

    /// Ends connections by every means while pushes are in flight, and judges by both logs.
    static func nothingIsLost() async throws {
        let fleet = try #require(Fleet.current)
        // About each subject there is one event: no later push makes up for one that is lost.
        let traffic = try Traffic(fleet, subjects: 1500, tokensEach: 3)
        try await traffic.begin()
        let opened = fleet.simulator.counts.connectionsOpened
        let emission = Task { try await traffic.emit(1500) }
        try await cut(fleet)
        // Few refusals: libcurl 7.88 gives up the whole connection for each.
        let faults: [SimulatorCommand] = [
            .goAway(reason: nil, streamsBelow: 20), .refuseStreams(5),
            .goAway(reason: "Shutdown", streamsBelow: 0),
        ]
        for fault in faults {
            let before = fleet.simulator.counts.accepted
            try await traffic.accepted(before + 200)
            fleet.simulator.perform(fault)
        }
        try await cut(fleet)
        try await emission.value
        let suppression = try await traffic.delivered()
        #expect(suppression.obligations == 1504 * 3)
        // Each of the four ended a connection that was in use; what was in flight was sent again.
        #expect(fleet.simulator.counts.connectionsOpened >= opened + 4)
        #expect(fleet.simulator.counts.streamsRefused > 0)
    }

    /// Resets the connections when APNs has pushes before it that it has not looked at.
    private static func cut(_ fleet: Fleet) async throws {
        fleet.simulator.perform(.stall(true))
        let before = fleet.simulator.counts.unanswered
        try await fleet.eventually("unanswered pushes") {
            fleet.simulator.counts.unanswered > before
        }
        fleet.simulator.perform(.resetConnections)
        fleet.simulator.perform(.stall(false))
    }
}
