// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Synchronization
import Testing

@testable import LamplighterClientCore

@Suite struct `Sending what waits` {
    @Test func `puts each snapshot under its path, the oldest first`() async throws {
        let fixture = try ClientFixture()
        try fixture.client.register(.widgets, targets: [.door(1)])
        try fixture.client.register(.device, targets: [.door(2)])
        try fixture.client.registerControls(["Doors": [.door(3)], "Lights": []])
        #expect(await fixture.client.send())
        let base = "/v1/apps/com.example.Garage/environments/development/installations/"
        let installation = try fixture.client.installation()
        #expect(
            fixture.transport.requests.map(\.url.path) == [
                "\(base)\(installation)/widgets/default", "\(base)\(installation)/device/default",
                "\(base)\(installation)/controls",
            ])
        #expect(fixture.transport.requests.allSatisfy { $0.method == "PUT" })
        #expect(fixture.transport.requests[0].headers["Content-Type"] == "application/json")
        #expect(fixture.transport.sequences == fixture.transport.sequences.sorted())
        #expect(try fixture.waiting().isEmpty)
    }

    @Test func `sends the body that the registrar's contract describes`() async throws {
        let fixture = try ClientFixture()
        let shown = Shown(kind: "com.example.door", subjects: ["door-42"])
        try fixture.client.register(
            .device,
            targets: [Target(token: Data([0, 0xfc]), shows: [shown], onChange: .background)])
        await fixture.client.send()
        let body = String(decoding: try #require(fixture.transport.requests[0].body), as: UTF8.self)
        let installation = try fixture.client.installation()
        #expect(
            body == """
                {"app":"com.example.Garage","class":"device","environment":"development",\
                "handler":"default","installation":"\(installation)","sequence":1780000000000,\
                "targets":[{"onChange":"background",\
                "shows":[{"kind":"com.example.door","subjects":["door-42"]}],"token":"00fc"}],"v":1}
                """)
    }

    @Test func `a control without a token is registered without one`() async throws {
        let fixture = try ClientFixture()
        try fixture.client.register(.controls, targets: [Target(token: nil, shows: [])])
        await fixture.client.send()
        let body = String(decoding: try #require(fixture.transport.requests[0].body), as: UTF8.self)
        #expect(!body.contains("token"))
    }

    @Test func `a stale sequence is raised above the stored one and sent again`() async throws {
        let stored: Int64 = 1_900_000_000_000
        let fixture = try ClientFixture { request, _ in
            request.sequence > stored ? .stored : .problem(409, "staleSequence", stored: stored)
        }
        try fixture.client.register(.widgets, targets: [.door(1)])
        #expect(await fixture.client.send())
        #expect(fixture.transport.sequences == [1_780_000_000_000, stored + 1])
        #expect(fixture.clock.sleeps.isEmpty)
    }

    @Test func `a stale snapshot that another process has replaced is not sent again`() async throws
    {
        let folder = try TemporaryFolder()
        let other = try ClientFixture(folder: folder)
        let fixture = try ClientFixture(folder: folder) { request, count in
            guard count == 0 else { return .stored }
            // The extension registers, sends and forgets a newer one while this one is on its way.
            try other.client.register(.widgets, targets: [.door(2)])
            await other.client.send()
            return .problem(409, "staleSequence", stored: other.transport.sequences[0])
        }
        try fixture.client.register(.widgets, targets: [.door(1)])
        #expect(await fixture.client.send())
        #expect(fixture.transport.requests.count == 1)
        #expect(other.transport.requests.last?.snapshot?.content == .targets([.door(2)]))
    }

    @Test func `a registrar that always calls it stale is not asked for ever`() async throws {
        let fixture = try ClientFixture { request, _ in
            .problem(409, "staleSequence", stored: request.sequence + 1)
        }
        try fixture.client.register(.widgets, targets: [.door(1)])
        #expect(await !fixture.client.send(patience: 0.5))
        #expect(fixture.transport.requests.count == 4)
        #expect(try fixture.waiting().count == 1)
    }

    @Test func `no sequence above the largest is tried`() async throws {
        let fixture = try ClientFixture { _, _ in
            .problem(409, "staleSequence", stored: Snapshot.sequenceMax)
        }
        try fixture.client.register(.widgets, targets: [.door(1)])
        #expect(await fixture.client.send())
        let events = await fixture.events()
        #expect(events.contains { if case .refused = $0 { true } else { false } })
    }

    @Test func `a refused credential is renewed once`() async throws {
        let fixture = try ClientFixture { request, _ in
            request.headers["Authorization"] == "Bearer 0" ? .problem(401) : .stored
        }
        try fixture.client.register(.widgets, targets: [.door(1)])
        try fixture.client.register(.device, targets: [.door(1)])
        #expect(await fixture.client.send())
        #expect(fixture.authorizer.renewals == 1)
        #expect(fixture.transport.requests.count == 3)
    }

    @Test func `a new credential that is refused too is not asked for at once again`() async throws
    {
        let fixture = try ClientFixture { _, _ in .problem(401) }
        try fixture.client.register(.widgets, targets: [.door(1)])
        #expect(await !fixture.client.send(patience: 2))
        // At once, then after 1 s; 2 s more are beyond the patience.
        #expect(fixture.authorizer.renewals == 2)
        #expect(fixture.transport.requests.count == 4)
        #expect(try fixture.waiting().count == 1)
        let events = await fixture.events()
        #expect(events.contains { if case .credentialRefused = $0 { true } else { false } })
    }

    @Test(arguments: [400, 403, 404, 405, 411, 413, 415, 422, 431])
    func `what will always be refused is set aside and reported`(_ status: Int) async throws {
        let fixture = try ClientFixture { request, _ in
            request.url.path.hasSuffix("widgets/default") ? .problem(status) : .stored
        }
        try fixture.client.register(.widgets, targets: [.door(1)])
        try fixture.client.register(.device, targets: [.door(1)])
        #expect(await fixture.client.send())
        #expect(fixture.transport.requests.count == 2)
        #expect(try fixture.waiting().isEmpty)
        let problems = await fixture.events().compactMap { event -> Int? in
            if case .refused(_, let problem) = event { problem.status } else { nil }
        }
        #expect(problems == [status])
    }

    @Test func `a handler's name that belongs to another class is a mistake, not a race`()
        async throws
    {
        let fixture = try ClientFixture { _, _ in .problem(409, "handlerOfAnotherClass") }
        try fixture.client.register(.widgets, targets: [.door(1)])
        #expect(await fixture.client.send())
        #expect(fixture.transport.requests.count == 1)
        #expect(try fixture.waiting().isEmpty)
    }

    @Test(arguments: [500, 502, 503, 504, 429, 408])
    func `a server that is away is tried again, after ever longer pauses`(_ status: Int)
        async throws
    {
        let fixture = try ClientFixture { _, count in count < 4 ? .problem(status) : .stored }
        try fixture.client.register(.widgets, targets: [.door(1)])
        #expect(await fixture.client.send(patience: 60))
        #expect(fixture.clock.sleeps == [1, 2, 4, 8])
        // The same number, so that the registrar recognises a repetition.
        #expect(Set(fixture.transport.sequences).count == 1)
    }

    @Test func `without a network it waits, and the next launch sends it`() async throws {
        let folder = try TemporaryFolder()
        let offline = try ClientFixture(folder: folder) { _, _ in throw NoNetwork() }
        try offline.client.register(.widgets, targets: [.door(1)])
        #expect(await !offline.client.send(patience: 5))
        #expect(offline.clock.sleeps == [1, 2])
        let online = try ClientFixture(folder: folder, clock: offline.clock)
        #expect(await online.client.send())
        #expect(online.transport.sequences == [offline.transport.sequences[0]])
    }

    @Test(arguments: ["120", "Thu, 28 May 2026 20:28:40 GMT"])
    func `a time that the registrar names is waited for, by the next process too`(
        _ value: String
    ) async throws {
        let folder = try TemporaryFolder()
        let fixture = try ClientFixture(folder: folder) { _, _ in
            .problem(503, headers: ["Retry-After": value])
        }
        try fixture.client.register(.widgets, targets: [.door(1)])
        #expect(await !fixture.client.send(patience: 20))
        let next = try ClientFixture(folder: folder, clock: fixture.clock)
        #expect(await !next.client.send(patience: 20))
        #expect(next.transport.requests.isEmpty)
        #expect(await next.client.send(patience: 200))
        // 120 s and a second of jitter.
        #expect(next.clock.sleeps == [121])
    }

    @Test func `a pause that a wrong clock has made endless is ignored`() async throws {
        let fixture = try ClientFixture()
        try fixture.client.register(.widgets, targets: [.door(1)])
        try fixture.client.outbox.wait(until: fixture.clock.now.addingTimeInterval(400 * 86_400))
        #expect(await fixture.client.send(patience: 5))
    }

    @Test func `a replica that is away keeps nobody else waiting`() async throws {
        let fixture = try ClientFixture { request, _ in
            request.url.path.hasSuffix("widgets/default") ? .problem(503) : .stored
        }
        try fixture.client.register(.widgets, targets: [.door(1)])
        try fixture.client.register(.device, targets: [.door(1)])
        #expect(await !fixture.client.send(patience: 0))
        #expect(try fixture.waiting().map(\.address.tokenClass) == [.widgets])
    }

    @Test func `what is registered while a request is on its way is sent as well`() async throws {
        let folder = try TemporaryFolder()
        let other = try ClientFixture(folder: folder)
        let fixture = try ClientFixture(folder: folder) { _, count in
            if count == 0 { try other.client.register(.widgets, targets: [.door(2)]) }
            return .stored
        }
        try fixture.client.register(.widgets, targets: [.door(1)])
        await fixture.client.send()
        #expect(try fixture.waiting().map(\.content) == [.targets([.door(2)])])
        await fixture.client.send()
        #expect(
            fixture.transport.requests.map(\.snapshot?.content) == [
                .targets([.door(1)]), .targets([.door(2)]),
            ])
    }

    @Test func `two callers at once do not send everything twice`() async throws {
        let fixture = try ClientFixture { _, _ in
            try await Task.sleep(nanoseconds: 20_000_000)
            return .stored
        }
        try fixture.client.register(.widgets, targets: [.door(1)])
        try fixture.client.register(.controls, handler: "Doors", targets: [.door(1)])
        async let first = fixture.client.send()
        async let second = fixture.client.send()
        #expect(await [first, second] == [true, true])
        #expect(fixture.transport.requests.count == 2)
    }

    @Test func `a Live Activity that has ended is deleted`() async throws {
        let fixture = try ClientFixture { _, _ in Response(status: 204) }
        try fixture.client.register(.liveActivities, handler: "activity-1", targets: [.door(1)])
        try fixture.client.remove(.liveActivities, handler: "activity-1")
        #expect(await fixture.client.send())
        #expect(fixture.transport.requests.map(\.method) == ["DELETE"])
        #expect(fixture.transport.requests.first?.body == nil)
    }

    @Test func `what is registered after forgetting belongs to another installation`() async throws
    {
        let fixture = try ClientFixture()
        let before = try fixture.client.installation()
        try fixture.client.register(.widgets, targets: [.door(1)])
        try fixture.client.forget()
        try fixture.client.register(.widgets, targets: [.door(2)])
        let after = try fixture.client.installation()
        #expect(before != after)
        #expect(await fixture.client.send())
        #expect(fixture.transport.requests.map(\.method) == ["DELETE", "PUT"])
        #expect(fixture.transport.requests[0].url.lastPathComponent == before)
        #expect(fixture.transport.requests[1].url.path.contains(after))
    }
}
