// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FleetKit
internal import Foundation
internal import Glibc
internal import LinuxIO

/// One demo, from the start of its processes to the result. It belongs to the main thread: when
/// that ends, so does every process.
package final class DemoRun {
    let options: DemoOptions
    let fleet: ProcessFleet
    let display: DemoDisplay
    private var observer: DemoObserver
    private var line: SimulatorLine?
    var schedule = CommandSchedule()
    private var script: DisturbanceScript
    let kills: FileHandle
    var figures = DemoFigures()
    private(set) var messages: [String] = []
    var nextVictim = 0
    /// A sentence for each worker that ended without being killed and was replaced.
    private(set) var ownEndings: [String] = []
    /// How often the key `q` was pressed.
    var endKeys = 0
    private let startedAt: Int64
    private var runningSince: ContinuousClock.Instant?
    private var nextStatus = ContinuousClock.now
    private let page: DemoPage
    private var nextPage = ContinuousClock.now

    private static let turn = Duration.milliseconds(50)
    private static let statusInterval = Duration.milliseconds(200)
    private static let pageInterval = Duration.milliseconds(500)
    /// The most workers that end by themselves and are replaced.
    private static let ownEndingsMax = 20
    // Registrations are written first, and the machine may be compiling something besides.
    private static let startMax = Duration.seconds(180)
    /// How recent an accepted push must be for the fleet to count as working.
    private static let workingSpan = Duration.seconds(1)
    /// How long to wait for the pushes that are left after the last event: a kill costs the group's
    /// session, and a push that was refused or not answered is sent again within seconds.
    private static let drainMax = Duration.seconds(45)
    private static let endMax = Duration.seconds(8)

    package init(_ options: DemoOptions) throws {
        self.options = options
        startedAt =
            options.startedAt.map { Int64($0 * 1e9) } ?? SystemClock.wallNanoseconds()
        StopRequests.count()
        display = try DemoDisplay(isJSON: options.isJSON, recording: options.recording)
        let directory =
            try options.directory.map { URL(filePath: $0).path } ?? RunFolder.temporary()
        fleet = try ProcessFleet(try options.fleetPlan(directory: directory))
        let neighbourhood = Neighbourhood(installations: options.installations)
        observer = DemoObserver(
            neighbourhood, events: fleet.path("events.ndjson"),
            answers: fleet.path("answers.ndjson"), reports: fleet.path("traffic.log"))
        script = DisturbanceScript(duration: options.duration)
        page = DemoPage(.init(workerPorts: Array(repeating: nil, count: options.workers)))
        let killsLog = fleet.path("kills.ndjson")
        _ = FileManager.default.createFile(atPath: killsLog, contents: nil)
        guard let kills = FileHandle(forWritingAtPath: killsLog) else {
            throw FleetError(description: "\(killsLog) cannot be written")
        }
        self.kills = kills
        figures.duration = Int(options.duration.components.seconds)
        figures.installations = neighbourhood.installations
    }

    /// Runs the demo.
    ///
    /// - Throws: the error that prevented a result. No process is left running in either case. The
    ///   logs are kept if there is a failure to examine.
    package func run() throws -> Result {
        do {
            let result = try runToResult()
            display.close(messages)
            let isKept = result == .failed || options.directory != nil
            if isKept { keepEvidence() }
            fleet.end(within: Self.endMax)
            if !isKept { fleet.removeLogs() }
            return result
        } catch {
            display.close(messages)
            fleet.end(within: Self.endMax)
            display.tell("the logs are in \(fleet.plan.directory)")
            throw error
        }
    }

    private func runToResult() throws -> Result {
        guard try start() else {
            display.close(messages)
            display.warn("no result: ended before the first event")
            return .none
        }
        try disturb()
        guard try drain() else {
            let waiting = observer.owed.waiting.grouped
            display.close(messages)
            display.warn("ended early: \(waiting) pushes not awaited, no result")
            for ending in ownEndings { display.warn(ending) }
            return ownEndings.isEmpty ? .none : .failed
        }
        return try judge()
    }

    // MARK: Phases

    /// Starts the fleet and its traffic; false if the demo was ended before the first event.
    private func start() throws -> Bool {
        page.start()
        try fleet.startKafka()
        try fleet.startAPNS()
        guard try watch("the simulators", Self.startMax, until: { fleet.simulatorsServe() })
        else { return false }
        line = try SimulatorLine(port: fleet.addresses.controlPort)
        say("Kafka \(fleet.bootstrap) · APNs \(fleet.addresses.host):\(fleet.addresses.port)")
        try fleet.writeConfiguration()
        try fleet.makeRegistrarKey()
        try fleet.startRegistrar()
        try fleet.startWorkers()
        guard try watch("the registrar", Self.startMax, until: { fleet.registrarServes() })
        else { return false }
        try fleet.startTraffic()
        say(
            "\(options.workers) workers; \(figures.installations.grouped) installations register at "
                + fleet.registrarURL)
        guard
            try watch(
                "the first event", Self.startMax, until: { observer.traffic.phase == .running })
        else { return false }
        try fleet.startPhones(
            count: options.phones,
            subjects: Neighbourhood(installations: options.installations).homes,
            rate: DemoOptions.changeRate)
        return true
    }

    private func disturb() throws {
        figures.phase = .running
        let start = ContinuousClock.now
        runningSince = start
        while endRequests == 0 {
            let elapsed = ContinuousClock.now - start
            // If little flows, the script may not have reached its first kills; then the demo waits
            // for them.
            let awaitsKill = figures.isScripted && script.awaitsFirstKills
            guard elapsed < options.duration + (awaitsKill ? Self.startMax : .zero) else { break }
            try followScript()
            try turn()
        }
    }

    private func followScript() throws {
        guard figures.isScripted, let first = observer.owed.acceptedFirstAt,
            let last = observer.owed.acceptedLastAt
        else { return }
        let now = SystemClock.wallNanoseconds()
        let isWorking = .nanoseconds(now - last) < Self.workingSpan
        for disturbance in script.due(at: .nanoseconds(now - first), isWorking: isWorking) {
            try perform(disturbance)
        }
    }

    /// Waits for the pushes that are left. False if the end was requested before all had arrived:
    /// those missing then cannot be told from lost ones.
    private func drain() throws -> Bool {
        figures.phase = .draining
        let asked = endRequests
        _ = fleet.traffic?.say("quit")
        fleet.phones?.signal(SIGTERM)
        let patience = Patience(Self.drainMax)
        while !patience.isOver {
            try turn()
            let isQuiet = observer.traffic.phase == .ended && observer.owed.waiting == 0
            if isQuiet, fleet.phones?.isRunning != true { return true }
            if endRequests > asked { return false }
        }
        let waiting = observer.owed.waiting.grouped
        say("\(waiting) pushes still wait; what has not arrived by now counts as lost")
        return true
    }

    // MARK: One turn

    /// Takes turns until the condition holds; false if the end was requested before.
    private func watch(
        _ what: String, _ limit: Duration, until condition: () throws -> Bool
    ) throws -> Bool {
        let patience = Patience(limit)
        while try !condition() {
            guard !patience.isOver else {
                throw FleetError(description: "waited \(limit) for \(what)")
            }
            try turn()
            if endRequests > 0 { return false }
        }
        return true
    }

    /// How often the end was requested, by Ctrl-C, SIGTERM or `q`.
    var endRequests: Int { StopRequests.received + endKeys }

    func turn() throws {
        let now = ContinuousClock.now
        try lookAfterProcesses()
        let accepted = observer.owed.accepted
        observer.look(now: now)
        if accepted == 0, let first = observer.owed.acceptedFirstAt {
            let seconds = Double(first - startedAt) / 1e9
            say("first push accepted \((seconds * 10).rounded() / 10) s after the start")
        }
        talkToSimulator(now)
        fillFigures(now)
        fillPage(now)
        display.show(figures, messages: messages)
        for key in display.pause(Self.turn) { try press(key) }
    }

    private func lookAfterProcesses() throws {
        try fleet.requireSimulators()
        for ended in try fleet.replaceEndedWorkers() {
            let worker = "worker \(ended.index + 1)"
            say("\(worker) has \(ended.ending.words) by itself; started another")
            ownEndings.append(
                "\(worker) ended by itself: it has \(ended.ending.words): \(ended.lastWords)")
        }
        guard ownEndings.count <= Self.ownEndingsMax else {
            throw FleetError(
                description: "the workers keep ending: \(fleet.tail("worker-1.log"))")
        }
        guard let ending = fleet.traffic?.ending, observer.traffic.phase != .ended else { return }
        // The last lines of the traffic generator may not have been read yet.
        observer.look(now: .now)
        guard observer.traffic.phase != .ended else { return }
        throw FleetError(
            description: "the traffic has \(ending.words): \(fleet.tail("traffic-errors.log"))")
    }

    private func talkToSimulator(_ now: ContinuousClock.Instant) {
        guard let line else { return }
        for command in schedule.due(now: now) { line.say(command) }
        if now >= nextStatus {
            nextStatus = now + Self.statusInterval
            line.say("status")
        }
        line.listen(
            onStatus: { observer.inFlight = $0.requestsOpen }, onProblem: { say($0) })
    }

    private func fillFigures(_ now: ContinuousClock.Instant) {
        if let runningSince { figures.seconds = Int((now - runningSince).components.seconds) }
        figures.workers = fleet.workers.map {
            DemoFigures.Worker(
                process: $0.process.identifier,
                seconds: Int((now - $0.startedAt).components.seconds))
        }
        observer.fill(&figures, wallNow: SystemClock.wallNanoseconds())
        figures.messages = Array(messages.suffix(6))
    }

    private func fillPage(_ now: ContinuousClock.Instant) {
        if figures.page == nil, let address = page.address {
            figures.page = address
            say("the live page is at \(address)")
        }
        guard now >= nextPage else { return }
        nextPage = now + Self.pageInterval
        // Those that have not been started yet too, or a page that is opened early would have no
        // worker to choose.
        let ports = fleet.workers.map(\.process.adminPort)
        let missing = max(0, options.workers - ports.count)
        page.show(
            DemoPage.Figures(
                workerPorts: ports + Array(repeating: nil, count: missing),
                acceptedAt: observer.owed.acceptedLast(ofInstallations: DemoPage.devicesMax),
                installations: figures.installations))
    }

    func say(_ message: String) {
        guard runningSince != nil else {
            messages.append(message)
            return
        }
        messages.append("\(DurationText.clock(figures.seconds)) \(message)")
    }
}
