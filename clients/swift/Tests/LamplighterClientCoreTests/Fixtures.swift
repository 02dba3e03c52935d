// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Synchronization

@testable import LamplighterClientCore

/// A folder that is deleted with the value that made it.
final class TemporaryFolder: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory
            .appendingPathComponent("lamplighter-client-\(UUID().uuidString)", isDirectory: true)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(at: url) }

    /// The waiting snapshots' files, sorted by name.
    func pendingFiles() throws -> [URL] {
        let pending = url.appendingPathComponent("pending")
        return try FileManager.default.subpathsOfDirectory(atPath: pending.path).sorted()
            .filter { $0.hasSuffix(".json") }.map { pending.appendingPathComponent($0) }
    }
}

/// A clock that moves only when told to, and when somebody sleeps.
final class VirtualClock: Sendable {
    private let seconds: Mutex<TimeInterval>
    private let slept = Mutex<[TimeInterval]>([])

    init(at date: Date = Date(timeIntervalSince1970: 1_780_000_000)) {
        seconds = Mutex(date.timeIntervalSince1970)
    }

    var now: Date { Date(timeIntervalSince1970: seconds.withLock { $0 }) }
    var sleeps: [TimeInterval] { slept.withLock { $0 } }

    func advance(by interval: TimeInterval) { seconds.withLock { $0 += interval } }

    var environment: Sender.Environment {
        Sender.Environment(
            now: { self.now },
            sleep: { interval in
                self.slept.withLock { $0.append(interval) }
                self.advance(by: interval)
                await Task.yield()
            },
            random: { 1 })
    }
}

/// Answers requests as a closure says, and remembers them.
final class ScriptedTransport: Transport {
    private let sent = Mutex<[Request]>([])
    private let answer: @Sendable (Request, Int) async throws -> Response

    /// - Parameter answer: Gets the request and how many came before it.
    init(_ answer: @escaping @Sendable (Request, Int) async throws -> Response) {
        self.answer = answer
    }

    var requests: [Request] { sent.withLock { $0 } }
    var sequences: [Int64] { requests.map { $0.sequence } }

    func send(_ request: Request) async throws -> Response {
        let count = sent.withLock { sent in
            sent.append(request)
            return sent.count - 1
        }
        return try await answer(request, count)
    }
}

struct NoNetwork: Error {}

/// Bearer tokens that count how often they were renewed.
final class CountingAuthorizer: Authorizer {
    private let renewed = Mutex(0)
    var renewals: Int { renewed.withLock { $0 } }

    func headers(
        for request: Request, about address: Address, after refusal: CredentialRefusal?
    ) async throws -> [String: String] {
        if refusal != nil { renewed.withLock { $0 += 1 } }
        return ["Authorization": "Bearer \(renewals)"]
    }
}

extension Request {
    var snapshot: Snapshot? { body.flatMap { try? JSONDecoder().decode(Snapshot.self, from: $0) } }
    var sequence: Int64 { snapshot?.sequence ?? -1 }
}

extension Response {
    static let stored = Response(status: 200, body: Data(#"{"sequence":1,"written":true}"#.utf8))

    static func problem(
        _ status: Int, _ name: String = "invalid", stored: Int64? = nil,
        headers: [String: String] = [:]
    ) -> Response {
        var problem = Problem(status: status)
        problem.type = "/problems/\(name)"
        problem.storedSequence = stored
        return Response(status: status, headers: headers, body: try! JSONEncoder().encode(problem))
    }
}

extension Target {
    static func door(_ number: Int) -> Target {
        Target(
            token: Data(repeating: UInt8(number & 255), count: 32),
            shows: [Shown(kind: "com.example.door", subjects: ["door-\(number)"])])
    }
}

/// A client over a folder of its own, with a virtual clock.
struct ClientFixture {
    let folder: TemporaryFolder
    let clock: VirtualClock
    let authorizer = CountingAuthorizer()
    let transport: ScriptedTransport
    let client: RegistrationClient

    init(
        folder: TemporaryFolder? = nil, clock: VirtualClock = VirtualClock(),
        _ answer: @escaping @Sendable (Request, Int) async throws -> Response = { _, _ in .stored }
    ) throws {
        self.folder = try folder ?? TemporaryFolder()
        self.clock = clock
        transport = ScriptedTransport(answer)
        client = try RegistrationClient(
            .init(
                registrar: URL(string: "https://push.example.com")!, app: "com.example.Garage",
                environment: .development,
                folder: self.folder.url.appendingPathComponent("outbox")),
            secrets: FileSecretStore(folder: self.folder.url.appendingPathComponent("secrets")),
            authorizer: authorizer, transport: transport, environment: clock.environment)
    }

    func waiting() throws -> [Snapshot] {
        try client.outbox.pending(of: client.installation()).snapshots
    }

    /// What was reported so far.
    func events() async -> [ClientEvent] {
        client.report(.unanswered("end of the test"))
        var events: [ClientEvent] = []
        for await event in client.events {
            if case .unanswered("end of the test") = event { break }
            events.append(event)
        }
        return events
    }
}
