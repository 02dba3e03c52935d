// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import LinuxIO

/// The processes of a demo or of a round of chaos, and the folder that they share. All of them end
/// with this one.
final class DemoFleet {
    let plan: FleetPlan
    private let environment: [String]
    private var kafka: ChildProcess?
    private var apns: ChildProcess?
    private(set) var traffic: ChildProcess?
    private(set) var workers: [Worker] = []
    private(set) var bootstrap = ""
    private(set) var addresses = SimulatorAddresses()

    struct Worker {
        var process: ChildProcess
        var startedAt: ContinuousClock.Instant
    }

    /// From the last registration to the first event: a group's first join takes 3 s in the
    /// embedded Kafka, and there is nothing to see before.
    private static let trafficSettle = Duration.seconds(3)

    init(_ plan: FleetPlan) throws {
        self.plan = plan
        // Variables of that name are the configuration's, and this one is the fleet's own.
        environment = ProcessInfo.processInfo.environment
            .filter { !$0.key.hasPrefix("LAMPLIGHTER_") }.map { "\($0.key)=\($0.value)" }
        try RunFolder.prepare(plan.directory)
    }

    func path(_ name: String) -> String { "\(plan.directory)/\(name)" }

    // MARK: Starting

    func startSimulators() throws {
        if let kafka = plan.kafka {
            bootstrap = kafka
        } else {
            kafka = try start(
                "kafka",
                [
                    "simulate", "kafka", "--topics", plan.topics, "--bootstrap-file",
                    path("bootstrap"),
                ])
        }
        try startAPNS()
    }

    private func startAPNS() throws {
        apns = try start(
            "apns",
            [
                "simulate", "apns", "--address-file", path("addresses"), "--control", "0",
                "--port", "\(addresses.port)", "--log", path("answers.ndjson"),
                "--ca-file", path("ca.pem"), "--identity", path("apns.pem"),
                addresses.isComplete ? "--key-file" : "--key-out", path("AuthKey.p8"),
                "--team", FleetPlan.team, "--key-id", FleetPlan.keyID, "--app", FleetPlan.app,
                "--delay", "uniform 1ms..4ms", "--command",
                "answer 410:Unregistered token \(Neighbourhood.goneTokenPrefix)",
            ])
    }

    /// Ends the simulator in order and starts it again on the same port, with the same key and
    /// certificate; it has forgotten the rest. Where it is to be controlled is known when
    /// `simulatorsServe()` again.
    func restartAPNS() throws {
        guard let old = apns else { return }
        end([old], by: .now + .seconds(5))
        apns = nil
        try FileManager.default.removeItem(atPath: path("addresses"))
        try startAPNS()
    }

    /// True when both have said where they are.
    func simulatorsServe() throws -> Bool {
        let addresses = SimulatorAddresses(read("addresses"))
        guard addresses.isComplete else { return false }
        if bootstrap.isEmpty {
            let bootstrap = read("bootstrap")
            guard bootstrap.hasSuffix("\n") else { return false }
            self.bootstrap = bootstrap.trimmingCharacters(in: .newlines)
        }
        self.addresses = addresses
        return true
    }

    func writeConfiguration() throws {
        try plan.configuration(bootstrap: bootstrap, apns: addresses).write(
            toFile: path("lamplighter.yaml"), atomically: true, encoding: .utf8)
    }

    /// For a Kafka that has none of them yet.
    func startTopicCreation() throws -> ChildProcess {
        try start("topics", ["topics", "create", "--config", path("lamplighter.yaml")])
    }

    func startWorkersAndTraffic() throws {
        for index in plan.transports.indices { workers.append(try startWorker(index)) }
        traffic = try start(
            "traffic",
            [
                "simulate", "traffic", "--bootstrap", bootstrap, "--group", plan.prefix,
                "--events-topic", plan.topic("events"), "--registrations-topic",
                plan.topic("registrations"), "--events-log", path("events.ndjson"), "--settle",
                "\(Self.trafficSettle / .seconds(1))",
            ] + plan.traffic, errors: path("traffic-errors.log"))
    }

    private func startWorker(_ index: Int) throws -> Worker {
        let process = try start(
            "worker-\(index + 1)", ["run", "--config", path("lamplighter.yaml")],
            variables: ["LAMPLIGHTER_APNS_TRANSPORT=\(plan.transports[index])"])
        return Worker(process: process, startedAt: .now)
    }

    private func start(
        _ name: String, _ arguments: [String], variables: [String] = [], errors: String? = nil
    ) throws -> ChildProcess {
        try ChildProcess(
            executable: plan.program, arguments: arguments, environment: environment + variables,
            output: path("\(name).log"), errors: errors)
    }

