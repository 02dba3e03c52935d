// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Checker
internal import FleetKit
internal import Foundation
internal import Glibc
internal import LinuxIO

/// One round of chaos: a fleet of its own, traffic, the faults of its script, and the result. It
/// belongs to the main thread; its processes end with that.
final class ChaosRound {
    private let script: ChaosScript
    private let duration: Duration
    private let fleet: ProcessFleet
    private let kills: FileHandle
    private var line: SimulatorLine?
    private var reports: LogTail
    private var traffic = TrafficReport(phase: .registering)
    private var steps: ArraySlice<ChaosStep>
    private(set) var report: ChaosReport

    private static let turn = Duration.milliseconds(20)
    // Registrations are written first, and the machine may be compiling something besides.
    private static let startMax = Duration.seconds(180)
    /// How long to wait, after the traffic, for the pushes that are left: takeovers, back-off,
    /// deferral and refusals take time.
    private static let drainMax = Duration.seconds(90)
    private static let lookInterval = Duration.seconds(2)
    private static let checkMax = Duration.seconds(60)
    /// The most workers that may end by themselves: one that can never work would be restarted for
    /// ever.
    private static let exitsMax = 20
    /// The most places named where a secret is shown.
    private static let leaksMax = 20

    init(_ script: ChaosScript, plan: FleetPlan, duration: Duration, seed: UInt64) throws {
        self.script = script
        self.duration = duration
        fleet = try ProcessFleet(plan)
        reports = LogTail(path: fleet.path("traffic.log"))
        steps = script.steps[...]
        report = ChaosReport(seed: seed)
        report.rounds = 1
        report.faults = script.faults.count
        let log = fleet.path("kills.ndjson")
        guard let kills = FileHandle.emptied(path: log)
        else { throw FleetError(description: "\(log) cannot be written") }
        self.kills = kills
    }

    /// Runs the round.
    ///
    /// - Throws: the error that prevented a result. No process is left running in either case.
    func run() throws {
        defer { fleet.end(within: .seconds(5)) }
        try start()
        try disturb()
        try endTraffic()
        try judge()
        let shown = try shownByWorkers()
        try stopWorkers()
        try searchForSecrets(in: shown)
    }

    func removeLogs() { fleet.removeLogs() }

    // MARK: Phases

    private func start() throws {
        try fleet.startKafka()
        try fleet.startAPNS()
        try watch("the simulators", Self.startMax) { fleet.simulatorsServe() }
        line = try SimulatorLine(port: fleet.addresses.controlPort)
        try fleet.writeConfiguration()
        if fleet.plan.kafka != nil {
            let creation = try fleet.startTopicCreation()
            try watch("the topics", Self.startMax) { creation.ending != nil }
            guard creation.ending == .exited(0) else {
                throw FleetError(description: "no topics: \(fleet.tail("topics.log"))")
            }
        }
        try fleet.startWorkers()
        try fleet.startTraffic()
        try watch("the first event", Self.startMax) { traffic.phase == .running }
    }

    private func disturb() throws {
        let start = ContinuousClock.now
        while ContinuousClock.now - start < duration || !steps.isEmpty {
            while let step = steps.first, step.at <= ContinuousClock.now - start {
                steps.removeFirst()
                try perform(step.action)
            }
            try turn()
        }
    }

    private func endTraffic() throws {
        _ = fleet.traffic?.say("quit")
        try watch("the traffic's end", Self.startMax) { traffic.phase == .ended }
    }

    /// Runs the checker until nothing is missing, or until a push may take no longer.
    private func judge() throws {
        let patience = Patience(Self.drainMax)
        while true {
            let isProven = try check()
            if isProven || patience.isOver { break }
            let next = ContinuousClock.now + Self.lookInterval
            while ContinuousClock.now < next { try turn() }
        }
        let (json, lines) = fleet.result()
        let result = try JSONDecoder().decode(CheckReport.self, from: Data(json.utf8))
        report.add(result)
        report.failures += result.lost + result.truncated > 0 ? lines : []
        report.duplicatesMax =
            DuplicateBound(
                script: script, registrationGrace: fleet.plan.configuration.registrationGrace,
                session: fleet.plan.configuration.session,
                duration: duration, obligations: result.obligations,
                givenUp: fleet.partitionsGivenUp(),
                sharedPartitions: fleet.plan.topics.sharedPartitions
            ).pushes
        if report.duplicates > report.duplicatesMax {
            report.failures.append(
                "\(report.duplicates) duplicates, and at most \(report.duplicatesMax) expected")
        }
        let positions = try TopicPositions(
            bootstrap: fleet.bootstrap, group: fleet.plan.topics.prefix)
        // The topic was empty at the start.
        report.deferredRecords = try positions.ends(of: fleet.plan.topics.name(of: "deferred"))
            .reduce(0) { $0 + Int(max(0, $1)) }
    }

