// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSSimulator
internal import Foundation
internal import PushModel
internal import Testing

@Suite struct `The APNs simulator's channels` {
    /// One provider token: a connection may not see several within 20 minutes.
    private static let bearer = SigningTeam.home.bearer()
    private static let stored = "c3RvcmVkLWNoYW5uZWw="
    private static let unstored = "bm90LXN0b3JlZA=="
    private static let update =
        #"{"aps":{"timestamp":1,"event":"update","content-state":{}}}"#

    private func fixture(_ change: (inout SimulatorOptions) -> Void = { _ in }) throws
        -> SimulatorFixture
    {
        try SimulatorFixture { options in
            options.channels = [(Self.stored, true), (Self.unstored, false)].map { id, stores in
                SimulatorChannel(
                    bundleID: SimulatorFixture.bundleID, environment: .production, channelID: id,
                    storesLatest: stores)
            }
            options.recordRequests = 100
            change(&options)
        }
    }

    private func request(
        _ method: String, _ path: String, _ headers: [(String, String)] = [], body: String = "",
        bearer: String = Self.bearer
    ) -> CurlRequest {
        var request = CurlRequest(bearer: bearer)
        request.method = method
        request.path = path
        request.headers = [("authorization", bearer)] + headers
        request.body = body
        return request
    }

    private func broadcast(
        _ channel: String? = Self.unstored, app: String = SimulatorFixture.bundleID,
        body: String = Self.update, changing changes: (String, String?)...
    ) -> CurlRequest {
        var request = request(
            "POST", "/4/broadcasts/apps/\(app)",
            [("apns-push-type", "liveactivity"), ("apns-expiration", "0")], body: body)
        if let channel { request = request.with("apns-channel-id", channel) }
        for (name, value) in changes { request = request.with(name, value) }
        return request
    }

    @Test func `a broadcast is judged as Apple says`() throws {
        let rows: [(name: String, status: Int, reason: String, request: CurlRequest)] = [
            ("as it should be", 200, "", broadcast()),
            (
                "stored", 200, "",
                broadcast(Self.stored, changing: ("apns-expiration", "1795241520"))
            ),
            ("no channel", 400, "MissingChannelId", broadcast(nil)),
            ("no base64", 400, "BadChannelId", broadcast("channel")),
            ("unknown", 400, "ChannelNotRegistered", broadcast("AAAA")),
            (
                "expiry without storage", 400, "BadExpirationDate",
                broadcast(changing: ("apns-expiration", "1795241520"))
            ),
            ("expiry", 400, "BadExpirationDate", broadcast(changing: ("apns-expiration", "soon"))),
            ("no type", 400, "MissingPushType", broadcast(changing: ("apns-push-type", nil))),
            ("type", 400, "InvalidPushType", broadcast(changing: ("apns-push-type", "alert"))),
            ("priority", 400, "BadPriority", broadcast(changing: ("apns-priority", "7"))),
            ("request ID", 400, "BadMessageId", broadcast(changing: ("apns-request-id", "1"))),
            (
                "suffix", 400, "TopicDisallowed",
                broadcast(app: SimulatorFixture.bundleID + ".push-type.liveactivity")
            ),
            ("another team's app", 403, "TopicMismatch", broadcast(app: "com.example.Other")),
            ("no body", 400, "PayloadEmpty", broadcast(body: "")),
            (
                "a start", 400, "BadRequestPayload",
                broadcast(body: #"{"aps":{"timestamp":1,"event":"start"}}"#)
            ),
            (
                "5121 bytes", 413, "PayloadTooLarge",
                broadcast(body: #"{"a":"\#(String(repeating: "x", count: 5113))"}"#)
            ),
            ("no token", 403, "MissingProviderToken", broadcast(changing: ("authorization", nil))),
        ]
        let fixture = try fixture()
        let answers = try fixture.curl(rows.map(\.request))
        try #require(answers.count == rows.count)
        for (row, answer) in zip(rows, answers) {
            #expect(answer.status == row.status, "\(row.name): \(answer)")
            #expect(answer.reason == row.reason, "\(row.name): \(answer)")
        }
        #expect(fixture.simulator.counts.accepted == 2)
        try #require(
            try SimulatorFixture.eventually { try fixture.logLines().count == rows.count })
        let lines = try fixture.logLines()
        #expect(lines[0].contains(#""token":"bm90LXN0b3JlZA==""#))
        #expect(lines[0].contains(#""request":"broadcast""#))
    }

    @Test func `channels are made, read, listed and deleted, up to the most an app may have`()
        throws
    {
        let base = "/1/apps/\(SimulatorFixture.bundleID)"
        let fixture = try fixture { $0.channelsMax = 3 }
        func ask(_ request: CurlRequest) throws -> CurlAnswer { try fixture.curl(request) }
        let create = request(
            "POST", base + "/channels",
            body: #"{"message-storage-policy":1,"push-type":"LiveActivity"}"#)
        let made = try ask(create)
        #expect(made.status == 201 && made.body.isEmpty)
        #expect(try ask(create).reason == "CannotCreateChannelConfig")
        let list = try ask(request("GET", base + "/all-channels"))
        struct Channels: Decodable { let channels: [String] }
        let channels = try JSONDecoder().decode(Channels.self, from: Data(list.body.utf8)).channels
        #expect(channels.count == 3 && channels.contains(Self.stored))
        let new = try #require(channels.first { $0 != Self.stored && $0 != Self.unstored })
        let read = try ask(request("GET", base + "/channels", [("apns-channel-id", new)]))
        #expect(read.status == 200)
        #expect(read.body == #"{"message-storage-policy":1,"push-type":"LiveActivity"}"#)
        let delete = request("DELETE", base + "/channels", [("apns-channel-id", new)])
        #expect(try ask(delete).status == 204)
        #expect(try ask(delete).reason == "ChannelNotRegistered")
        #expect(try ask(request("GET", base + "/channels")).reason == "MissingChannelId")
        #expect(try ask(request("PUT", base + "/channels")).status == 405)
        #expect(try ask(request("POST", base + "/channel")).reason == "BadPath")
        for (body, reason) in [
            ("", "BadRequestPayload"), (#"{"message-storage-policy":1}"#, "MissingPushType"),
            (#"{"push-type":"alert"}"#, "InvalidPushType"),
            (#"{"push-type":"LiveActivity","message-storage-policy":2}"#, "BadRequestParams"),
        ] {
            #expect(try ask(request("POST", base + "/channels", body: body)).reason == reason)
        }
        var other = request("GET", base + "/all-channels")
        other.environment = .development
        #expect(try ask(other).body == #"{"channels":[]}"#)
        // None of this is a push.
        #expect(fixture.simulator.counts.accepted == 0)
    }
}
