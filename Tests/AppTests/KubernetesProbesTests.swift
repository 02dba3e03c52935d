// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import HTTPListener
internal import PushModel
internal import Testing

@testable internal import Configuration
@testable internal import Pipeline
@testable internal import Worker

@Suite struct `Kubernetes probes` {
    private let control = WorkerControl()
    private let delivery = Heartbeat()
    private var planner: Heartbeat { control.heartbeat }
    private var probes: Probes { Probes(control: control, delivery: [delivery]) }
    private let start = MonotonicTime(nanoseconds: 1_000_000_000)

    private func status(_ phase: WorkerControl.Phase) -> WorkerStatus {
        var status = WorkerStatus.well(phase)
        status.index = WorkerStatus.Index()
        return status
    }

    @Test func `a worker is alive while each of its threads turns`() {
        // Before their first turn nothing is known of them.
        #expect(probes.isAlive(now: start).status == 200)
        planner.beat(start)
        delivery.beat(start + .seconds(100))
        #expect(probes.isAlive(now: start + probes.silenceMax).status == 200)
        let answer = probes.isAlive(now: start + .seconds(100))
        #expect(answer == .text("the planner has not turned for 100 s", status: 503))
    }

    @Test func `a worker is ready with a fresh index and a group, partitions or not`() {
        #expect(probes.isReady(status(.running)).status == 200)
        #expect(probes.isReady(nil).status == 503)
        var alone = status(.running)
        alone.hasJoinedGroup = false
        #expect(probes.isReady(alone).status == 503)
        var old = status(.running)
        old.index.tables = [
            WorkerStatus.Table(
                topic: "lamplighter.registrations", partitions: 1, unread: 0, age: .seconds(31))
        ]
        #expect(probes.isReady(old).status == 503)
        old.index.tables[0].age = .seconds(30)
        #expect(probes.isReady(old).status == 200)
    }

    @Test func `a worker is not ready while its group has not said what it is to read`() {
        var waiting = status(.running)
        (waiting.partitions, waiting.groupWait) = ([], .seconds(10))
        #expect(
            probes.isReady(waiting) == .text("ok: the group has not given out its partitions yet"),
            "an ordinary rebalance")
        waiting.groupWait = .seconds(14)
        #expect(
            probes.isReady(waiting)
                == .text("the group has been rebalancing for 14 s", status: 503))
        waiting.groupWait = nil
        #expect(probes.isReady(waiting) == .text("ok: the group has given it no partitions"))
    }

    /// What a rollout would not make worse, and holding it back not better.
    @Test func `nothing else that is wrong keeps a worker from being ready`() {
        var status = status(.running)
        status.missingTopics = ["orders"]
        status.unavailablePartitions = 1
        status.breakers = [TrippedBreaker(name: "x", cause: .silent, probeIn: nil)]
        status.lacksRestrictions = true
        #expect(Diagnosis(status).problems.count == 4)
        #expect(probes.isReady(status) == .text("ok"))
    }

    @Test(arguments: [WorkerControl.Phase.draining, .stopped])
    func `a worker that stops has started and is not ready`(phase: WorkerControl.Phase) {
        #expect(probes.isReady(status(phase)).status == 503)
        #expect(probes.hasStarted(status(phase)).status == 200)
    }

    @Test func `a worker that looks up its topics is starting, and alive`() async {
        let starting = HTTPAnswer.text(
            "the worker is starting: it looks up its topics in Kafka", status: 503)
        #expect(probes.hasStarted(nil) == starting && probes.isReady(nil) == starting)
        #expect(probes.isAlive(now: start + .seconds(3600)).status == 200)
        let source = StatusSource(control, build: ServiceBuild())
        #expect(await source.currentOrLatest().isStarting)
        planner.beat(start)
        #expect(!control.isStarting)
        let silent = HTTPAnswer.text("the planner does not answer", status: 503)
        #expect(probes.hasStarted(nil) == silent && probes.isReady(nil) == silent)
    }

    @Test func `a worker that replays says how far it is`() {
        var status = status(.replaying)
        status.index.recordsRead = 250
        status.index.tables = [
            WorkerStatus.Table(
                topic: "lamplighter.registrations", partitions: 1, unread: 750, age: .seconds(5))
        ]
        status.index.elapsed = .seconds(10)
        let text = "reading registrations and suppressions: 250 records, 25 %, about 30 s left"
        #expect(probes.hasStarted(status) == .text(text, status: 503))
        #expect(probes.isReady(status) == .text(text, status: 503))
    }
}