    // MARK: Running

    /// Kills the worker at once and starts another in its place.
    func killWorker(_ index: Int) throws {
        workers[index].process.signal(9)
        workers[index] = try startWorker(index)
    }

    /// A worker that has ended without being killed.
    struct EndedWorker {
        /// Position in `workers`.
        var index: Int
        var ending: ChildProcess.Ending
        /// The end of its log.
        var lastWords: String
    }

    /// Starts another worker in the place of each that has ended.
    func replaceEndedWorkers() throws -> [EndedWorker] {
        var ended: [EndedWorker] = []
        for index in workers.indices {
            guard let ending = workers[index].process.poll() else { continue }
            // The next one writes into the same log.
            let lastWords = tail("worker-\(index + 1).log")
            ended.append(EndedWorker(index: index, ending: ending, lastWords: lastWords))
            workers[index] = try startWorker(index)
        }
        return ended
    }

    /// False when the embedded Kafka does not take the command, or when there is none.
    func tellKafka(_ command: String) -> Bool { kafka?.say(command) ?? false }

    /// Nothing can go on without them.
    func requireSimulators() throws {
        for (name, process) in [("kafka", kafka), ("apns", apns)] {
            guard let ending = process?.poll() else { continue }
            throw DemoError(description: "\(name) has \(ending.words): \(tail("\(name).log"))")
        }
    }

    /// The lines of a log that say why its program has ended.
    func tail(_ name: String) -> String { LogExcerpt.text(of: read(name)) }

    /// How many partitions the workers have given up, by their logs; one that is killed says nothing.
    func partitionsGivenUp() -> Int {
        workers.indices.reduce(0) { sum, index in
            read("worker-\(index + 1).log").split(separator: "\n").reduce(sum) { sum, line in
                guard line.hasSuffix(" given up") else { return sum }
                let count = line.firstMatch(of: /partitions=(\d+)/).flatMap { Int($0.1) }
                return sum + (count ?? 0)
            }
        }
    }

    private func read(_ name: String) -> String {
        (try? String(contentsOfFile: path(name), encoding: .utf8)) ?? ""
    }

    // MARK: Ending

    /// The checker, on its way: its report in `verdict.json`, its words in `verdict.log`.
    func startChecker(kills: String) throws -> ChildProcess {
        for name in ["verdict.json", "verdict.log"] {
            // Of an earlier look.
            try? FileManager.default.removeItem(atPath: path(name))
        }
        return try ChildProcess(
            executable: plan.checker,
            arguments: [
                "--events", path("events.ndjson"), "--answers", path("answers.ndjson"),
                "--bootstrap", bootstrap, "--registrations", plan.topic("registrations"),
                "--dead-letters", plan.topic("dead-letters"), "--verdicts",
                plan.topic("verdicts"), "--settle", "\(plan.settle / .seconds(1))",
                "--kills-log", kills,
            ], environment: environment, output: path("verdict.json"),
            errors: path("verdict.log"))
    }

    func verdict() -> (json: String, lines: [String]) {
        let lines = read("verdict.log").split(separator: "\n").map {
            String($0.trimmingPrefix("lamplighter-check: "))
        }
        return (read("verdict.json"), lines)
    }

    /// Asks the workers to stop and says how each has ended; those that did not in time are killed.
    func endWorkers(within limit: Duration) -> [ChildProcess.Ending?] {
        let processes = workers.map(\.process)
        workers = []
        end(processes, by: .now + limit)
        return processes.map { $0.poll() }
    }

    /// Ends everything, in order as long as that takes no longer than so: workers first, so that
    /// they drain while the others still answer.
    func end(within limit: Duration) {
        let deadline = ContinuousClock.now + limit
        end(workers.map(\.process) + [traffic].compactMap(\.self), by: deadline)
        end([apns, kafka].compactMap(\.self), by: deadline)
        workers = []
        (traffic, apns, kafka) = (nil, nil, nil)
    }

    func removeLogs() { try? FileManager.default.removeItem(atPath: plan.directory) }

    private func end(_ processes: [ChildProcess], by deadline: ContinuousClock.Instant) {
        for process in processes { process.signal(15) }
        while processes.contains(where: { $0.poll() == nil }), ContinuousClock.now < deadline {
            Thread.sleep(forTimeInterval: 0.02)
        }
        // The rest is killed as it is let go.
    }
}

extension ChildProcess.Ending {
    var words: String {
        switch self {
        case .exited(let status): "exited with \(status)"
        case .killed(let signal): "been ended by signal \(signal)"
        }
    }
}
