// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSSimulator
internal import Foundation
internal import PushModel
internal import Testing

/// Rows of APNs's rules: what is wrong, the request, and what Apple's pages say to it.
private struct Row {
    let name: String
    let request: CurlRequest
    let status: Int
    let reason: String

    init(_ name: String, _ status: Int, _ reason: String, _ request: CurlRequest) {
        self.name = name
        self.request = request
        self.status = status
        self.reason = reason
    }
}

@Suite struct `The APNs simulator's validation of requests` {
    private static let good = CurlRequest()
    private static let bundleID = SimulatorFixture.bundleID

    private func expect(_ rows: [Row]) throws {
        let fixture = try SimulatorFixture()
        let answers = try fixture.curl(rows.map(\.request))
        try #require(answers.count == rows.count)
        for (row, answer) in zip(rows, answers) {
            #expect(answer.status == row.status, "\(row.name): \(answer)")
            #expect(answer.reason == row.reason, "\(row.name): \(answer)")
        }
        #expect(fixture.simulator.counts.connectionsOpened == 1)
    }

    @Test func `the simulator's rules judge method and path`() throws {
        var get = Self.good
        get.method = "GET"
        try expect([
            Row("as it should be", 200, "", Self.good),
            Row("method", 405, "MethodNotAllowed", get),
            Row("another API", 404, "BadPath", Self.good.with(path: "/4/device/ab")),
            Row("root", 404, "BadPath", Self.good.with(path: "/")),
            Row("no slash", 404, "BadPath", Self.good.with(path: "/3/deviceab")),
            Row("no token", 400, "MissingDeviceToken", Self.good.with(path: "/3/device/")),
            Row("no more", 400, "MissingDeviceToken", Self.good.with(path: "/3/device")),
            Row("not hex", 400, "BadDeviceToken", Self.good.to(token: "abcg")),
            Row("odd", 400, "BadDeviceToken", Self.good.to(token: "abc")),
            Row("32 bytes", 200, "", Self.good.to(token: String(repeating: "a1", count: 32))),
            Row("54 bytes", 200, "", Self.good.to(token: String(repeating: "a1", count: 54))),
            Row("80 bytes", 200, "", Self.good.to(token: String(repeating: "a1", count: 80))),
            Row("100 bytes", 200, "", Self.good.to(token: String(repeating: "a1", count: 100))),
            Row(
                "201 bytes", 400, "BadDeviceToken",
                Self.good.to(token: String(repeating: "a1", count: 201))),
            Row("upper case", 200, "", Self.good.to(token: SimulatorFixture.token.uppercased())),
        ])
    }

