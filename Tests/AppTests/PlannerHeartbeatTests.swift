// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import FleetKit
internal import Glibc
internal import HTTPListener
internal import Lifecycle
internal import LinuxIO
internal import Logging
internal import PushModel
internal import Synchronization
internal import Testing

@testable internal import Worker

@Suite struct `The planner's heartbeat` {
    /// Holds up whoever writes a line until it is opened.
    private final class Barrier: Sendable {
        let isOpen = Atomic<Bool>(false)
        let isReached = Atomic<Bool>(false)
        /// What `/livez` said behind the barrier.
        let answers = Mutex<[String]>([])
    }

    private struct HeldLog: LogHandler {
        let barrier: Barrier
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.info

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            barrier.isReached.store(true, ordering: .releasing)
            while !barrier.isOpen.load(ordering: .acquiring) { usleep(1000) }
        }
    }

    @Test func `a planner that blocks is told by livez`() throws {
        let barrier = Barrier()
        let planner = try PlannerLoopFixture(
            log: Logger(label: "held") { _ in HeldLog(barrier: barrier) })
        let (control, port) = (planner.control, planner.port)
        let probes = Probes(control: control, delivery: [], silenceMax: .milliseconds(20))
        // It is alive until it first turns, and its first line blocks it.
        #expect(probes.isAlive(now: PlannerLoop.clock().monotonic).status == 200)
        control.requestReport()
        try NamedThread.detach(name: "kubelet") {
            let patience = Patience()
            func wait(until condition: () -> Bool) {
                while !condition(), !patience.isOver { usleep(1000) }
            }
            wait { barrier.isReached.load(ordering: .acquiring) }
            wait { probes.isAlive(now: PlannerLoop.clock().monotonic).status == 503 }
            let answer = probes.isAlive(now: PlannerLoop.clock().monotonic)
            barrier.answers.withLock { $0.append(String(decoding: answer.body, as: UTF8.self)) }
            control.requestStop()
            barrier.isOpen.store(true, ordering: .releasing)
            wait { port.currentPhase == .draining }
            port.markExited()
        }
        let end = planner.loop.run()
        #expect(end == .stopped)
        let answer = barrier.answers.withLock { $0.first }
        #expect(answer?.hasPrefix("the planner has not turned for ") == true, "\(answer ?? "")")
    }
}
