// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import LinuxIO
internal import OTLPExporter
package import Pipeline
internal import PushModel
internal import Synchronization

/// What other threads may ask of the planner thread, and what it publishes for them.
package final class WorkerControl: Sendable {
    package enum Phase: UInt8, Sendable, CaseIterable {
        /// Reading registrations and suppressions to their end.
        case replaying
        case running
        case draining
        case stopped
    }

    let waker = Waker()
    private let stopRequested = Atomic<Bool>(false)
    private let phase = Atomic<UInt8>(Phase.replaying.rawValue)
    private let snapshot = Mutex(Snapshot())
    private let hasReloadedPlan = Atomic<Bool>(false)
    private let reloadedPlan = Mutex<WorkerPlan?>(nil)
    private let reportRequested = Atomic<Bool>(false)
    private let hasRekeyed = Atomic<Bool>(false)
    private let rekeyed = Mutex<Set<PoolID>>([])
    private let questions = PlannerQuestions()
    /// The heartbeat of the planner thread.
    let heartbeat = Heartbeat()
    /// Whether the planner has not turned yet. Until then its thread connects to Kafka and looks up
    /// its topics.
    var isStarting: Bool { heartbeat.age(now: PlannerLoop.clock().monotonic) == nil }
    /// The spans that the planner has finished.
    let spans = SpanQueue()

    /// The counters and the load, as the planner last published them.
    package struct Snapshot: Sendable {
        package var counters = Counters()
        package var load: PushPipeline.Load?
    }

    package init() {}

    /// Begins an orderly stop; returns at once.
    package func requestStop() {
        stopRequested.store(true, ordering: .releasing)
        waker.signal()
    }

    /// Notes that the pool now signs with another key, which APNs has accepted.
    func keyChanged(of pool: PoolID) {
        _ = rekeyed.withLock { $0.insert(pool) }
        hasRekeyed.store(true, ordering: .releasing)
        waker.signal()
    }

    /// The pools whose keys have changed since the last call. The planner asks every turn; without
    /// news that costs one atomic load.
    func takeRekeyed() -> Set<PoolID> {
        guard hasRekeyed.load(ordering: .relaxed),
            hasRekeyed.exchange(false, ordering: .acquiring)
        else { return [] }
        return rekeyed.withLock { pools in
            defer { pools = [] }
            return pools
        }
    }

    var isStopRequested: Bool { stopRequested.load(ordering: .acquiring) }

    /// Passes a reloaded plan to the planner, which adopts it before its next turn.
    func adopt(_ plan: WorkerPlan) {
        reloadedPlan.withLock { $0 = plan }
        hasReloadedPlan.store(true, ordering: .releasing)
        waker.signal()
    }

    /// The plan that was reloaded since the last call; nil if there is none. The planner asks every
    /// turn; without news that costs one atomic load.
    func takeReloadedPlan() -> WorkerPlan? {
        guard hasReloadedPlan.load(ordering: .relaxed),
            hasReloadedPlan.exchange(false, ordering: .acquiring)
        else { return nil }
        return reloadedPlan.withLock { $0.take() }
    }

    /// Makes the planner write its counters to the log at once.
    package func requestReport() {
        reportRequested.store(true, ordering: .releasing)
        waker.signal()
    }

    func takeReportRequest() -> Bool {
        reportRequested.load(ordering: .relaxed)
            && reportRequested.exchange(false, ordering: .acquiring)
    }

    /// Asks the planner. It looks at questions in its next turn.
    /// - Returns: false if as many questions wait as may.
    func ask(_ question: PlannerQuestion) -> Bool {
        defer { waker.signal() }
        return questions.add(question)
    }

    /// Returns the questions that wait. Called every turn: one atomic load if there is none.
    func takeQuestions() -> [PlannerQuestion] { questions.takeAll() }

    package var currentPhase: Phase { Phase(rawValue: phase.load(ordering: .acquiring))! }

    func enter(_ phase: Phase) {
        let before = self.phase.exchange(phase.rawValue, ordering: .acquiringAndReleasing)
        precondition(before < phase.rawValue, "a worker's phases only go forward")
    }

    package var latest: Snapshot { snapshot.withLock { $0 } }

    func publish(_ latest: Snapshot) { snapshot.withLock { $0 = latest } }
}
