// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import FleetKit
import Glibc
import Testing

/// Long before its time is over.
@Suite(.serialized)
struct `A demo that somebody ends` {
    @Test func `a second interruption ends a demo without a result or a loss`() async throws {
        let run = try DemoRun(["--duration", "600"])
        try await waitUntil("some events") { run.events() > 50 }
        // Nothing arrives any more, so that there is something to wait for.
        let workers = run.workers
        #expect(workers.count == 2)
        for worker in workers { kill(worker, SIGSTOP) }
        let events = run.events()
        try await waitUntil("events that nobody takes") {
            run.events() > events + 50
        }
        run.process.signal(SIGINT)
        try await waitUntil("the traffic to end") { run.isTrafficOver }
        run.process.signal(SIGINT)
        try await waitUntil("its last word") {
            run.process.output.contains("no result")
        }
        // So that they end in order, which is sooner.
        for worker in workers { kill(worker, SIGCONT) }
        #expect(try await run.process.finish() == 130, "\(run.process.excerpt)")
        let said = run.process.output
        #expect(said.contains("pushes not awaited, no result"), "\(run.process.excerpt)")
        #expect(!said.contains(": 0 pushes not awaited"))
        #expect(!said.contains(" lost · "))
        #expect(run.running == [])
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func `a demo says that there is no result before the first event`(signal: Int32) async throws {
        let run = try DemoRun(["--duration", "600"])
        try await waitUntil("its simulators") { run.running.count > 1 }
        run.process.signal(signal)
        #expect(try await run.process.finish() == 130, "\(run.process.excerpt)")
        #expect(run.process.output.contains("no result: ended before the first event"))
    }

    @Test func `a demo ends with the result when it is interrupted`() async throws {
        let run = try DemoRun(["--duration", "600"])
        try await waitUntil("some events") { run.events() > 50 }
        run.process.signal(SIGINT)
        #expect(try await run.process.finish() == 0, "\(run.process.excerpt)")
        #expect(run.process.output.contains(" 0 lost · "))
        #expect(run.running == [])
    }

    @Test func `a demo leaves no process when it is killed`() async throws {
        let run = try DemoRun(["--duration", "600"])
        try await waitUntil("some events") { run.events() > 0 }
        // Itself, Kafka, APNs, the registrar, two workers, the traffic, the phones.
        try await waitUntil("all processes") { run.running.count == 8 }
        run.process.signal(SIGKILL)
        try await waitUntil("the others to end") { run.running.isEmpty }
    }
}
