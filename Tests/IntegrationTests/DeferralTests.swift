// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import Foundation
import Glibc
import Testing

/// Pushes that must wait longer than `delivery.holdMax` wait in Kafka, whatever becomes of workers.
@Suite(.serialized, .timeLimit(.minutes(3)), .fleet(FleetPlan(settle: "200ms", holdMax: "2s")))
struct `Deferred to Kafka` {
    /// Tells the simulator to refuse this token until the result is thrown away.
    private func refuse(_ token: TestToken, on fleet: Fleet) {
        fleet.simulator.perform(
            .rules([
                ScriptedRule(
                    tokenPrefix: token.hex, answer: .reason(503, "ServiceUnavailable"))
            ]))
    }

    private func records(of token: TestToken, on fleet: Fleet) async throws -> [LoggedRecord] {
        try await OperatorTopics(fleet).deferred { $0.contains(token.hex) }
    }

    @Test func `a push survives every worker in the deferred topic, and is sent by the next`()
        async throws
    {
        let fleet = try #require(Fleet.current)
        let (token, witness) = (TestToken(), TestToken())
        try fleet.register(.controls([token], show: ["late"]))
        try fleet.register(.controls([witness], show: ["prompt"]))
        try await fleet.registrationsApplied()
        refuse(token, on: fleet)
        try fleet.emit("late")
        var deferred: [LoggedRecord] = []
        try await fleet.eventually("tries") { fleet.requests(for: token).count >= 3 }
        for _ in 0..<100 where deferred.isEmpty {
            deferred = try await records(of: token, on: fleet)
            try await Task.sleep(for: .milliseconds(100))
        }
        #expect(deferred.first?.value?.contains(#""subject":"late""#) == true)
        // Others are not kept waiting.
        try await fleet.change("prompt", heardBy: witness)
        for worker in fleet.workers {
            worker.signal(SIGKILL)
            _ = try await worker.finish(within: .seconds(60))
        }
        #expect(fleet.accepted(token) == 0)
        fleet.simulator.perform(.rules([]))
        try fleet.startWorker()
        try await fleet.eventually("the push", within: .seconds(60)) { fleet.accepted(token) == 1 }
        let ids = Set(fleet.requests(for: token).map { $0["apns-id"] })
        #expect(ids.count == 1, "whoever sends it")
        for _ in 0..<100 {
            if try await records(of: token, on: fleet).last?.value == nil { return }
            try await Task.sleep(for: .milliseconds(100))
        }
        Issue.record("no null ends the wait")
    }
}
