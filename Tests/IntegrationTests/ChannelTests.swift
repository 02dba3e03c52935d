// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import FleetKit
import Foundation
import PushModel
import RecordFormats
import Testing

/// From a channel that a command makes to the broadcasts that it gets, and to its end.
@Suite(.serialized, .fleet())
struct `Channels from end to end` {
    private let fleet: Fleet
    private let tokens = [TestToken(), TestToken(), TestToken()]

    init() throws { fleet = try #require(Fleet.current) }

    private func channels(_ action: String, _ more: String...) async throws -> CommandResult {
        try await fleet.command(
            ["channels", action, "--environment", "production", "--app", TestApp.home] + more)
    }

    private static let started = Now.current.wall.seconds

    private func update(_ timestamp: Int, _ subject: String) async throws {
        try await fleet.kcat(
            .events, key: subject,
            value:
                #"{"payload":{"aps":{"timestamp":\#(Self.started + Int64(timestamp)),"event":"update","#
                + #""content-state":{"score":"\#(timestamp)"}}}}"#)
    }

    private func broadcasts(_ channel: String) -> [RecordedRequest] {
        fleet.simulator.recordedRequests.filter { $0["apns-channel-id"] == channel && isPush($0) }
    }

    private func isPush(_ request: RecordedRequest) -> Bool {
        request[":path"]?.hasPrefix("/4/broadcasts/") ?? false
    }

    private func registerTokens(_ subjects: [String]) throws {
        var draft = RegistrationDraft(
            environment: .production, app: TestApp.home, installation: UUID().uuidString,
            handler: "Activities")
        draft.targets = tokens.map {
            RegistrationDraft.Target(
                tokenClass: .liveActivity, token: $0.bytes,
                shows: [RegistrationDraft.Show(kind: nil, subjects: subjects)])
        }
        try fleet.register(draft)
    }

    /// The suppressions that `lamplighter suppressions list` prints.
    private func suppressions() async throws -> String {
        try await fleet.command(["suppressions", "list"]).output
    }

    @Test func `one event is one broadcast and a push to each token, until the channel is deleted`()
        async throws
    {
        // The channel is bound to one of them alone, so that the other's event cannot come to it late.
        try registerTokens(["match-8", "match-9"])
        try await fleet.registrationsApplied()
        try await update(1, "match-8")
        try await fleet.eventually("pushes to tokens") {
            tokens.allSatisfy { fleet.accepted($0) == 1 }
        }
        // Who has no channels has no connection for them.
        #expect(!fleet.workers[0].output.contains("/broadcasts"))
        var status = try await fleet.status(of: fleet.workers[0])
        #expect(!status.output.contains("for broadcasts"))

        let made = try await channels("create")
        #expect(made.status == 0, "\(made.output)")
        let channel = String(
            try #require(
                made.lines.first { ChannelID(base64: String($0)) != nil }, "\(made.output)"))
        #expect(try await channels("list").lines.contains(Substring(channel)))
        #expect(try await channels("read", "--channel", channel).lines == ["none"])

        // The command that creation prints.
        let hint = try #require(made.output.firstRange(of: "lamplighter register "))
        let words = made.output[hint.upperBound...].prefix { $0 != "\n" }
            .replacing("'", with: "").replacing("SUBJECT", with: "match-9").split(separator: " ")
        let bound = try await fleet.command(["register"] + words.map(String.init))
        #expect(bound.status == 0, "\(bound.output)")
        try await fleet.registrationsApplied()

        try await update(2, "match-9")
        try await fleet.eventually("a broadcast") { broadcasts(channel).count == 1 }
        try await fleet.eventually("pushes to tokens") {
            tokens.allSatisfy { fleet.accepted($0) == 2 }
        }
        let request = try #require(broadcasts(channel).first)
        #expect(request.answer.status == 200)
        #expect(request[":method"] == "POST")
        #expect(request[":path"] == "/4/broadcasts/apps/\(TestApp.home)")
        #expect(request["apns-push-type"] == "liveactivity")
        #expect(request["apns-expiration"] == "0" && request["apns-priority"] == "10")
        #expect(request["apns-request-id"]?.count == 36)
        for name in ["apns-topic", "apns-id", "apns-collapse-id"] { #expect(request[name] == nil) }
        #expect(String(decoding: request.body, as: UTF8.self).contains(#""score":"2""#))
        try await fleet.statusSays("for broadcasts: open", of: fleet.workers[0])
        #expect(fleet.workers[0].output.contains("pool=home/production/broadcasts"))

        // A complaint is believed once the route has shown to be healthy.
        for number in 3...10 {
            try await update(number, "match-9")
            try await fleet.eventually("a broadcast and pushes to tokens") {
                broadcasts(channel).count == number - 1
                    && tokens.allSatisfy { fleet.accepted($0) == number }
            }
        }

        #expect(try await channels("delete", "--channel", channel).lines == ["deleted \(channel)"])
        let again = try await channels("delete", "--channel", channel)
        #expect(again.status == 1)
        again.expect("400 ChannelNotRegistered", "has no such channel in production")
        try await update(11, "match-9")
        try await fleet.eventually("a refused broadcast") { broadcasts(channel).count == 10 }
        #expect(broadcasts(channel)[9].answer.reason == "ChannelNotRegistered")
        try await waitForSuppression()
        try await update(12, "match-9")
        try await fleet.eventually("pushes to tokens") {
            tokens.allSatisfy { fleet.accepted($0) == 12 }
        }
        #expect(broadcasts(channel).count == 10)
        status = try await fleet.status(of: fleet.workers[0])
        #expect(status.status == 0)
    }

    private func waitForSuppression() async throws {
        for _ in 0..<100 {
            if try await suppressions().contains("ChannelNotRegistered") { return }
            try await Task.sleep(for: .milliseconds(200))
        }
        Issue.record("no suppression of a channel that was deleted")
    }

    @Test
    func `a channel that stores the latest broadcast says so, and one of another app is not found`()
        async throws
    {
        let made = try await channels("create", "--storage", "latest")
        let channel = String(
            try #require(made.lines.first { $0.hasSuffix("==") }, "\(made.output)"))
        #expect(try await channels("read", "--channel", channel).lines == ["latest"])
        let other = try await fleet.command([
            "channels", "read", "--environment", "development", "--app", TestApp.home, "--channel",
            channel,
        ])
        #expect(other.status == 1)
        other.expect("has no such channel in development")
        let wrong = try await channels("read", "--channel", "no channel")
        #expect(wrong.status == 64)
        let unserved = try await fleet.command([
            "channels", "list", "--environment", "production", "--app", "com.example.Nobody",
        ])
        #expect(unserved.status == 78)
        unserved.expect("no credential serves com.example.Nobody in production")
    }
}
