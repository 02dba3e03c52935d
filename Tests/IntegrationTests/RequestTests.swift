// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import FleetKit
import Foundation
import OpenSSL
import PushModel
import RecordFormats
import Testing

@Suite(.serialized)
enum `The requests that APNs receives` {
    @Suite(.serialized, .fleet(TestPlan(transport: "nghttp2")))
    struct `sent by nghttp2` {
        @Test func `the requests that nghttp2 sends are exactly the four of the contract`()
            async throws
        {
            try await FourRequests().sendAndExpect()
        }
    }

    @Suite(.serialized, .fleet(TestPlan(transport: "curl")))
    struct `sent by libcurl` {
        @Test func `the requests that libcurl sends are exactly the four of the contract`()
            async throws
        {
            try await FourRequests().sendAndExpect()
        }
    }
}

/// A control, a widget and an app that show one door, and what APNs is to receive when it changes.
/// The samples are Apple's, of "Updating controls locally and remotely" and "Updating widgets with
/// WidgetKit push notifications", with the rest as the contract's wire defaults have it.
private struct FourRequests {
    private let control = TestToken(
        "00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0")
    private let widget = TestToken()
    private let device = TestToken()
    private let changed = #"{"aps":{"content-changed":true}}"#
    private let alertBody =
        #"{"aps":{"alert":{"title":"Door","body":"It is open"},"sound":"default"},"door":42}"#

    func sendAndExpect() async throws {
        let fleet = try #require(Fleet.current)
        try register(fleet)
        try await plainEvent(fleet)
        try await payloads(fleet)
        // Whatever the requests before left behind: a plain event is as it was.
        try fleet.emit("door-43")
        try await fleet.eventually("a widget's second push") { fleet.accepted(widget) == 2 }
        expectChange(fleet.requests(for: widget)[1], widget, "widgets")
        // Nothing besides: eight requests were owed, and each was made once.
        #expect(fleet.simulator.recordedRequests.count == 8)
        #expect(fleet.simulator.counts.rejected == 0)
    }

    private func register(_ fleet: Fleet) throws {
        var draft = RegistrationDraft(
            environment: .production, app: TestApp.home, installation: "6F1C",
            handler: "GarageControls")
        draft.targets = [
            .init(
                tokenClass: .control, token: control.bytes,
                shows: [.init(kind: "com.example.garageDoor", subjects: ["door-42"])])
        ]
        try fleet.register(draft)
        draft.handler = "Widgets"
        draft.targets = [
            .init(
                tokenClass: .widget, token: widget.bytes,
                shows: [.init(kind: "com.example.doors", subjects: ["door-42", "door-43"])])
        ]
        try fleet.register(draft)
        draft.handler = "App"
        draft.targets = [
            .init(
                tokenClass: .device, token: device.bytes,
                shows: [.init(kind: nil, subjects: ["door-42"])])
        ]
        draft.targets[0].hearsChanges = true
        try fleet.register(draft)
    }

