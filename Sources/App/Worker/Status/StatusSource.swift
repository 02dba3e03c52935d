// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Configuration
internal import LinuxIO
internal import OTLPExporter
internal import Pipeline
internal import PushModel

/// Gets the worker's status from the planner thread, for any number of clients. An answer is shared
/// for 200 ms, so that a flood of requests costs the planner five answers a second.
actor StatusSource {
    private let control: WorkerControl
    private let build: ServiceBuild
    private let keys: SigningKeys?
    private let exports: ExportCounters
    private let source: LogSource
    private let startedAt = PlannerLoop.clock().wall
    private let clock = ContinuousClock()
    private var latest: (status: WorkerStatus, askedAt: ContinuousClock.Instant)?
    /// What was made of the latest status, by what for.
    private var bodies: (at: WallTime, texts: [String: [UInt8]])?
    private var history = StatusHistory()
    /// The question that the planner has not answered yet.
    private var pending: Task<WorkerStatus?, Never>?

    private static let freshFor = Duration.milliseconds(200)
    /// How long a client waits for the planner. A turn takes milliseconds; restarting the consumer
    /// takes seconds.
    private static let patience = Duration.seconds(2)

    init(
        _ control: WorkerControl, build: ServiceBuild, source: LogSource = LogSource(),
        keys: SigningKeys? = nil,
        exports: ExportCounters = ExportCounters()
    ) {
        self.control = control
        self.build = build
        self.source = source
        self.keys = keys
        self.exports = exports
    }

    /// The status of at most 200 ms ago; nil if the planner does not answer in time, and at once
    /// while it has not begun.
    func status() async -> WorkerStatus? {
        guard !control.isStarting else { return nil }
        let askedAt = clock.now
        if let latest, askedAt - latest.askedAt < Self.freshFor { return latest.status }
        if let pending { return await pending.value }
        let task = Task { await ask() }
        pending = task
        let status = await task.value
        pending = nil
        if let status { latest = (status, askedAt) }
        return status
    }

    /// What `render` makes of the status. It is made once of each, since it takes longer than to send
    /// it.
    ///
    /// - Parameter name: what it is made for.
    /// - Returns: nil if the planner does not answer.
    func body(
        for name: String, _ render: @Sendable (WorkerStatus) -> String
    ) async -> [UInt8]? {
        guard let status = await status() else { return nil }
        if bodies?.at != status.at { bodies = (status.at, [:]) }
        if let body = bodies?.texts[name] { return body }
        let body = Array(render(status).utf8)
        bodies?.texts[name] = body
        return body
    }

    /// Takes a status for the history every few seconds, so that each answer can be compared with the
    /// seconds before it. Returns when the worker stops, which must not wait for another answer.
    func keepHistory() async {
        while !Task.isCancelled, [.replaying, .running].contains(control.currentPhase) {
            _ = await status()
            try? await Task.sleep(for: StatusHistory.interval)
        }
    }

    /// The status of at most 200 ms ago. If the planner does not answer in time, the latest one that
    /// it gave, with what is known without it.
    func currentOrLatest() async -> WorkerStatus {
        if let status = await status() { return status }
        return latestKnown()
    }

    /// The latest status that the planner gave, with what is known without it.
    func latestKnown() -> WorkerStatus {
        let snapshot = control.latest
        var status =
            latest?.status
            ?? WorkerStatus(
                phase: control.currentPhase, at: PlannerLoop.clock().wall,
                index: WorkerStatus.Index(), hasJoinedGroup: false, counters: snapshot.counters,
                load: snapshot.load ?? .nothing)
        status.phase = control.currentPhase
        status.isCurrent = false
        status.isStarting = control.isStarting
        status.process = process
        return status
    }

    private var process: WorkerStatus.Process {
        WorkerStatus.Process(
            id: source.worker ?? "", group: source.group ?? "", version: build.version,
            commit: build.commit, startedAt: startedAt,
            residentBytes: ProcessMemory.residentBytes ?? 0,
            cpuTime: .nanoseconds(ProcessUsage.cpuNanoseconds),
            fileDescriptors: ProcessUsage.fileDescriptors,
            fileDescriptorsMax: ProcessUsage.fileDescriptorsMax)
    }

    private func ask() async -> WorkerStatus? {
        let answer = await control.answer(within: Self.patience) { .status($0) }
        guard var status = answer else { return nil }
        if let keys { status.noteProviderTokens(keys, now: PlannerLoop.clock()) }
        status.process = process
        status.export?.collector = exports.counts
        status.earlier = history.earlier(than: status)
        return status
    }
}

extension WorkerStatus {
    fileprivate mutating func noteProviderTokens(_ keys: SigningKeys, now: Now) {
        for pool in pools.indices {
            let environment = PushEnvironment(name: pools[pool].environment)!
            let tokens = keys[pools[pool].credential, environment]
            pools[pool].providerTokenAge = tokens.age(at: now)
            pools[pool].isKeyGone = tokens.isKeyGone
            pools[pool].isTokenReady = tokens.keyInUse.ready != nil
        }
    }
}
