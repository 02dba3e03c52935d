// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import HTTPListener
import LivePage
import Testing

@testable import Demo

@Suite struct `The demo's page` {
    private struct Fleet: Decodable {
        struct Worker: Decodable {
            var name: String
            var status: String
        }

        var workers: [Worker]
        var devices: String
    }

    private struct Devices: Decodable {
        var at: Double
        var accepted: [Double?]
        var total: Int
    }

    private static let page = DemoPage(
        .init(
            workerPorts: [nil, nil], acceptedAt: [nil, 1_700_000_000_123_456_789],
            installations: 3000))

    private static func answer<Answer: Decodable>(
        _ path: String, as type: Answer.Type = Answer.self
    ) async throws -> Answer {
        let answer = await page.answer(HTTPRequest(path: path))
        #expect(answer.status == 200 && answer.contentType == "application/json")
        return try JSONDecoder().decode(Answer.self, from: Data(answer.body))
    }

    @Test func `the demo's page is the worker's, with all workers to choose from`() async throws {
        let page = await Self.page.answer(HTTPRequest(path: "/"))
        #expect(page == LivePage.answer(HTTPRequest(path: "/")))
        let fleet: Fleet = try await Self.answer("/fleet")
        #expect(fleet.workers.map(\.name) == ["worker 1", "worker 2"])
        #expect(fleet.workers.map(\.status) == ["workers/1/status", "workers/2/status"])
        #expect(fleet.devices == "devices")
    }

    @Test func `before the workers start, the demo's page has none to choose from`() async throws {
        let page = DemoPage(.init(workerPorts: []))
        let answer = await page.answer(HTTPRequest(path: "/fleet"))
        #expect(answer.status == 200)
        #expect(try JSONDecoder().decode(Fleet.self, from: Data(answer.body)).workers.isEmpty)
    }

    @Test func `the status of a worker that is stuck is passed on as a status`() {
        #expect(DemoPage.isJSON(Array(#"{"v":1}"#.utf8)))
        #expect(!DemoPage.isJSON(Array("the planner does not answer\n".utf8)))
        #expect(!DemoPage.isJSON([]))
    }

    @Test func `the demo's page is told when each device was last pushed to`() async throws {
        let devices: Devices = try await Self.answer("/devices")
        #expect(devices.accepted == [nil, 1_700_000_000_123.4568])
        #expect(devices.total == 3000)
        #expect(abs(devices.at / 1000 - Date.now.timeIntervalSince1970) < 60)
    }

    @Test func `a worker that does not listen yet is said to be starting`() async {
        let answer = await Self.page.answer(HTTPRequest(path: "/workers/2/status"))
        #expect(answer.status == 503)
        #expect(String(decoding: answer.body, as: UTF8.self) == "it is starting\n")
        for path in ["/workers/0/status", "/workers/3/status", "/workers/1", "/status", "/x"] {
            #expect(await Self.page.answer(HTTPRequest(path: path)) == .notFound, "\(path)")
        }
    }
}
