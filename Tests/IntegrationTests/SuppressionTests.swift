// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import FleetKit
import Foundation
import Glibc
import PushModel
import RecordFormats
import Testing

extension `One worker` {
    @Suite(.serialized) struct `believes APNs when a token is gone` {
        @Test func `a worker sends a gone token no more, and again after a new registration`()
            async throws
        {
            let fleet = try #require(Fleet.current)
            let (dead, witness) = (TestToken(), TestToken())
            let subject = "gone-\(dead.hex.prefix(8))"
            let now = Now.current.wall.milliseconds
            let (registeredAt, diedAt) = (
                WallTime(milliseconds: now - 60_000), WallTime(milliseconds: now - 30_000)
            )
            var registration = RegistrationDraft.controls([dead], show: [subject])
            registration.registeredAt = registeredAt
            try fleet.register(registration)
            try fleet.register(.controls([witness], show: [subject]))
            fleet.simulator.perform(.rules([.gone(dead, at: diedAt)]))
            defer { fleet.simulator.perform(.rules([])) }
            try await fleet.change(subject, heardBy: witness)

            let log = try fleet.suppressionLog
            let key = "production/com.example.Home.push-type.controls/\(dead.hex)"
            try await fleet.eventually("a suppression") { log.records.contains { $0.key == key } }
            let value =
                #"{"v":1,"status":410,"reason":"Unregistered","apnsTimestamp":"\#(diedAt.rfc3339)","#
                + #""registeredAt":"\#(registeredAt.rfc3339)"}"#
            #expect(log.records.filter { $0.key == key }.map(\.value) == [value])

            // APNs would take it again; it is not asked.
            fleet.simulator.perform(.rules([]))
            try await fleet.changeTwice(subject, witness: witness)
            #expect(fleet.requests(for: dead).count == 1)
            // Another worker knows it from the topic.
            try await fleet.replaceWorker()
            try await fleet.changeTwice(subject, witness: witness)
            #expect(fleet.requests(for: dead).count == 1)
            // The same registration, written again, changes nothing; a later one does.
            try fleet.register(registration)
            try await fleet.registrationsApplied()
            try await fleet.changeTwice(subject, witness: witness)
            #expect(fleet.requests(for: dead).count == 1)
            registration.registeredAt = Now.current.wall
            try fleet.register(registration)
            try await fleet.registrationsApplied()
            try await fleet.change(subject, heardBy: dead)
            #expect(fleet.requests(for: dead).map(\.answer.status).first == 410)
            #expect(fleet.requests(for: dead).dropFirst().allSatisfy { $0.answer.status == 200 })
        }

        @Test func `no token is suppressed when APNs calls every one bad: the deploy went wrong`()
            async throws
        {
            let fleet = try #require(Fleet.current)
            let tokens = (0..<12).map { _ in TestToken() }
            let subject = "wrong-\(tokens[0].hex.prefix(8))"
            try fleet.register(
                .controls(tokens, show: [subject], app: TestApp.garden, environment: .development))
            try await fleet.registrationsApplied()
            fleet.simulator.perform(.rules([ScriptedRule(answer: .reason(400, "BadDeviceToken"))]))
            defer { fleet.simulator.perform(.rules([])) }
            try fleet.emit(Self.change(of: subject))

            let letters = try fleet.deadLetterLog
            let owed = Set(tokens.map(\.hex))
            try await fleet.eventually("dead letters for all") {
                var named: Set<String> = []
                for record in letters.records where record.key == subject {
                    let letter = try record.decoded(as: DeadLetterValue.self)
                    #expect(letter.reason == "BadDeviceToken" && letter.status == 400)
                    #expect(letter.app == TestApp.garden)
                    named.formUnion(letter.tokens.map(\.token))
                }
                return named == owed
            }
            fleet.simulator.perform(.rules([]))
            // Nobody is suppressed: with the deploy put right everybody hears the next event.
            try fleet.emit(Self.change(of: subject))
            try await fleet.eventually("their pushes") {
                tokens.allSatisfy { fleet.accepted($0) == 1 }
            }
            let suppressions = try await fleet.suppressionLog.readToEnd()
            #expect(!suppressions.contains { owed.contains(Self.token(in: $0)) })
        }

