// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Testing

@testable import LamplighterClientCore

/// Against a registrar that runs: `LAMPLIGHTER_REGISTRAR_URL` is its address, `LAMPLIGHTER_REGISTRAR_KEY`
/// a key of it for the app `LAMPLIGHTER_REGISTRAR_APP` (`com.example.Garage` if that is not set).
@Suite(.enabled(if: ProcessInfo.processInfo.environment["LAMPLIGHTER_REGISTRAR_URL"] != nil))
struct `A real registrar` {
    let folder: TemporaryFolder
    let environment = ProcessInfo.processInfo.environment
    let transport = URLSessionTransport()

    init() throws { folder = try TemporaryFolder() }

    var registrar: URL { URL(string: environment["LAMPLIGHTER_REGISTRAR_URL"] ?? "")! }
    var key: String { environment["LAMPLIGHTER_REGISTRAR_KEY"] ?? "" }
    var app: String { environment["LAMPLIGHTER_REGISTRAR_APP"] ?? "com.example.Garage" }

    func client(key: String? = nil) throws -> RegistrationClient {
        let key = key ?? self.key
        return try RegistrationClient(
            .init(
                registrar: registrar, app: app, environment: .development,
                folder: folder.url.appendingPathComponent("outbox")),
            secrets: FileSecretStore(folder: folder.url.appendingPathComponent("secrets")),
            authorizer: BearerAuthorizer { _ in key })
    }

    /// What the registrar has of one handler; nil for 404.
    func stored(_ client: RegistrationClient, _ path: String) async throws -> [String: Any]? {
        let url = try registrar.appendingPathComponent(
            "v1/apps/\(app)/environments/development/installations/\(client.installation())/\(path)"
        )
        let response = try await transport.send(
            Request(method: "GET", url: url, headers: ["Authorization": "Bearer \(key)"]))
        if response.status == 404 { return nil }
        #expect(response.status == 200)
        return try JSONSerialization.jsonObject(with: response.body) as? [String: Any]
    }

    func subjects(_ stored: [String: Any]?) -> [String] {
        let targets = stored?["targets"] as? [[String: Any]] ?? []
        return targets.flatMap { $0["shows"] as? [[String: Any]] ?? [] }
            .flatMap { $0["subjects"] as? [String] ?? [] }
    }

    @Test func `stores what each class registers`() async throws {
        let client = try client()
        try client.register(.controls, handler: "Doors", targets: [.door(1)])
        try client.register(.widgets, targets: [.door(2)])
        try client.register(.device, targets: [.door(3)])
        try client.register(.liveActivities, handler: "activity-1", targets: [.door(4)])
        #expect(await client.send())
        #expect(try await subjects(stored(client, "controls/Doors")) == ["door-1"])
        #expect(try await subjects(stored(client, "widgets/default")) == ["door-2"])
        #expect(try await subjects(stored(client, "device/default")) == ["door-3"])
        #expect(try await subjects(stored(client, "liveActivities/activity-1")) == ["door-4"])
    }

    @Test func `a complete set removes the handlers that it does not name`() async throws {
        let client = try client()
        try client.register(.controls, handler: "Doors", targets: [.door(1)])
        try client.register(.controls, handler: "Lights", targets: [.door(2)])
        #expect(await client.send())
        try client.registerControls(["Doors": [.door(3), Target(token: nil, shows: [])]])
        #expect(await client.send())
        #expect(try await subjects(stored(client, "controls/Doors")) == ["door-3"])
        #expect(try await stored(client, "controls/Lights") == nil)
    }

    @Test func `a clock that was set back after a reinstallation does not lose a registration`()
        async throws
    {
        let first = try client()
        try first.register(.widgets, targets: [.door(1)])
        #expect(await first.send())
        try FileManager.default.removeItem(at: folder.url.appendingPathComponent("outbox"))
        let clock = VirtualClock(at: Date(timeIntervalSince1970: 1_000_000_000))
        let key = key
        let second = RegistrationClient(
            first.configuration, secrets: first.secrets, authorizer: BearerAuthorizer { _ in key },
            transport: transport, environment: clock.environment)
        try second.register(.widgets, targets: [.door(2)])
        #expect(await second.send())
        #expect(try await subjects(stored(second, "widgets/default")) == ["door-2"])
    }

    @Test func `forgetting removes everything of the installation`() async throws {
        let client = try client()
        try client.register(.widgets, targets: [.door(1)])
        #expect(await client.send())
        let installation = try client.installation()
        try client.forget()
        #expect(await client.send())
        try client.secrets.write("installation", Data(installation.utf8))
        #expect(try await stored(client, "widgets/default") == nil)
    }

    @Test func `refuses a wrong key, and the snapshot waits`() async throws {
        let client = try client(key: "llr_wrong")
        try client.register(.widgets, targets: [.door(1)])
        #expect(await !client.send(patience: 0))
        #expect(try client.outbox.pending(of: client.installation()).snapshots.count == 1)
    }

    @Test func `refuses a subject that is too long, and names the field`() async throws {
        let client = try client()
        let shown = Shown(kind: "k", subjects: [String(repeating: "x", count: 300)])
        try client.register(.widgets, targets: [Target(token: Data([1]), shows: [shown])])
        #expect(await client.send())
        client.report(.unanswered("end of the test"))
        for await event in client.events {
            if case .refused(_, let problem) = event {
                #expect(problem.status == 422)
                #expect(problem.field?.hasPrefix("/targets/0/shows/0/subjects/0") == true)
                return
            }
            if case .unanswered("end of the test") = event { break }
        }
        Issue.record("nothing was refused")
    }
}
