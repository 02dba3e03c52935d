// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import FleetKit
import Foundation
import PushModel
import RecordFormats
import Testing

/// Topics of other programs, as their bindings say, from a producer to the log of APNs.
@Suite(
    .serialized,
    .fleet(
        TestPlan(bindings: [
            .orders: """
            {app: \(TestApp.home), subject: "order-{/orderId}", \
            subjects: ["customer-{/customer/id}"], \
            when: [{field: /status, in: [shipped, delivered]}, {field: /total, above: 0}], \
            missing: skip, push: {collapseID: "order-{/orderId}", priority: 5, \
            payload: {aps: {alert: \
            {title-loc-key: ORDER_SENT, loc-args: ["{/orderId}", "{/carrier}"]}, \
            badge: {$field: /unread, type: integer, default: 0}}, text: "<{/note}>"}}}
            """,
            .cloudEvents: """
            {app: \(TestApp.home), decode: debezium, subject: "door-{/id}", \
            when: [{field: /state, changed: true}]}
            """,
        ])))
struct `Bound topics` {
    private func device(_ subject: String, in fleet: Fleet) throws -> TestToken {
        let token = TestToken()
        var draft = RegistrationDraft(
            environment: .production, app: TestApp.home, installation: UUID().uuidString,
            handler: "Device")
        draft.targets = [
            .init(
                tokenClass: .device, token: token.bytes,
                shows: [.init(kind: nil, subjects: [subject])])
        ]
        try fleet.register(draft)
        return token
    }

    @Test func `a record that meets the conditions is a push of its fields for each subject`()
        async throws
    {
        let fleet = try #require(Fleet.current)
        let order = try device("order-7", in: fleet)
        let customer = try device("customer-c1", in: fleet)
        try await fleet.registrationsApplied()
        func write(_ status: String, _ total: String, _ note: String) async throws {
            try await fleet.kcat(
                .orders, key: "k",
                value: #"{"orderId":7,"customer":{"id":"c1"},"status":"\#(status)","#
                    + #""total":\#(total),"carrier":"DHL","note":"\#(note)"}"#, partition: 1)
        }
        try await write("draft", "9.5", "a draft")
        try await write("shipped", "0", "of nothing")
        try await write("shipped", "9.5", #"\"},\"aps\":{\"alert\":\"x"#)
        try await fleet.eventually("a push for each subject") {
            fleet.accepted(order) >= 1 && fleet.accepted(customer) >= 1
        }
        for token in [order, customer] {
            let requests = fleet.requests(for: token)
            #expect(requests.count == 1)
            let request = try #require(requests.first)
            #expect(request["apns-push-type"] == "alert" && request["apns-priority"] == "5")
            #expect(request["apns-collapse-id"]?.isEmpty == false)
            #expect(
                String(decoding: request.body, as: UTF8.self)
                    == #"{"aps":{"alert":{"title-loc-key":"ORDER_SENT","loc-args":[7,"DHL"]},"#
                    + #""badge":0},"text":"<\"},\"aps\":{\"alert\":\"x>"}"#)
        }
        #expect(try await fleet.deadLetterLog.readToEnd().isEmpty)
    }

    @Test func `a change of a row in Debezium's envelope is a push, and a tombstone is none`()
        async throws
    {
        let fleet = try #require(Fleet.current)
        let (door, other) = (TestToken(), TestToken())
        try fleet.register(.controls([door], show: ["door-42"]))
        try fleet.register(.controls([other], show: ["door-43"]))
        try await fleet.registrationsApplied()
        func row(_ id: Int, _ state: String) -> String { #"{"id":\#(id),"state":"\#(state)"}"# }
        func change(_ operation: String, _ before: String, _ after: String) -> String {
            #"{"payload":{"op":"\#(operation)","before":\#(before),"after":\#(after)}}"#
        }
        for value in [
            change("r", "null", row(43, "open")), change("u", row(43, "open"), row(43, "open")),
            nil, change("u", row(42, "open"), row(42, "closed")),
        ] { try await fleet.kcat(.cloudEvents, key: "k", value: value, partition: 1) }
        try await fleet.eventually("the push of the change") { fleet.accepted(door) == 1 }
        #expect(fleet.accepted(other) == 0, "it was read before")
        #expect(try await fleet.deadLetterLog.readToEnd().isEmpty)
    }
}
