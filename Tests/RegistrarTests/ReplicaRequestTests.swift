// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FleetKit
internal import HTTPListener
internal import LinuxIO
internal import Logging
internal import Synchronization
internal import Testing

@testable internal import Registrar

/// What a replica asks of others, one of which hangs: its system takes connections, and nobody reads.
@Suite struct `Requests for other replicas` {
    private static func request(
        _ base: String, within time: Duration = .seconds(2)
    ) -> Forwarder.Request {
        Forwarder.Request(
            base: base, method: "GET", target: "/here", headers: [], body: [],
            deadline: .now.advanced(by: time))
    }

    /// A replica that answers, on a port of its own.
    private final class Healthy: Sendable {
        let port = Mutex<Int?>(nil)
        private let task = Mutex<Task<Void, any Error>?>(nil)

        init() {
            let listener = HTTPListener(
                HTTPListenerSettings(name: "registrar", host: "127.0.0.1", port: 0)
            ) { [self] bound in
                port.withLock { $0 = bound }
            } answer: { _ in
                var answer = HTTPAnswer.text("ok")
                answer.headers[PeerSeal.signatureHeader] = "signed"
                return answer
            }
            task.withLock { $0 = Task { try await listener.run() } }
        }

        func base() async throws -> String {
            try await waitUntil("the replica listens") { self.port.withLock { $0 } != nil }
            return "http://127.0.0.1:\(port.withLock { $0 }!)"
        }

        func end() async {
            let task = task.withLock { $0 }
            task?.cancel()
            _ = await task?.result
        }
    }

    @Test func `one that hangs keeps nothing for another waiting`() async throws {
        let hung = try Socket.listening()
        let hungBase = "http://127.0.0.1:\(try hung.localPort())"
        let healthy = Healthy()
        let base = try await healthy.base()
        let forwarder = Forwarder(caFile: nil, logger: Logger(label: "tests"))
        let answered = await withTaskGroup(of: (String, Int?).self) { group in
            for index in 0..<200 {
                let to = index % 2 == 0 ? hungBase : base
                // Those that hang are given up last, so that all others must overtake them.
                let time = Duration.seconds(to == base ? 60 : 3)
                group.addTask {
                    (to, await forwarder.answer(to: Self.request(to, within: time))?.status)
                }
            }
            var order: [(String, Int?)] = []
            for await one in group { order.append(one) }
            return order
        }
        #expect(answered.filter { $0.0 == base }.allSatisfy { $0.1 == 200 })
        #expect(answered.filter { $0.0 == hungBase }.allSatisfy { $0.1 == nil })
        forwarder.close()
        await healthy.end()
    }

    @Test func `one that has answered nobody is not asked for a while, and then by one`()
        async throws
    {
        let hung = try Socket.listening()
        let base = "http://127.0.0.1:\(try hung.localPort())"
        let forwarder = Forwarder(caFile: nil, logger: Logger(label: "tests"))
        // They have all failed once their time is over.
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    _ = await forwarder.answer(
                        to: Self.request(base, within: .seconds(2)))
                }
            }
        }
        let clock = ContinuousClock()
        let quick = await clock.measure {
            for _ in 0..<50 {
                let answer = await forwarder.answer(to: Self.request(base, within: .seconds(600)))
                #expect(answer == nil)
            }
        }
        #expect(quick < .seconds(600), "each would have waited for as long")
        forwarder.close()
    }

    @Test func `a request whose time is over is not passed on`() async throws {
        let healthy = Healthy()
        let base = try await healthy.base()
        let forwarder = Forwarder(caFile: nil, logger: Logger(label: "tests"))
        let late = await forwarder.answer(to: Self.request(base, within: .seconds(-1)))
        #expect(late == nil)
        let answer = await forwarder.answer(to: Self.request(base, within: .seconds(60)))
        #expect(answer?.status == 200 && answer?.signature == "signed")
        forwarder.close()
        let closed = await forwarder.answer(to: Self.request(base))
        #expect(closed == nil)
        await healthy.end()
    }
}