    @Test func `the simulator's rules judge push type, topic and priority`() throws {
        var twice = Self.good
        twice.headers.append(("apns-topic", "\(Self.bundleID).push-type.controls"))
        let widgets = Self.good.with("apns-push-type", "widgets")
            .with("apns-topic", "\(Self.bundleID).push-type.widgets")
        let background = Self.good.with("apns-push-type", "background")
            .with("apns-topic", Self.bundleID).to(token: "b0").with("apns-priority", "5")
        try expect([
            Row("controls", 200, "", Self.good),
            Row("no push type", 200, "", Self.good.with("apns-push-type", nil)),
            Row("type", 400, "InvalidPushType", Self.good.with("apns-push-type", "control")),
            Row("no topic", 400, "MissingTopic", Self.good.with("apns-topic", nil)),
            Row("app", 400, "TopicDisallowed", Self.good.with("apns-topic", "com.unknown")),
            Row(
                "another team's app", 400, "TopicDisallowed",
                Self.good.with("apns-topic", "com.example.Other.push-type.controls")),
            Row("suffix", 400, "BadTopic", Self.good.with("apns-topic", Self.bundleID)),
            Row("twice", 400, "DuplicateHeaders", twice),
            Row("widget push to a control", 400, "DeviceTokenNotForTopic", widgets),
            Row("widgets", 200, "", widgets.to(token: "a0")),
            Row("background", 200, "", background),
            Row(
                "alert to the same token", 200, "",
                background.with("apns-push-type", "alert").with("apns-priority", "10")
                    .with(body: #"{"aps":{"alert":"Hello"}}"#)),
            Row("loud", 400, "BadPriority", background.with("apns-priority", "10")),
            Row("loud by default", 400, "BadPriority", background.with("apns-priority", nil)),
            Row("priority 1", 200, "", Self.good.with("apns-priority", "1")),
            Row("priority 7", 400, "BadPriority", Self.good.with("apns-priority", "7")),
        ])
    }

    @Test func `the simulator's rules judge the other headers`() throws {
        let uuid = "123e4567-e89b-12d3-a456-426614174000"
        let collapse64 = String(repeating: "c", count: 64)
        try expect([
            Row("none", 200, "", Self.good.with("apns-expiration", nil)),
            Row("date", 200, "", Self.good.with("apns-expiration", "1795254823")),
            Row("word", 400, "BadExpirationDate", Self.good.with("apns-expiration", "soon")),
            Row("minus", 400, "BadExpirationDate", Self.good.with("apns-expiration", "-1")),
            Row("id", 200, "", Self.good.with("apns-id", uuid)),
            Row("short id", 400, "BadMessageId", Self.good.with("apns-id", "123e4567")),
            Row("no hex", 400, "BadMessageId", Self.good.with("apns-id", "z" + uuid.dropFirst())),
            Row("64 bytes", 200, "", Self.good.with("apns-collapse-id", collapse64)),
            Row("65", 400, "BadCollapseId", Self.good.with("apns-collapse-id", collapse64 + "c")),
        ])
    }

    /// A body of exactly so many bytes.
    private static func body(bytes: Int) -> String {
        let start = #"{"aps":{},"x":""#
        return start + String(repeating: "x", count: bytes - start.utf8.count - 2) + "\"}"
    }

    @Test func `the simulator's rules judge the payload`() throws {
        let voip = Self.good.with("apns-push-type", "voip").to(token: "f0")
            .with("apns-topic", "\(Self.bundleID).voip")
        try expect([
            Row("empty", 400, "PayloadEmpty", Self.good.with(body: "")),
            Row("no JSON", 400, "PayloadEmpty", Self.good.with(body: "{aps}")),
            Row("no object", 400, "PayloadEmpty", Self.good.with(body: "[1]")),
            Row("no aps", 400, "PayloadEmpty", Self.good.with(body: #"{"apn":{}}"#)),
            Row("aps no object", 400, "PayloadEmpty", Self.good.with(body: #"{"aps":1}"#)),
            Row(
                "Apple's trailing comma", 400, "PayloadEmpty",
                Self.good.with(body: #"{"aps":{"content-changed":true,}}"#)),
            Row("4096", 200, "", Self.good.with(body: Self.body(bytes: 4096))),
            Row("4097", 413, "PayloadTooLarge", Self.good.with(body: Self.body(bytes: 4097))),
            Row("20000", 413, "PayloadTooLarge", Self.good.with(body: Self.body(bytes: 20_000))),
            Row("voip 5120", 200, "", voip.with(body: Self.body(bytes: 5120))),
            Row("voip 5121", 413, "PayloadTooLarge", voip.with(body: Self.body(bytes: 5121))),
            Row("voip has its own keys", 200, "", voip.with(body: #"{"call":7}"#)),
        ])
    }

    @Test func `the simulator's rules keep a token to its environment`() throws {
        let fixture = try SimulatorFixture()
        var elsewhere = Self.good
        elsewhere.environment = .development
        let answers = try fixture.curl([elsewhere, Self.good, elsewhere.to(token: "aa")])
        #expect(answers.map(\.status) == [200, 400, 200])
        #expect(answers.map(\.reason) == ["", "BadDeviceToken", ""])
        // Only the development host names the push for Apple's console.
        #expect(answers.map(\.uniqueID.count) == [36, 0, 36])
    }

    @Test func `the simulator's rules echo the apns-id or make one`() throws {
        let fixture = try SimulatorFixture()
        let uuid = "123e4567-e89b-12d3-a456-426614174000"
        let answers = try fixture.curl([
            Self.good.with("apns-id", uuid), Self.good, Self.good.with("apns-priority", "0"),
        ])
        #expect(answers[0].apnsID == uuid)
        #expect(UUID(uuidString: answers[1].apnsID) != nil)
        #expect(UUID(uuidString: answers[2].apnsID) != nil)
        #expect(answers[1].apnsID != answers[2].apnsID)
        #expect(answers[0].body.isEmpty)
    }
}
