// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import FleetKit
import Foundation
import LinuxIO
import PushModel
import Testing

/// One team's topic has far more events than APNs takes pushes; another's has few.
@Suite(
    .serialized,
    .fleet(
        TestPlan(
            recordRequests: 100_000, answerDelay: .milliseconds(100),
            registrationGrace: .milliseconds(200), queuedMax: 4096, streamsMax: 50,
            bindings: [.cloudEvents: "{app: \(TestApp.garden), decode: json}"])))
struct `A flooded topic` {
    private static let flooded = 15_000
    private static let quiet = 12

    @Test func `the events of a quiet topic do not wait behind a flood of another`() async throws {
        let fleet = try #require(Fleet.current)
        let crowd = (0..<Self.flooded).map { _ in TestToken() }
        let quiet = (0..<Self.quiet).map { _ in TestToken() }
        try fleet.register(
            crowd.enumerated().map { .controls([$1], show: ["order-\($0)"]) }
                + quiet.enumerated().map {
                    .controls([$1], show: ["quiet-\($0)"], app: TestApp.garden)
                })
        try await fleet.registrationsApplied()
        // APNs takes 500 a second: the flood takes 30 s.
        try fleet.write(
            (0..<Self.flooded).map {
                WrittenRecord(topic: .orders, key: nil, value: #"{"orderId":\#($0)}"#)
            })
        func accepted() -> Int { fleet.simulator.counts.accepted }
        try await fleet.eventually("the flood to be under way") {
            accepted() > 1000
        }
        for (number, token) in quiet.enumerated() {
            try fleet.write(to: .cloudEvents, key: "quiet-\(number)", value: nil)
            try await fleet.eventually("the push of a quiet event") {
                fleet.accepted(token) == 1
            }
            try await Task.sleep(for: .milliseconds(200))
        }
        // Behind the flood each would have come at its end.
        let after = accepted()
        #expect(after < Self.flooded - 2000, "\(after) pushes were accepted before")
        // The marker of the registrations is one more.
        let all = Self.flooded + Self.quiet + 1
        try await fleet.eventually("the whole flood", within: .seconds(120)) { accepted() >= all }
        let port = try #require(fleet.workers[0].healthPort)
        let text = try await fleet.request("/metrics", port: port).body
        let waits = text.split(separator: "\n").first {
            $0.hasPrefix("lamplighter_topic_waits_total{topic=\"\(fleet.topics[.orders])\"")
        }
        #expect(waits?.hasSuffix(" 0") == false, "\(waits ?? "no metric")")
    }
}
