// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FleetKit
internal import Foundation
internal import HTTPListener
internal import PushModel
internal import Synchronization

/// A listener on a port of its own for the time of one test.
final class ListenerFixture: Sendable {
    let questions = Mutex<[HTTPRequest]>([])
    /// The requests that were answered by their head alone, as `PUT 401`.
    let refused = Mutex<[String]>([])
    /// A value, since the last closure of the call says the limits.
    struct Admission {
        let decide: @Sendable (HTTPRequest) -> HTTPAdmission
    }

    /// As `latch` it holds the listener's thread at each answer to `/here` until it is opened, as `hold` each
    /// answer and not the thread.
    final class Latch: Sendable {
        private let state = Atomic(false)
        var isOpen: Bool { state.load(ordering: .acquiring) }
        func open() { state.store(true, ordering: .releasing) }
        func wait() { while !isOpen { usleep(1000) } }
    }

    /// How its end came.
    var result: Result<Void, any Error>? {
        get async { await task.withLock { $0 }?.result }
    }

    private let bound = Mutex<Int?>(nil)
    private let task = Mutex<Task<Void, any Error>?>(nil)

    init(
        host: String = "127.0.0.1", token: String? = nil, openPaths: Set<String> = [],
        answer: HTTPAnswer = .text("ok"), priority: HTTPListenerSettings.Priority = .low,
        admission: Admission? = nil, latch: Latch? = nil, hold: Latch? = nil,
        limits change: (inout HTTPListenerSettings.Limits) -> Void = { _ in }
    ) {
        var settings = HTTPListenerSettings(
            name: "health", host: host, port: 0, token: token.map { Secret($0) })
        settings.openPaths = openPaths
        settings.priority = priority
        settings.admission = admission?.decide
        settings.refused = { [self] method, status in
            refused.withLock { $0.append("\(method) \(status)") }
        }
        change(&settings.limits)
        let listener = HTTPListener(settings) { [self] port in
            bound.withLock { $0 = port }
        } answer: { [self] question in
            questions.withLock { $0.append(question) }
            if question.path == "/here" { latch?.wait() }
            while hold?.isOpen == false { try? await Task.sleep(for: .milliseconds(1)) }
            return question.path == "/here" ? answer : .notFound
        }
        task.withLock { $0 = Task { try await listener.run() } }
    }

    var port: Int {
        get throws {
            let patience = Patience()
            while !patience.isOver {
                if let port = bound.withLock({ $0 }) { return port }
                Thread.sleep(forTimeInterval: 0.005)
            }
            throw POSIXError(.ETIMEDOUT)
        }
    }

    func end() async {
        let task = task.withLock { $0 }
        task?.cancel()
        _ = await task?.result
    }
}
