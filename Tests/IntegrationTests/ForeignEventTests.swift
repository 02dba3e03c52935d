// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import FleetKit
import Foundation
import Testing

/// One worker for all that can be asked of a running one.
@Suite(.serialized, .fleet())
enum `One worker` {}

extension `One worker` {
    @Suite(.serialized) struct `reads the events of a foreign client` {
        @Test func `a worker reads events that are nothing but a key`() async throws {
            let scene = try Scene()
            try await scene.fleet.kcat(.events, key: scene.subject, value: nil)
            try await scene.hears(1)
        }

        @Test func `a worker reads events in JSON, whatever their key and headers`() async throws {
            let scene = try Scene()
            try await scene.fleet.kcat(
                .events, key: "some-entity", value: #"{"v":1,"subject":"\#(scene.subject)"}"#,
                headers: ["traceparent=00-4bf9-01", "content-type=application/json"])
            try await scene.hears(1)
        }

        @Test func `a worker reads an existing topic's events by the template of its binding`()
            async throws
        {
            let number = Int.random(in: 1_000_000...9_999_999)
            let scene = try Scene(subject: "order-\(number)")
            try await scene.fleet.kcat(
                .orders, key: "customer-3", value: #"{"orderId":\#(number),"state":"packed"}"#)
            try await scene.hears(1)
        }

        @Test func `a worker reads CloudEvents with the attributes in headers`() async throws {
            let scene = try Scene()
            let headers = [
                "ce_specversion=1.0", "ce_id=1", "ce_source=/doors", "ce_type=opened",
                "ce_subject=\(scene.subject)", "content-type=application/octet-stream",
            ]
            try await scene.fleet.kcat(
                .cloudEvents, key: "entity", value: "{not JSON, and not ours to read",
                headers: headers)
            try await scene.hears(1)
            // A kind that nobody shows: read, and for no one.
            try await scene.fleet.kcat(
                .cloudEvents, key: "entity", value: "x", headers: headers + ["ce_pushkinds=no"],
                partition: 0)
            try await scene.fleet.kcat(
                .cloudEvents, key: "entity", value: "x", headers: headers + ["ce_pushkinds=test"],
                partition: 0)
            try await scene.hears(2)
        }

        @Test func `a worker reads CloudEvents in one structured document`() async throws {
            let scene = try Scene()
            try await scene.fleet.kcat(
                .cloudEvents, key: "entity",
                value: #"{"specversion":"1.0","id":"2","source":"/doors","type":"opened","#
                    + #""subject":"\#(scene.subject)","data":{"open":true}}"#,
                headers: ["content-type=application/cloudevents+json; charset=utf-8"])
            try await scene.hears(1)
        }

        @Test func `a refused push is a dead letter with the id and the traceparent of its event`()
            async throws
        {
            let scene = try Scene()
            let fleet = scene.fleet
            let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
            try await fleet.registrationsApplied()
            fleet.simulator.perform(
                .rules([
                    ScriptedRule(
                        tokenPrefix: scene.token.hex, answer: .reason(400, "BadMessageId"))
                ]))
            defer { fleet.simulator.perform(.rules([])) }
            try await fleet.kcat(
                .events, key: scene.subject, value: #"{"id":"order-7"}"#,
                headers: ["traceparent=\(traceparent)"])
            let letters = try fleet.deadLetterLog
            try await fleet.eventually("a dead letter") {
                letters.records.contains { $0.key == scene.subject }
            }
            let record = try #require(letters.records.first { $0.key == scene.subject })
            let letter = try record.decoded(as: DeadLetterValue.self)
            #expect(letter.eventID == "order-7")
            #expect(letter.traceparent == traceparent)
        }

        @Test(arguments: [
            (FleetTopics.Written.events, #"{"v":1,"subject":"#, "invalidJSON"),
            (.events, #"{"v":2,"subject":"door"}"#, "unknownVersion"),
            (.orders, #"{"state":"packed"}"#, "missingSubject"),
            (.cloudEvents, #"{"open":true}"#, "notCloudEvent"),
        ])
        func `an event that nobody can read becomes a dead letter; its partition goes on`(
            _ topic: FleetTopics.Written, _ value: String, _ reason: String
        ) async throws {
            let scene = try Scene()
            let fleet = scene.fleet
            let key = "unreadable-\(UUID().uuidString)"
            try await fleet.kcat(topic, key: key, value: value, partition: 2)
            // The next record of the same partition.
            switch topic {
            case .cloudEvents:
                try await fleet.kcat(
                    topic, key: "entity", value: "x",
                    headers: [
                        "ce_specversion=1.0", "ce_id=1", "ce_source=/s", "ce_type=t",
                        "ce_subject=\(scene.subject)",
                    ], partition: 2)
            case .orders:
                let number = scene.subject.dropFirst("order-".count)
                try await fleet.kcat(
                    topic, key: "entity", value: #"{"orderId":"\#(number)"}"#, partition: 2)
            default: try fleet.write(to: topic, key: scene.subject, value: nil, partition: 2)
            }
            try await scene.hears(1)

            let letters = try fleet.deadLetterLog
            try await fleet.eventually("a dead letter") {
                letters.records.contains { $0.key == key }
            }
            let record = try #require(letters.records.first { $0.key == key })
            let letter = try record.decoded(as: DeadLetterValue.self)
            #expect(letter.v == 1)
            #expect(letter.reason == reason)
            #expect(letter.message?.isEmpty == false)
            #expect(letter.attempts == 0)
            #expect(letter.tokens.isEmpty)
            #expect(letter.event?.key == key)
            #expect(letter.event?.value == value)
            // Where it really is.
            let place = try await fleet.log(of: topic).readToEnd().first { $0.key == key }
            let found = try #require(place)
            #expect(
                letter.source
                    == DeadLetterValue.Source(
                        topic: fleet.topics[topic], partition: 2, offset: found.offset))
        }
    }

    /// A control that shows one subject, which nobody else does.
    private struct Scene {
        let fleet: Fleet
        let subject: String
        let token = TestToken()

        init(subject: String? = nil) throws {
            fleet = try #require(Fleet.current)
            self.subject = subject ?? "order-\(token.hex.prefix(12))"
            try fleet.register(.controls([token], show: [self.subject]))
        }

        func hears(_ pushes: Int) async throws {
            try await fleet.eventually("push \(pushes)") {
                fleet.requests(for: token).count >= pushes
            }
            #expect(fleet.requests(for: token).count == pushes)
            #expect(fleet.accepted(token) == pushes)
        }
    }
}