    private func plainEvent(_ fleet: Fleet) async throws {
        let before = Now.current.wall.seconds
        try fleet.emit("door-42")
        try await fleet.eventually("three pushes") {
            [control, widget, device].allSatisfy { fleet.accepted($0) == 1 }
        }
        let after = Now.current.wall.seconds
        for (token, name) in [(control, "controls"), (widget, "widgets")] {
            expectChange(try #require(fleet.requests(for: token).first), token, name)
        }
        let request = try #require(fleet.requests(for: device).first)
        expectBackground(request, body: #"{"aps":{"content-available":1}}"#, before, after)
    }

    /// Payloads go to the device only: data by a background push, what is shown by an alert.
    private func payloads(_ fleet: Fleet) async throws {
        var event = EventDraft()
        event.subject = "door-42"
        let before = Now.current.wall.seconds
        let data = #"{"aps":{"content-available":1},"message":"m-17"}"#
        event.payload = Array(data.utf8)
        try fleet.emit(event)
        try await fleet.eventually("a background push") { fleet.accepted(device) == 2 }
        event.payload = Array(alertBody.utf8)
        try fleet.emit(event)
        try await fleet.eventually("an alert") { fleet.accepted(device) == 3 }
        try fleet.emit(event)
        try await fleet.eventually("the same alert again") { fleet.accepted(device) == 4 }
        event.collapseID = "door-42-news"
        event.priority = 5
        try fleet.emit(event)
        try await fleet.eventually("an alert with a collapse id") { fleet.accepted(device) == 5 }
        let after = Now.current.wall.seconds
        let requests = fleet.requests(for: device)
        expectBackground(requests[1], body: data, before, after)
        for request in requests[2...] { expectAlert(request, before, after) }
        // Of its own event each, so that the second does not replace the first.
        let collapseIDs = requests[2...].map { $0["apns-collapse-id"] ?? "" }
        #expect(Set(collapseIDs).count == 3)
        #expect(collapseIDs.last == "door-42-news")
        #expect(requests[2...].map { $0["apns-priority"] } == ["10", "10", "5"])
        #expect(Set(requests.map { $0["apns-id"] }).count == 5)
    }

    private func expectChange(_ request: RecordedRequest, _ token: TestToken, _ type: String) {
        expect(
            request, token,
            [
                ("apns-push-type", type), ("apns-topic", "com.example.Home.push-type.\(type)"),
                ("apns-id", nil), ("apns-priority", "10"), ("apns-expiration", "0"),
            ], body: changed)
    }

    private func expectBackground(
        _ request: RecordedRequest, body: String, _ before: Int64, _ after: Int64
    ) {
        expect(
            request, device,
            [
                ("apns-push-type", "background"), ("apns-topic", "com.example.Home"),
                ("apns-id", nil), ("apns-priority", "5"), ("apns-expiration", nil),
            ], body: body)
        expectAnHour(request, before, after)
    }

    private func expectAlert(_ request: RecordedRequest, _ before: Int64, _ after: Int64) {
        expect(
            request, device,
            [
                ("apns-push-type", "alert"), ("apns-topic", "com.example.Home"), ("apns-id", nil),
                ("apns-priority", nil), ("apns-expiration", nil), ("apns-collapse-id", nil),
            ], body: alertBody)
        expectAnHour(request, before, after)
        #expect((1...64).contains(request["apns-collapse-id"]?.utf8.count ?? 0))
    }

    /// The deadline of an hour; the second that an event takes may be missing from its life.
    private func expectAnHour(_ request: RecordedRequest, _ before: Int64, _ after: Int64) {
        let expiration = request["apns-expiration"].flatMap { Int64($0) } ?? 0
        #expect((before + 3599...after + 3600).contains(expiration))
    }

    /// Every header in order, the pseudo-headers in any; a value of nil is looked at elsewhere.
    private func expect(
        _ request: RecordedRequest, _ token: TestToken, _ apns: [(String, String?)], body: String
    ) {
        let pseudo: [String: String] = [
            ":method": "POST", ":scheme": "https", ":authority": "localhost",
            ":path": "/3/device/\(token.hex)",
        ]
        let names = request.headers.map(\.name)
        // HTTP/2 leaves their order open, and libcurl's releases differ.
        #expect(Set(names.prefix(pseudo.count)) == Set(pseudo.keys))
        #expect(Array(names.dropFirst(pseudo.count)) == ["authorization"] + apns.map(\.0))
        for (name, value) in pseudo { #expect(request[name] == value) }
        for case (let name, let value?) in apns { #expect(request[name] == value) }
        #expect(String(decoding: request.body, as: UTF8.self) == body)
        #expect(request["apns-id"]?.wholeMatch(of: uuidOfVersion8) != nil)
        let bearer = ProviderTokenText(request["authorization"])
        #expect(bearer?.header == ["alg": "ES256", "kid": SigningTeam.home.keyID])
        #expect(bearer?.issuer == SigningTeam.home.teamID)
        #expect(bearer?.isSigned(by: .home) == true)
    }

    private var uuidOfVersion8: Regex<Substring> {
        /[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/
    }
}
