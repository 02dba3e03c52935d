// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import FleetKit
import Foundation
import Glibc
import KafkaLog
import Logging
import PushModel
import RecordFormats
import Testing

/// Pushes that must wait longer than `delivery.holdMax` wait in Kafka, whatever becomes of workers.
@Suite(
    .serialized,
    .fleet(TestPlan(registrationGrace: .milliseconds(200), holdMax: .seconds(2))))
struct `Deferred to Kafka` {
    /// Tells the simulator to refuse this token until the result is thrown away.
    private func refuse(_ token: TestToken, on fleet: Fleet) {
        fleet.simulator.perform(
            .rules([
                ScriptedRule(
                    tokenPrefix: token.hex, answer: .reason(503, "ServiceUnavailable"))
            ]))
    }

    private func records(of token: TestToken, on fleet: Fleet) async throws -> [TopicRecord] {
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
        var deferred: [TopicRecord] = []
        try await fleet.eventually("tries") { fleet.requests(for: token).count >= 3 }
        for _ in 0..<100 where deferred.isEmpty {
            deferred = try await records(of: token, on: fleet)
            try await Task.sleep(for: .milliseconds(100))
        }
        #expect(deferred.first?.value?.contains(#""subject":"late""#) == true)
        // Others are not kept waiting.
        try await fleet.change("prompt", heardBy: witness)
        // From here on nothing but the deferred record owes the push: the event is not read again.
        let positions = try fleet.positions()
        try await fleet.eventually("the commits") {
            try fleet.lags(positions).allSatisfy { $0 == 0 }
        }
        for worker in fleet.workers {
            worker.signal(SIGKILL)
            _ = try await worker.finish()
        }
        #expect(fleet.accepted(token) == 0)
        fleet.simulator.perform(.rules([]))
        try fleet.startWorker()
        try await fleet.eventually("the push") { fleet.accepted(token) == 1 }
        let ids = Set(fleet.requests(for: token).map { $0["apns-id"] })
        #expect(ids.count == 1, "whoever sends it")
        for _ in 0..<100 {
            if try await records(of: token, on: fleet).last?.value == nil { return }
            try await Task.sleep(for: .milliseconds(100))
        }
        Issue.record("no tombstone ends the wait")
    }

    /// Two workers have deferred the token, and the owner's tombstone ends only the first record.
    @Test func `a record that is written again says so to Kafka, and is not sent for ever`()
        async throws
    {
        let fleet = try #require(Fleet.current)
        let token = TestToken()
        try fleet.register(.controls([token], show: ["twice"]))
        try await fleet.registrationsApplied()
        let writer = try DeferredWriter(fleet)
        let key = "production/\(TestApp.home).push-type.controls/\(token.hex)"
        let soon = DeferredPush(
            notBefore: Now.current.wall + .seconds(3),
            expiresAt: Now.current.wall + .seconds(600), tokenClass: .control)
        let first = try writer.write(key, soon)
        let second = try writer.write(key, soon)
        try writer.write(key, nil, endedOffset: first)
        try await fleet.eventually("the push") { fleet.accepted(token) >= 1 }
        // Each round of the endless ones took a few hundredths of a second.
        try await Task.sleep(for: .seconds(3))
        #expect(fleet.accepted(token) <= 2)
        let rewritten = try await records(of: token, on: fleet).filter {
            $0.value != nil && $0.offset > second
        }
        #expect(!rewritten.isEmpty)
        #expect(rewritten.allSatisfy { $0.header == "\(second)" })
    }
}
