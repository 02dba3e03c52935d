// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Glibc
import Testing

@Suite(.serialized, .timeLimit(.minutes(5)))
enum `Nothing is lost` {
    @Suite(.serialized, .fleet(.underTraffic(workers: 1)))
    struct `with one worker` {
        @Test func `when it is killed in mid-traffic and started again`() async throws {
            let fleet = try #require(Fleet.current)
            let traffic = try Traffic(fleet, subjects: 200, tokensEach: 3)
            let worker = try #require(fleet.workers.first)
            try await traffic.begin()
            let emission = Task { try await traffic.emit(4000) }
            try await traffic.accepted(3000)
            worker.signal(SIGKILL)
            #expect(try await worker.finish(within: .seconds(60)) == -SIGKILL)
            try await emission.value
            // Otherwise the crash came too late to show anything.
            #expect(try !traffic.audit().lost.isEmpty)
            try fleet.startWorker()
            let audit = try await traffic.delivered()
            print("after kill -9: \(audit.accepted) accepted, \(audit.duplicates) duplicates")
            #expect(audit.owed == 4004 * 3)
        }
    }

    @Suite(.serialized, .fleet(.underTraffic(workers: 2)))
    struct `with two workers` {
        @Test func `when one is killed and its partitions pass to the other`() async throws {
            let fleet = try #require(Fleet.current)
            let traffic = try Traffic(fleet, subjects: 200, tokensEach: 3)
            try await fleet.eventually("both workers to have partitions") {
                fleet.workers.allSatisfy { $0.output.contains("partitions=") }
            }
            try await traffic.begin()
            let emission = Task { try await traffic.emit(4000) }
            try await traffic.accepted(3000)
            fleet.workers[0].signal(SIGKILL)
            #expect(try await fleet.workers[0].finish(within: .seconds(60)) == -SIGKILL)
            try await emission.value
            let audit = try await traffic.delivered()
            print("after a takeover: \(audit.accepted) accepted, \(audit.duplicates) duplicates")
            #expect(audit.owed == 4004 * 3)
        }
    }
}

@Suite struct `The audit of the two logs` {
    private let tokens = ["door": ["aa", "bb"]]
    private let events = [10, 20].map {
        EventLine(
            t: $0, topic: "events", partition: 0, offset: $0 / 10, app: "a", subject: "door")
    }

    private func answer(_ token: String, at t: Int64, id: String, status: Int = 200) -> AnswerLine {
        AnswerLine(
            t: t, conn: 1, env: "production", topic: "a", token: token, apnsID: id, status: status,
            reason: "")
    }

    @Test func `one push may answer for several events`() {
        let answers = [answer("aa", at: 21, id: "1"), answer("bb", at: 22, id: "2")]
        let audit = DeliveryAudit(events: events, answers: answers, tokens: tokens)
        #expect(audit.owed == 4)
        #expect(audit.lost.isEmpty)
        #expect(audit.duplicates == 0)
    }

    @Test func `a push before the event, a rejected one and none at all are losses`() {
        let answers = [
            answer("aa", at: 19, id: "1"), answer("bb", at: 22, id: "2", status: 503),
        ]
        let audit = DeliveryAudit(events: events, answers: answers, tokens: tokens)
        #expect(
            audit.lost.map { "\($0.offset) \($0.token)" } == ["1 bb", "2 aa", "2 bb"])
    }

    @Test func `dropping one accepted line is one loss`() {
        var answers = [answer("aa", at: 21, id: "1"), answer("bb", at: 12, id: "2")]
        answers.append(answer("bb", at: 23, id: "3"))
        #expect(DeliveryAudit(events: events, answers: answers, tokens: tokens).lost.isEmpty)
        answers.removeLast()
        let audit = DeliveryAudit(events: events, answers: answers, tokens: tokens)
        #expect(audit.lost.count == 1)
        #expect(audit.lost.first?.token == "bb")
    }

    @Test func `the same push accepted twice is a duplicate`() {
        let answers = [answer("aa", at: 21, id: "1"), answer("aa", at: 22, id: "1")]
        #expect(DeliveryAudit(events: [], answers: answers, tokens: [:]).duplicates == 1)
    }
}
