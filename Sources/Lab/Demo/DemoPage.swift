// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import FleetKit
internal import Foundation
internal import HTTPListener
internal import LivePage
internal import Synchronization

/// Serves the live page for all workers of the demo: it passes each worker's status on and adds a
/// wall of simulated devices.
final class DemoPage: Sendable {
    private struct State {
        var port: Int?
        var figures: Figures
    }

    /// What the page shows besides the workers' own figures.
    struct Figures: Sendable {
        /// The port of each worker's `admin` listener; nil until it listens.
        var workerPorts: [Int?]
        /// When the last push to each device on the wall was accepted, in nanoseconds since 1970.
        var acceptedAt: [Int64?] = []
        var installations = 0
    }

    /// The most devices on the wall.
    static let devicesMax = 400
    private static let statusBytesMax = 4 << 20
    /// Shorter than the patience of the page, so that it learns which worker is silent; longer than
    /// the 2 s after which a worker whose planner is stuck says so.
    private static let statusTimeout = Duration.milliseconds(2300)

    private let state: Mutex<State>

    init(_ figures: Figures) { state = Mutex(State(port: nil, figures: figures)) }

    /// The address to open; nil until the page is served.
    var address: String? { state.withLock(\.port).map { "http://127.0.0.1:\($0)/" } }

    func show(_ figures: Figures) { state.withLock { $0.figures = figures } }

    /// Serves the page until the process ends.
    func start() {
        let settings = HTTPListenerSettings(name: "demo", host: "127.0.0.1", port: 0)
        let listener = HTTPListener(settings) { [self] port in
            state.withLock { $0.port = port }
        } answer: { [self] request in
            await answer(request)
        }
        // Without its page the demo goes on.
        Task.detached { try? await listener.run() }
    }

    // MARK: Answers

    func answer(_ request: HTTPRequest) async -> HTTPAnswer {
        if let answer = LivePage.answer(request) { return answer }
        let figures = state.withLock(\.figures)
        switch request.path {
        case "/fleet": return Self.json(Fleet(figures))
        case "/devices": return Self.json(Devices(figures))
        default:
            guard let match = request.path.wholeMatch(of: #//workers/(\d{1,3})/status/#),
                let number = Int(match.1), figures.workerPorts.indices.contains(number - 1)
            else { return .notFound }
            return await Self.status(of: figures.workerPorts[number - 1])
        }
    }

    private struct Fleet: Encodable {
        struct Worker: Encodable {
            var name: String
            var status: String
        }

        var workers: [Worker]
        let devices = "devices"

        init(_ figures: Figures) {
            workers = figures.workerPorts.indices.map { index in
                Worker(name: "worker \(index + 1)", status: "workers/\(index + 1)/status")
            }
        }
    }

    private struct Devices: Encodable {
        let v = 1
        /// In milliseconds since 1970, as are the members of `accepted`.
        let at = Date.now.timeIntervalSince1970 * 1000
        var accepted: [Double?]
        var total: Int

        init(_ figures: Figures) {
            accepted = figures.acceptedAt.map { $0.map { Double($0) / 1e6 } }
            total = figures.installations
        }
    }

    /// A worker answers with one object or with a sentence. A stuck one answers 503 with the object
    /// of an earlier moment.
    static func isJSON(_ body: [UInt8]) -> Bool { body.first == UInt8(ascii: "{") }

    private static func json(_ value: some Encodable) -> HTTPAnswer {
        guard let data = try? JSONEncoder().encode(value) else { return .notFound }
        return .json(String(decoding: data, as: UTF8.self))
    }

    private static func status(of port: Int?) async -> HTTPAnswer {
        guard let port else { return .text("it is starting", status: 503) }
        // The exchange blocks, and the listener has one thread.
        let exchange = Task.detached {
            var exchange = HTTPExchange(url: "http://127.0.0.1:\(port)/status")
            exchange.timeout = statusTimeout
            exchange.answerBytesMax = statusBytesMax
            return try? exchange.perform()
        }
        guard let answer = await exchange.value else {
            return .text("nothing listens; it was killed, or it stops", status: 502)
        }
        return HTTPAnswer(
            status: Int(answer.status),
            contentType: isJSON(answer.body) ? "application/json" : "text/plain; charset=utf-8",
            body: answer.body)
    }
}