    /// Runs the checker. Returns whether every obligation has an end.
    private func check() throws -> Bool {
        let checker = try fleet.startChecker(kills: fleet.path("kills.ndjson"))
        try watch("the checker", Self.checkMax) { checker.ending != nil }
        switch checker.ending {
        case .exited(0): return true
        case .exited(1): return false
        default:
            let said = fleet.result().lines.joined(separator: " | ")
            throw FleetError(description: "the checker: \(said)")
        }
    }

    private func stopWorkers() throws {
        let endings = fleet.endWorkers(within: ChaosOptions.shutdownTimeout + .seconds(2))
        for (index, ending) in endings.enumerated() where ending != .exited(0) {
            let words = ending.map(\.words) ?? "not ended in time"
            report.failures.append("worker \(index + 1), asked to stop at the end, has \(words)")
        }
    }

    // MARK: Secrets

    /// What workers show while they run.
    private func shownByWorkers() throws -> [ShownText] {
        // One that has ended has no page.
        try turn()
        do {
            return try fleet.pages() + fleet.arguments()
        } catch let error as FleetError {
            report.failures.append(error.description)
            return []
        }
    }

    /// Looks for every secret of the round in all that the workers have shown.
    private func searchForSecrets(in shown: [ShownText]) throws {
        let search = try SecretSearch(of: fleet)
        let texts = try shown + fleet.workerLogs() + fleet.deadLetters()
        report.failures += texts.flatMap { $0.leaks(search) }.prefix(Self.leaksMax)
    }

    // MARK: Faults

    private func perform(_ action: ChaosAction) throws {
        switch action {
        case .kill(let worker):
            let t = SystemClock.wallNanoseconds()
            try fleet.killWorker(worker)
            kills.write(Data("{\"t\":\(t),\"worker\":\(worker + 1)}\n".utf8))
            report.kills += 1
        case .terminate(let worker):
            fleet.workers[worker].process.signal(SIGTERM)
            report.terminations += 1
        case .freeze(let worker):
            fleet.workers[worker].process.signal(SIGSTOP)
            report.freezes += 1
        case .thaw(let worker): fleet.workers[worker].process.signal(SIGCONT)
        case .kafka(let command):
            guard fleet.tellKafka(command) else {
                throw FleetError(description: "the embedded Kafka does not take '\(command)'")
            }
        case .apns(let command): line?.say(command)
        case .restartAPNS:
            line = nil
            try fleet.restartAPNS()
            try watch("the APNs simulator", Self.startMax) { fleet.simulatorsServe() }
            line = try SimulatorLine(port: fleet.addresses.controlPort)
        }
    }

    // MARK: One turn

    private func watch(
        _ what: String, _ limit: Duration, until condition: () throws -> Bool
    ) throws {
        let patience = Patience(limit)
        while try !condition() {
            guard !patience.isOver else {
                throw FleetError(description: "waited \(limit) for \(what)")
            }
            try turn()
        }
    }

    private func turn() throws {
        guard StopRequests.received == 0 else { throw FleetError(description: "interrupted") }
        try fleet.requireSimulators()
        for ended in try fleet.replaceEndedWorkers() where ended.ending != .exited(0) {
            report.exits += 1
            // Exit code 75 means that a client failed for good and the worker must be started
            // again.
            guard ended.ending != .exited(75) else { continue }
            report.failures.append("worker \(ended.index + 1) has \(ended.ending.words) by itself")
        }
        guard report.exits <= Self.exitsMax else {
            throw FleetError(description: "the workers keep ending: \(fleet.tail("worker-1.log"))")
        }
        reports.forEachNewLine { line in
            if let report = try? JSONDecoder().decode(TrafficReport.self, from: Data(line)) {
                traffic = report
            }
        }
        if let ending = fleet.traffic?.ending, traffic.phase != .ended, ending != .exited(0) {
            throw FleetError(
                description: "the traffic has \(ending.words): \(fleet.tail("traffic-errors.log"))")
        }
        line?.listen(onStatus: { _ in }, onProblem: { report.failures.append($0) })
        Thread.sleep(forTimeInterval: Self.turn / .seconds(1))
    }
}
