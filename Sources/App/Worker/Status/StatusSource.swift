// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import LinuxIO
internal import OTLPExporter
internal import PushModel

/// Gets the worker's status from the planner thread, for any number of clients. An answer is shared
/// for 200 ms, so that a flood of requests costs the planner five answers a second.
actor StatusSource {
    private let control: WorkerControl
    private let build: WorkerBuild
    private let exports: ExportCounters
    private let startedAt = PlannerLoop.clock().wall
    private let clock = ContinuousClock()
    private var latest: (status: WorkerStatus, askedAt: ContinuousClock.Instant)?
    /// The question that the planner has not answered yet.
    private var pending: Task<WorkerStatus?, Never>?

    private static let freshFor = Duration.milliseconds(200)
    /// How long a client waits for the planner. A turn takes milliseconds; restarting the consumer
    /// takes seconds.
    private static let patience = Duration.seconds(2)

    init(_ control: WorkerControl, build: WorkerBuild, exports: ExportCounters = ExportCounters()) {
        self.control = control
        self.build = build
        self.exports = exports
    }

    /// The status of at most 200 ms ago; nil if the planner does not answer in time.
    func status() async -> WorkerStatus? {
        let askedAt = clock.now
        if let latest, askedAt - latest.askedAt < Self.freshFor { return latest.status }
        if let pending { return await pending.value }
        let task = Task { await ask() }
        pending = task
        let status = await task.value
        pending = nil
        latest = status.map { ($0, askedAt) }
        return status
    }

    private func ask() async -> WorkerStatus? {
        var status = await control.answer(within: Self.patience) { .status($0) }
        status?.process = WorkerStatus.Process(
            build: build, startedAt: startedAt, residentBytes: ProcessMemory.residentBytes ?? 0)
        status?.export?.collector = exports.counts
        return status
    }
}
