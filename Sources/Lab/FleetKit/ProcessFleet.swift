// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
package import LinuxIO
internal import Synchronization

/// The processes of a fleet, and the folder that they share. All of them end with this process.
package final class ProcessFleet: Sendable {
    package let plan: FleetPlan
    private let state = Mutex(State())

    private struct State: Sendable {
        var kafka: FleetProcess?
        var apns: FleetProcess?
        var registrar: FleetProcess?
        var traffic: FleetProcess?
        var phones: FleetProcess?
        var workers: [Worker] = []
        var bootstrap = ""
        var addresses = SimulatorAddresses()
    }

    package struct Worker: Sendable {
        package fileprivate(set) var process: FleetProcess
        package fileprivate(set) var startedAt: ContinuousClock.Instant
        fileprivate var variables: [String: String]
    }

    /// The time from the last registration to the first event: a group's first join takes 3 s in
    /// the embedded Kafka, and nothing is delivered before.
    private static let trafficGrace = Duration.seconds(3)
    /// How long a process may take to end once it is killed.
    private static let killMax = Duration.seconds(60)

    package init(_ plan: FleetPlan) throws {
        self.plan = plan
        try RunFolder.prepare(plan.directory)
    }

    package func path(_ name: String) -> String { "\(plan.directory)/\(name)" }

    package var bootstrap: String { state.withLock(\.bootstrap) }
    package var addresses: SimulatorAddresses { state.withLock(\.addresses) }
    /// The embedded Kafka; nil if the plan names another one.
    package var kafka: FleetProcess? { state.withLock(\.kafka) }
    package var registrar: FleetProcess? { state.withLock(\.registrar) }
    package var traffic: FleetProcess? { state.withLock(\.traffic) }
    /// Those that `startPhones` started.
    package var phones: FleetProcess? { state.withLock(\.phones) }
    /// The workers, in the order of their first starts.
    package var workers: [Worker] { state.withLock(\.workers) }

    // MARK: Starting

    package func startKafka() throws {
        if let kafka = plan.kafka {
            state.withLock { $0.bootstrap = kafka }
            return
        }
        let kafka = try start(
            "kafka", plan.programs.lab,
            [
                "simulate", "kafka", "--topics", plan.topics.simulatorArgument,
                "--bootstrap-file", path("bootstrap"),
            ])
        state.withLock { $0.kafka = kafka }
    }

    /// Whether Kafka has reported its address.
    package func kafkaServes() -> Bool {
        guard bootstrap.isEmpty else { return true }
        let text = read("bootstrap")
        guard text.hasSuffix("\n") else { return false }
        state.withLock { $0.bootstrap = text.trimmingCharacters(in: .newlines) }
        return true
    }

    package func startAPNS() throws {
        let addresses = addresses
        let apns = try start(
            "apns", plan.programs.lab,
            [
                "simulate", "apns", "--address-file", path("addresses"), "--control", "0",
                "--port", "\(addresses.port)", "--log", path("answers.ndjson"),
                "--ca-file", path("ca.pem"), "--identity", path("apns.pem"),
                addresses.isComplete ? "--key-file" : "--key-out", path("AuthKey.p8"),
                "--team", FleetPlan.team, "--key-id", FleetPlan.keyID, "--app",
                Neighbourhood.app, "--delay", "uniform 1ms..4ms", "--command",
                "answer 410:Unregistered token \(Neighbourhood.goneTokenPrefix)",
            ])
        state.withLock { $0.apns = apns }
    }

    /// Ends the simulator in order and starts it again on the same port, with the same key and
    /// certificate; it forgets everything else. Its control port is known once `simulatorsServe()`
    /// is true again.
    package func restartAPNS() throws {
        guard let old = state.withLock(\.apns) else { return }
        end([old], by: .now + .seconds(5))
        state.withLock { $0.apns = nil }
        try FileManager.default.removeItem(atPath: path("addresses"))
        try startAPNS()
    }

    /// Whether Kafka and the APNs simulator have reported their addresses.
    package func simulatorsServe() -> Bool {
        let addresses = SimulatorAddresses(read("addresses"))
        guard addresses.isComplete, kafkaServes() else { return false }
        state.withLock { $0.addresses = addresses }
        return true
    }

    /// Starts the creation of the topics, for a Kafka that has none of them yet.
    /// - Parameter partitions: the number of partitions of each topic; nil for the command's
    ///   default.
    package func startTopicCreation(partitions: Int? = nil) throws -> FleetProcess {
        try start(
            "topics", plan.programs.lamplighter,
            ["topics", "create", "--config", configurationFile]
                + (partitions.map { ["--partitions", "\($0)"] } ?? []))
    }

    package func startRegistrar() throws {
        let registrar = try start(
            "registrar", plan.programs.lamplighter, ["registrar", "--config", configurationFile])
        state.withLock { $0.registrar = registrar }
    }

    /// Kills the registrar at once and starts another in its place, on the same port.
    package func killRegistrar() throws {
        registrar?.signal(9)
        // Its threads of low priority need some processor time to end, and its port is taken until
        // then: seconds on a busy machine.
        guard hasEnded([registrar].compactMap(\.self), by: .now + Self.killMax) else {
            throw FleetError(description: "the registrar did not end when it was killed")
        }
        try startRegistrar()
    }

    /// Starts phones that register with the registrar, change what they show, and at SIGTERM
    /// compare it with what is registered. Their report is the last line of their log.
    package func startPhones(count: Int, subjects: Int, rate: Double) throws {
        let phones = try start(
            "phones", plan.programs.lab,
            [
                "simulate", "devices", "--registrar", registrarURL, "--key-file", registrarKeyFile,
                "--app", Neighbourhood.app, "--devices", "\(count)", "--subjects", "\(subjects)",
                "--rate", "\(rate)", "--duration", "24h", "--apns-log",
                path("answers.ndjson"),
            ], errors: path("phones-errors.log"))
        state.withLock { $0.phones = phones }
    }

    package func startTraffic() throws {
        let topics = plan.topics
        let traffic = try start(
            "traffic", plan.programs.lab,
            [
                "simulate", "traffic", "--bootstrap", bootstrap, "--group", topics.prefix,
                "--events-topic", topics.name(of: "events"), "--registrations-topic",
                topics.name(of: "registrations"), "--events-log", path("events.ndjson"),
                "--registration-grace", "\(Self.trafficGrace / .seconds(1))",
            ] + registrarOptions + plan.traffic, errors: path("traffic-errors.log"))
        state.withLock { $0.traffic = traffic }
    }

    private var registrarOptions: [String] {
        guard plan.configuration.registrarPort > 0 else { return [] }
        return ["--registrar", registrarURL, "--key-file", registrarKeyFile]
    }

    package func startWorkers() throws {
        for (number, transport) in plan.transports.enumerated() {
            let format = plan.logFormats[number % plan.logFormats.count]
            try startWorker(variables: [
                WorkerConfiguration.variable(of: "apns.transport"): transport,
                WorkerConfiguration.variable(of: "log.format"): format,
            ])
        }
    }

    /// Starts another worker.
    /// - Parameter variables: environment variables that override the fleet's configuration.
    @discardableResult
    package func startWorker(variables: [String: String] = [:]) throws -> FleetProcess {
        let worker = try start(worker: workers.count, variables)
        state.withLock { $0.workers.append(worker) }
        return worker.process
    }

    private func restartWorker(_ index: Int) throws {
        let worker = try start(worker: index, workers[index].variables)
        state.withLock { $0.workers[index] = worker }
    }

    private func start(worker index: Int, _ variables: [String: String]) throws -> Worker {
        let process = try start(
            "worker-\(index + 1)", plan.programs.lamplighter,
            ["run", "--config", configurationFile],
            variables: variables)
        return Worker(process: process, startedAt: .now, variables: variables)
    }

    private func start(
        _ name: String, _ program: String, _ arguments: [String],
        variables: [String: String] = [:], errors: String? = nil
    ) throws -> FleetProcess {
        try FleetProcess(
            name, program: program, arguments: arguments, variables: variables,
            log: path("\(name).log"), errors: errors)
    }

    // MARK: Running

    /// Kills the worker at once and starts another in its place.
    package func killWorker(_ index: Int) throws {
        workers[index].process.signal(9)
        try restartWorker(index)
    }

    /// A worker that has ended without being killed.
    package struct EndedWorker: Sendable {
        /// The position in `workers`.
        package var index: Int
        package var ending: ChildProcess.Ending
        /// The last important lines of its log.
        package var lastWords: String
    }

    /// Starts another worker in the place of each that has ended.
    package func replaceEndedWorkers() throws -> [EndedWorker] {
        var ended: [EndedWorker] = []
        for (index, worker) in workers.enumerated() {
            guard let ending = worker.process.ending else { continue }
            // The next worker writes to the same log.
            let lastWords = tail("worker-\(index + 1).log")
            ended.append(EndedWorker(index: index, ending: ending, lastWords: lastWords))
            try restartWorker(index)
        }
        return ended
    }

    /// Passes a command to the embedded Kafka; false if that fails, or if there is none.
    package func tellKafka(_ command: String) -> Bool { kafka?.say(command) ?? false }

    /// Throws if a simulator or the registrar has ended.
    package func requireSimulators() throws {
        for process in [kafka, state.withLock(\.apns), registrar].compactMap(\.self) {
            guard let ending = process.ending else { continue }
            let name = process.name
            throw FleetError(description: "\(name) has \(ending.words): \(tail("\(name).log"))")
        }
    }

    /// The lines of a log that show why its program has ended.
    package func tail(_ name: String) -> String { LogExcerpt.text(of: read(name)) }

    /// How many partitions the workers have logged as unassigned. A worker that is killed logs
    /// nothing.
    package func partitionsGivenUp() -> Int {
        workers.reduce(0) { $0 + WorkerLog.partitionsGivenUp(in: $1.process.output) }
    }

    private func read(_ name: String) -> String {
        (try? String(contentsOfFile: path(name), encoding: .utf8)) ?? ""
    }

    // MARK: Ending

    /// Starts the checker. Its report goes to `result.json`, its messages to `result.log`.
    package func startChecker(kills: String) throws -> FleetProcess {
        for name in ["result.json", "result.log"] {
            // The file may be left from an earlier check.
            try? FileManager.default.removeItem(atPath: path(name))
        }
        let topics = plan.topics
        return try FleetProcess(
            "verify", program: plan.programs.lab,
            arguments: [
                "verify", "--events", path("events.ndjson"), "--answers", path("answers.ndjson"),
                "--bootstrap", bootstrap, "--registrations", topics.name(of: "registrations"),
                "--dead-letters", topics.name(of: "dead-letters"), "--suppressions",
                topics.name(of: "suppressions"), "--registration-grace",
                "\(plan.configuration.registrationGrace / .seconds(1))", "--kills-log", kills,
            ], log: path("result.json"), errors: path("result.log"))
    }

    package func result() -> (json: String, lines: [String]) {
        let lines = read("result.log").split(separator: "\n").map {
            String($0.trimmingPrefix("lamplighter-lab: "))
        }
        return (read("result.json"), lines)
    }

    /// Asks the workers to stop, and returns how each has ended. Those that do not end in time are
    /// killed.
    package func endWorkers(within limit: Duration) -> [ChildProcess.Ending?] {
        let processes = workers.map(\.process)
        end(processes, by: .now + limit)
        state.withLock { $0.workers = [] }
        return processes.map(\.ending)
    }

    /// Ends all processes, and kills those that do not end in time. Workers come first, so that
    /// they can drain while the simulators still answer.
    package func end(within limit: Duration) {
        let deadline = ContinuousClock.now + limit
        let all = state.withLock { $0 }
        end(
            all.workers.map(\.process) + [all.traffic, all.phones].compactMap(\.self), by: deadline)
        end([all.registrar, all.apns, all.kafka].compactMap(\.self), by: deadline)
        state.withLock { state in
            state.workers = []
            (state.traffic, state.phones, state.registrar) = (nil, nil, nil)
            (state.apns, state.kafka) = (nil, nil)
        }
    }

    package func removeLogs() { try? FileManager.default.removeItem(atPath: plan.directory) }

    private func end(_ processes: [FleetProcess], by deadline: ContinuousClock.Instant) {
        for process in processes { process.signal(15) }
        guard !hasEnded(processes, by: deadline) else { return }
        for process in processes { process.signal(9) }
        _ = hasEnded(processes, by: .now + Self.killMax)
    }

    /// Waits until all of the processes have ended; false if the deadline comes first.
    func hasEnded(_ processes: [FleetProcess], by deadline: ContinuousClock.Instant) -> Bool {
        while processes.contains(where: \.isRunning) {
            guard ContinuousClock.now < deadline else { return false }
            Thread.sleep(forTimeInterval: 0.01)
        }
        return true
    }
}
