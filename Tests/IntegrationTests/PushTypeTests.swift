// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import FleetKit
import Foundation
import PushModel
import Testing

/// The only channel that there is at this suite's APNs.
private let channelID = "dHN0LXNyY2gtY2hubA=="

/// Carries out the rows of docs/events.md.
@Suite(
    .serialized,
    .fleet(
        TestPlan(
            addedPushType: SimulatorPushType(
                name: "signage", topicSuffix: ".push-type.signage"),
            channels: [
                SimulatorChannel(
                    bundleID: TestApp.home, environment: .production, channelID: channelID)
            ])))
struct `Every push type` {
    private struct Row {
        let type: String
        let target: String
        let event: String

        var isForChannels: Bool { target.contains(#""class":"channel""#) }

        var payload: JSON? { JSON(event)?.members?["payload"] }
    }

    @Test func `every row of the page of events becomes the push that it says`() async throws {
        let fleet = try #require(Fleet.current)
        let rows = try Self.rows()
        #expect(Set(rows.map(\.type)) == Set(PushType.builtIn.map(\.name) + ["signage"]))
        for (number, row) in rows.enumerated() {
            let (token, subject) = (TestToken(), "subject-\(number)")
            try await register(row, token, subject, in: fleet)
            // What other classes are sent must not reach this one.
            try await fleet.kcat(
                .events, key: subject, value: row.event == "null" ? nil : row.event)
            func requests() -> [RecordedRequest] {
                row.isForChannels
                    ? fleet.simulator.recordedRequests.filter { $0["apns-channel-id"] == channelID }
                    : fleet.requests(for: token)
            }
            try await fleet.eventually("a push of type \(row.type)") {
                requests().count { $0.answer.status == 200 } == 1
            }
            let request = try #require(requests().first)
            let suffix =
                PushType.builtIn.first { $0.name == row.type }?.topicSuffix ?? ".push-type.signage"
            #expect(request["apns-push-type"] == row.type)
            #expect(request["apns-topic"] == (row.isForChannels ? nil : TestApp.home + suffix))
            try checkHeaders(of: request, row)
            let body = JSON(String(decoding: request.body, as: UTF8.self))
            let empty = PushType.builtIn.first { $0.name == row.type }?.emptyBody
            #expect(body == row.payload ?? empty.flatMap { JSON($0) })
        }
        #expect(fleet.simulator.counts.rejected == 0)
    }

    /// What the record says of priority and expiration, else what the push type has by default.
    private func checkHeaders(of request: RecordedRequest, _ row: Row) throws {
        let type = PushType.builtIn.first { $0.name == row.type }
        let priority = JSON(row.event)?.members?["priority"]
        #expect(JSON(request["apns-priority"] ?? "") == priority ?? JSON("\(type?.priority ?? 10)"))
        switch type?.expiration ?? .immediate {
        case .immediate: #expect(request["apns-expiration"] == "0")
        case .none: #expect(request["apns-expiration"] == nil)
        case .deadline:
            let expiration = try #require(request["apns-expiration"].flatMap { Int64($0) })
            #expect((3000...3600).contains(expiration - Now.current.wall.seconds))
        }
    }

    @Test func `a Live Activity's start and update go to tokens of their own`() async throws {
        let fleet = try #require(Fleet.current)
        let rows = try Self.rows().filter { $0.type == "liveactivity" && !$0.isForChannels }
        let (starting, running) = (TestToken(), TestToken())
        try await register(rows[0], starting, "match-9", in: fleet)
        try await register(rows[1], running, "match-9", in: fleet)
        for row in rows { try await fleet.kcat(.events, key: "match-9", value: row.event) }
        try await fleet.eventually("three pushes") {
            fleet.accepted(starting) == 1 && fleet.accepted(running) >= 1
                && fleet.requests(for: running).contains {
                    String(decoding: $0.body, as: UTF8.self).contains("\"end\"")
                }
        }
        #expect(
            String(decoding: fleet.requests(for: starting)[0].body, as: UTF8.self)
                .contains("\"start\""))
        for request in fleet.requests(for: running) {
            #expect(!String(decoding: request.body, as: UTF8.self).contains("\"start\""))
        }
    }

    private func register(
        _ row: Row, _ token: TestToken, _ subject: String, in fleet: Fleet
    ) async throws {
        let target = row.target.replacing("door-42", with: subject)
            .replacing(
                "{\"class\"",
                with: "{\"token\":\"\(row.isForChannels ? channelID : token.hex)\",\"class\"")
        try await fleet.kcat(
            .registrations, key: "production/\(TestApp.home)/\(UUID().uuidString)/test",
            value: "{\"v\":1,\"targets\":[\(target)]}")
    }

    /// The event with the page's instants as if it had been written now: they must be near the record's
    /// time.
    private static func ofNow(_ event: String) -> String {
        event.replacing(/17952[0-9]{5}/) { match in
            "\(Int64(match.0)! - 1_795_241_520 + started)"
        }
    }

    private static let started = Now.current.wall.seconds

    private static func rows() throws -> [Row] {
        let page = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "docs/events.md")
        let text = try String(contentsOf: page, encoding: .utf8)
        let table = text.split(separator: "<!-- rows -->\n")[1].split(separator: "\n\n")[0]
        return table.split(separator: "\n").dropFirst(2).map { line in
            let cells = line.split(separator: "|").map {
                $0.trimmingCharacters(in: CharacterSet(charactersIn: " `"))
            }
            return Row(type: cells[0], target: cells[1], event: Self.ofNow(cells[2]))
        }
    }
}

/// A JSON value that can be compared.
private struct JSON: Equatable {
    private let value: NSObject

    init?(_ text: String) {
        let options: JSONSerialization.ReadingOptions = .fragmentsAllowed
        guard
            let value = try? JSONSerialization.jsonObject(with: Data(text.utf8), options: options)
                as? NSObject
        else { return nil }
        self.value = value
    }

    private init(_ value: NSObject) { self.value = value }

    var members: [String: JSON]? {
        (value as? [String: NSObject])?.mapValues { JSON($0) }
    }
}
