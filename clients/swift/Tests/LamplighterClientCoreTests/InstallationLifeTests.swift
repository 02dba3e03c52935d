// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Foundation
import Synchronization
import Testing

@testable import LamplighterClientCore

/// The registrar's contract in memory, over a network that loses requests and answers.
final class ModelRegistrar: Transport {
    struct State {
        var random: SeededRandom
        var faults = true
        /// By path of a handler.
        var stored: [String: (sequence: Int64, content: [Target])] = [:]
    }

    let state: Mutex<State>

    init(seed: UInt64) { state = Mutex(State(random: SeededRandom(seed: seed))) }

    func send(_ request: Request) async throws -> Response {
        await Task.yield()
        return try state.withLock { state in
            let fault = state.faults ? Int.random(in: 0..<10, using: &state.random) : 9
            switch fault {
            case 0: throw NoNetwork()
            case 1: return .problem(503)
            case 2: return .problem(503, headers: ["Retry-After": "1"])
            case 3:
                _ = Self.answer(request, &state)
                throw NoNetwork()
            default: return Self.answer(request, &state)
            }
        }
    }

    private static func answer(_ request: Request, _ state: inout State) -> Response {
        let path = request.url.path
        if request.method == "DELETE" {
            for key in state.stored.keys where key == path || key.hasPrefix(path + "/") {
                state.stored[key] = nil
            }
            return Response(status: 204)
        }
        guard let snapshot = request.snapshot else { return .problem(400) }
        var puts: [String: [Target]] = [:]
        switch snapshot.content {
        case .targets(let targets): puts[path] = targets
        case .controls(let handlers):
            for (name, targets) in handlers { puts["\(path)/\(name)"] = targets }
        case .removal: return .problem(400)
        }
        var stale: Int64 = -1
        for (key, targets) in puts {
            guard let stored = state.stored[key] else { continue }
            let repetition = stored.sequence == snapshot.sequence && stored.content == targets
            if !repetition, stored.sequence >= snapshot.sequence {
                stale = max(stale, stored.sequence)
            }
        }
        guard stale < 0 else { return .problem(409, "staleSequence", stored: stale) }
        if case .controls = snapshot.content {
            for key in state.stored.keys where key.hasPrefix(path + "/") { state.stored[key] = nil }
        }
        for (key, targets) in puts { state.stored[key] = (snapshot.sequence, targets) }
        return .stored
    }
}

/// SplitMix64: the same numbers for the same seed on every machine.
struct SeededRandom: RandomNumberGenerator {
    var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }
}

/// How many lives are tried.
private let lives =
    ProcessInfo.processInfo.environment["LAMPLIGHTER_LIVES"].flatMap(Int.init) ?? 200

/// Lives of one phone: registrations from an app and its extension, kills, reinstallations, clocks that
/// jump, a network that fails. In the end the registrar must have what was registered last.
@Suite struct `The life of an installation` {
    @Test(arguments: 1...lives)
    func `ends with the registrar having what was registered last`(_ seed: Int) async throws {
        var random = SeededRandom(seed: UInt64(seed))
        let folder = try TemporaryFolder()
        let clock = VirtualClock()
        let registrar = ModelRegistrar(seed: UInt64(seed) &* 7919)

        func open() throws -> RegistrationClient {
            try RegistrationClient(
                .init(
                    registrar: URL(string: "https://push.example.com")!, app: "com.example.Garage",
                    environment: .production, folder: folder.url.appendingPathComponent("outbox")),
                secrets: FileSecretStore(folder: folder.url.appendingPathComponent("secrets")),
                authorizer: CountingAuthorizer(), transport: registrar,
                environment: clock.environment)
        }

        var app = try open()
        var widgetExtension = try open()
        var expected: [String: [Target]] = [:]
        // App and extension send at the same time, and register meanwhile. A complete set then names
        // all handlers, as the app does: for one that it leaves out the registrar forgets the sequence,
        // and could not refuse an older snapshot that is still on its way.
        let sideBySide = seed.isMultiple(of: 2)
        for step in 0..<40 {
            let client = Bool.random(using: &random) ? app : widgetExtension
            let handler = ["A", "B", "C"].randomElement(using: &random)!
            switch Int.random(in: 0..<12, using: &random) {
            case 0...3:
                try client.register(.controls, handler: handler, targets: [.door(step)])
                expected["controls/\(handler)"] = [.door(step)]
            case 4:
                for key in expected.keys where key.hasPrefix("controls/") { expected[key] = nil }
                var handlers: [String: [Target]] = sideBySide ? ["A": [], "B": [], "C": []] : [:]
                handlers[handler] = [.door(step)]
                try client.registerControls(handlers)
                for (name, targets) in handlers { expected["controls/\(name)"] = targets }
            case 5:
                try client.register(.widgets, targets: [.door(step)])
                expected["widgets/default"] = [.door(step)]
            case 6...8:
                let patience = TimeInterval.random(in: 0...5, using: &random)
                if sideBySide {
                    async let first = app.send(patience: patience)
                    async let second = widgetExtension.send(patience: patience)
                    try client.register(.controls, handler: handler, targets: [.door(step)])
                    expected["controls/\(handler)"] = [.door(step)]
                    _ = await (first, second)
                } else {
                    _ = await client.send(patience: patience)
                }
            case 9:
                // Killed: what it had in memory is gone.
                app = try open()
                widgetExtension = try open()
            case 10:
                clock.advance(by: .random(in: -1000...1000, using: &random))
            default:
                // Deleted and installed again: the files are gone, the Keychain's item is not, and the
                // app registers everything at its first launch.
                try? FileManager.default.removeItem(at: folder.url.appendingPathComponent("outbox"))
                app = try open()
                widgetExtension = try open()
                try app.registerControls(["A": [.door(step)]])
                try app.register(.widgets, targets: [.door(step)])
                expected = ["controls/A": [.door(step)], "widgets/default": [.door(step)]]
            }
        }
        registrar.state.withLock { $0.faults = false }
        #expect(await app.send(patience: 10_000))
        let prefix =
            "/v1/apps/com.example.Garage/environments/production/installations/"
            + (try app.installation()) + "/"
        let stored = registrar.state.withLock { $0.stored.mapValues(\.content) }
        #expect(stored == Dictionary(uniqueKeysWithValues: expected.map { (prefix + $0, $1) }))
    }
}
