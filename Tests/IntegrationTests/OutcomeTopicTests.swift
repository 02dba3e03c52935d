// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import FleetKit
import Foundation
import OpenSSL
import PushModel
import Testing
import Worker

/// A worker that writes how its pushes end, on the embedded Kafka and against the APNs simulator.
@Suite(.serialized) struct `The topic of outcomes` {
    private struct Outcome: Decodable {
        var tokenID: String
        var apnsID: String
        var outcome: String
        var status: Int?
        var reason: String?
        var attempts: Int
        var latencyMs: Int?
        var subject: String?
    }

    private static func id(of token: TestToken) -> String {
        Hexadecimal.encode(SHA256Digest.of(token.bytes).prefix(8))
    }

    @Test func `each push that is accepted or refused has a record, with the token's ID`()
        async throws
    {
        let fleet = try await Fleet(TestPlan(writesOutcomes: true))
        defer { fleet.end() }
        let (good, bad) = (TestToken(), TestToken())
        fleet.simulator.perform(
            .rules([
                ScriptedRule(tokenPrefix: bad.hex, answer: .reason(400, "BadDeviceToken"))
            ]))
        try fleet.register(.controls([good, bad], show: ["door"]))
        try await fleet.registrationsApplied()
        try await fleet.change("door", heardBy: good)

        let log = try fleet.outcomeLog
        func outcomes(of token: TestToken) throws -> [Outcome] {
            try log.records.filter { $0.key == Self.id(of: token) }.map {
                try $0.decoded(as: Outcome.self)
            }
        }
        try await fleet.eventually("both records") {
            try outcomes(of: good).count == 1 && outcomes(of: bad).count == 1
        }
        let (accepted, rejected) = (try outcomes(of: good)[0], try outcomes(of: bad)[0])
        #expect(accepted.outcome == "accepted" && accepted.status == 200)
        #expect(rejected.outcome == "rejected" && rejected.status == 400)
        #expect(accepted.reason == nil && rejected.reason == "BadDeviceToken")
        for (outcome, token) in [(accepted, good), (rejected, bad)] {
            #expect(outcome.tokenID == Self.id(of: token) && outcome.subject == "door")
            #expect(outcome.attempts == 1 && outcome.latencyMs ?? -1 >= 0)
            #expect(fleet.requests(for: token).map { $0["apns-id"] } == [outcome.apnsID])
        }
        for record in log.records {
            let value = try #require(record.value)
            #expect(!value.contains(good.hex) && !value.contains(bad.hex))
        }
        let worker = try #require(fleet.workers.first)
        // The records are in the topic before the worker has read that.
        try await fleet.statusSays(
            "outcomes     \(fleet.topics.outcomes): \(log.records.count) written", of: worker)
        let told = try await fleet.statusReport(of: worker)?.outcomes
        #expect(told?.written ?? 0 >= 2 && told?.noRoom == 0 && told?.refused == 0)
    }

    @Test func `pushes go on and offsets are committed while the topic is missing`() async throws {
        let fleet = try await Fleet(TestPlan(writesOutcomes: true))
        defer { fleet.end() }
        guard fleet.broker != nil else { return }
        let token = TestToken()
        try fleet.register(.controls([token], show: ["door"]))
        try await fleet.registrationsApplied()
        // Kafka knows it no more: UNKNOWN_TOPIC_OR_PART. The next worker's clients have not heard of it.
        try await fleet.tellKafka("topicerr \(fleet.topics.outcomes) 3")
        try await fleet.replaceWorker()
        for _ in 0..<3 { try await fleet.change("door", heardBy: token) }
        let worker = try #require(fleet.workers.last)
        try await fleet.statusSays("Outcomes of pushes are not written, and ", of: worker)
        // Half a minute after the first.
        try await fleet.statusSays(": 0 written, ", of: worker)
        try await fleet.change("door", heardBy: token)
        let positions = try fleet.positions()
        try await fleet.eventually("the commit") {
            try fleet.lags(positions).allSatisfy { $0 == 0 }
        }
        try await fleet.eventually("the line") {
            worker.output.contains("outcomes of pushes are not written")
        }
        let outcomes = try await fleet.statusReport(of: worker)?.outcomes
        #expect(outcomes?.written == 0 && outcomes?.refused ?? 0 > 0)
        // It stops as one that has nothing to wait for.
        worker.signal(SIGTERM)
        #expect(try await worker.finish() == 0)
        #expect(!worker.output.contains("Kafka has not acknowledged all records"))
    }
}