        @Test func `one bad token among many good ones gets its suppression`() async throws {
            let fleet = try #require(Fleet.current)
            // The guard's window is 10 answers, of which a fifth may be bad.
            let (good, bad) = ((0..<12).map { _ in TestToken() }, TestToken())
            let (sound, broken) = ("sound-\(bad.hex.prefix(8))", "broken-\(bad.hex.prefix(8))")
            try fleet.register(.controls(good, show: [sound], app: TestApp.garden))
            try fleet.register(.controls([bad], show: [broken], app: TestApp.garden))
            try await fleet.registrationsApplied()
            fleet.simulator.perform(
                .rules([
                    ScriptedRule(tokenPrefix: bad.hex, answer: .reason(400, "BadDeviceToken"))
                ]))
            defer { fleet.simulator.perform(.rules([])) }
            try fleet.emit(Self.change(of: sound))
            try await fleet.eventually("the good ones") {
                good.allSatisfy { fleet.accepted($0) == 1 }
            }
            try fleet.emit(Self.change(of: broken))
            let log = try fleet.suppressionLog
            try await fleet.eventually("the suppression") {
                log.records.contains { Self.token(in: $0) == bad.hex }
            }
            // And one ended push, which nobody was told of otherwise.
            let letters = try fleet.deadLetterLog
            try await fleet.eventually("the dead letter") {
                letters.records.contains { $0.key == broken }
            }
        }

        private static func change(of subject: String) -> EventDraft {
            var event = EventDraft()
            event.subject = subject
            event.app = TestApp.garden
            return event
        }

        /// In hexadecimal: the last part of a suppression's key.
        private static func token(in suppression: TopicRecord) -> String {
            String((suppression.key ?? "").split(separator: "/").last ?? "")
        }
    }
}

@Suite(
    .serialized, .enabled(if: Fleet.testBootstrap == nil),
    .fleet(TestPlan(answerDelay: .milliseconds(500), registrationGrace: .milliseconds(300))))
struct `The offset of an event that causes a suppression` {
    @Test func `an offset waits for the acknowledgement of the suppression that its event caused`()
        async throws
    {
        let fleet = try #require(Fleet.current)
        let (dead, alive) = (TestToken(), TestToken())
        try fleet.register(.controls([dead], show: ["dead"]))
        try fleet.register(.controls([alive], show: ["alive"]))
        try await fleet.change("alive", heardBy: alive)
        fleet.simulator.perform(.rules([.gone(dead, at: Now.current.wall)]))
        let (before, log) = (fleet.accepted(alive), try fleet.suppressionLog)
        // One event each, in partitions of their own.
        try fleet.write([
            WrittenRecord(topic: .events, key: "dead", value: nil, partition: 1),
            WrittenRecord(topic: .events, key: "alive", value: nil, partition: 2),
        ])
        // Before the answer, which takes half a second, Kafka has stopped taking records: Produce
        // (0) fails with NOT_ENOUGH_REPLICAS (19). A producer asks again every 100 ms.
        try await fleet.tellKafka("err 0 19 30")
        try await fleet.eventually("both answers") {
            fleet.requests(for: dead).count == 1 && fleet.accepted(alive) == before + 1
        }
        // The grace period of both is over when the offset of the one that has ended is committed.
        let positions = try fleet.positions()
        try await fleet.eventually("the commit") { try fleet.lags(positions)[2] == 0 }
        #expect(try fleet.lags(positions)[1] == 1)
        #expect(log.records.isEmpty)
        fleet.workers[0].signal(SIGKILL)
        _ = try await fleet.workers[0].finish()

        try fleet.startWorker()
        try await fleet.eventually("the event to be read again") {
            fleet.requests(for: dead).count == 2
        }
        try await fleet.eventually("the suppression") { !log.records.isEmpty }
        #expect(log.records.count == 1 && log.records[0].key?.hasSuffix(dead.hex) == true)
        // The other partition had been committed.
        #expect(fleet.accepted(alive) == before + 1)
    }
}
