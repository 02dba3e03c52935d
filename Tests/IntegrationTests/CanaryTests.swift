// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import FleetKit
import PushModel
import RecordFormats
import Testing

@Suite(.fleet(TestPlan(writesCanaries: true)))
struct `A worker with canaries` {
    @Test func `sees them come through to a dead token, which it keeps`() async throws {
        let fleet = try #require(Fleet.current)
        let worker = try #require(fleet.workers.first)
        let token = TestToken()
        try fleet.register(.controls([token], show: ["lamplighter-canary"]))
        fleet.simulator.perform(.rules([.gone(token, at: Now.current.wall)]))
        try await fleet.eventually("three that came through") {
            fleet.requests(for: token).count >= 3
        }
        #expect(fleet.requests(for: token).allSatisfy { $0.answer.status == 410 })
        try await fleet.statusSays("the latest: APNs answered 410", of: worker)
        #expect(
            try fleet.suppressionLog.records.allSatisfy { $0.key?.hasSuffix(token.hex) != true })
    }
}
