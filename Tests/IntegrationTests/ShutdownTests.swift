// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import Foundation
import Glibc
import Testing

@Suite(.serialized, .timeLimit(.minutes(3)), .fleet(.underTraffic(workers: 1)))
struct `An orderly stop` {
    @Test func `exits 0 and leaves nothing to send again`() async throws {
        let fleet = try #require(Fleet.current)
        let traffic = try Traffic(fleet, subjects: 100, tokensEach: 3)
        try await traffic.begin()
        let emission = Task { try await traffic.emit(3000) }
        try await traffic.accepted(1500)
        try await stop(fleet.workers[0])
        try await emission.value
        // Otherwise it came too late to stop anything.
        #expect(try !traffic.audit().lost.isEmpty)
        // What it had read was sent, and what it had sent was committed.
        try fleet.startWorker()
        let audit = try await traffic.delivered()
        #expect(audit.duplicates == 0)
        try await stop(fleet.workers[1])

        // All is committed: a third one sends what is new, and only that.
        let sent = fleet.simulator.counts.accepted
        let marked = traffic.subjects.prefix(4).flatMap { traffic.tokens[$0]! }
        try fleet.startWorker()
        try await traffic.emit(4)
        _ = try await traffic.delivered()
        try await stop(fleet.workers[2])
        #expect(fleet.simulator.counts.accepted == sent + marked.count)
    }

    /// `delivery.shutdownTimeout` is 25 s by default; the machine may be slow.
    private func stop(_ worker: ChildProcess) async throws {
        worker.signal(SIGTERM)
        #expect(try await worker.finish(within: .seconds(35)) == 0)
        #expect(worker.output.contains("stopped"))
    }
}
