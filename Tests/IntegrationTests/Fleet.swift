// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import FleetKit
import Foundation
import Glibc
import KafkaLog
import Logging
import PushModel
import Synchronization

/// Workers of the program as it is shipped, with a Kafka and an APNs: everything that a test needs
/// from end to end. All of it ends with the fleet.
///
/// The Kafka is the embedded one in a process of its own, or, where `LAMPLIGHTER_TEST_BOOTSTRAP`
/// says so, any other. The APNs is the simulator, in this process so that its requests can be seen.
final class Fleet: Sendable {
    /// The fleet of the running test's suite.
    @TaskLocal static var current: Fleet?

    static let testBootstrap = ProcessInfo.processInfo.environment["LAMPLIGHTER_TEST_BOOTSTRAP"]

    let processes: ProcessFleet
    let simulator: APNSSimulator
    private let producer: Mutex<RecordProducer>
    /// Programs that were run to their end.
    private let commands = Mutex<[FleetProcess]>([])

    var directory: URL { URL(filePath: processes.plan.directory) }
    var topics: FleetTopics { processes.plan.topics }
    var bootstrap: String { processes.bootstrap }
    var configurationFile: URL { URL(filePath: processes.configurationFile) }
    /// The embedded Kafka; nil if the tests use another one.
    var broker: FleetProcess? { processes.kafka }

    init(_ plan: TestPlan = TestPlan()) async throws {
        let processes = try ProcessFleet(try plan.fleetPlan())
        self.processes = processes
        let directory = URL(filePath: processes.plan.directory)
        try plan.writeKeys(into: directory)
        try processes.startKafka()
        try await waitUntil("Kafka") {
            try processes.requireSimulators()
            return processes.kafkaServes()
        }
        simulator = try Self.startSimulator(plan, directory)
        try processes.writeConfiguration(
            endpoints: PushEnvironment.allCases.map { [simulator] in
                .init($0, host: "127.0.0.1", port: simulator.port(of: $0) ?? 0)
            })
        if Self.testBootstrap != nil {
            let creation = try processes.startTopicCreation(
                partitions: Int(FleetTopics.partitionsEach))
            guard try await creation.finish() == 0 else {
                throw Timeout(description: creation.excerpt)
            }
        }
        let topics = processes.plan.topics
        producer = Mutex(
            try RecordProducer(
                settings: KafkaClientSettings(bootstrap: processes.bootstrap, group: ""),
                topics: FleetTopics.Written.allCases.map { topics[$0] },
                logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })))
        for _ in 0..<plan.workers { try startWorker() }
    }

    deinit {
        simulator.stop()
        processes.removeLogs()
    }

    /// Ends every process at once.
    func end() {
        for process in commands.withLock({ $0 }) { process.signal(SIGKILL) }
        processes.end(within: .zero)
        simulator.stop()
    }

    private static func startSimulator(_ plan: TestPlan, _ directory: URL) throws -> APNSSimulator {
        var options = SimulatorOptions()
        options.listeners = PushEnvironment.allCases.map { SimulatorListener(environment: $0) }
        options.certificate = .generated(caFile: directory.appending(path: "ca.pem").path)
        options.logPath = directory.appending(path: "answers.ndjson").path
        options.keys = [SigningTeam.home, .homeNext, .other].map(\.simulatorKey)
        options.apps = SigningTeam.home.simulatorApps + SigningTeam.other.simulatorApps
        options.pushTypes = plan.addedPushType.map { [$0] } ?? []
        options.channels = plan.channels
        options.recordRequests = plan.recordRequests
        options.delay = .fixed(plan.answerDelay)
        let simulator = try APNSSimulator(options)
        try simulator.start()
        return simulator
    }

    /// Those that are built beside the tests, unless `LAMPLIGHTER_PROGRAMS` names the folder of
    /// others.
    static var programs: FleetPrograms {
        get throws {
            let folder = ProcessInfo.processInfo.environment["LAMPLIGHTER_PROGRAMS"]
            return try FleetPrograms(
                in: folder.map { URL(filePath: $0) }
                    ?? URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent())
        }
    }

    static var program: String { get throws { try programs.lamplighter } }
    static var lab: String { get throws { try programs.lab } }

    // MARK: Workers

    /// In the order of their starts, also those that have ended.
    var workers: [FleetProcess] { processes.workers.map(\.process) }

    @discardableResult
    func startWorker() throws -> FleetProcess { try processes.startWorker() }

    /// Runs a command to its end.
    /// - Parameter program: by default ours.
    func run(
        _ arguments: [String], program: String? = nil, input: String = "",
        variables: [String: String] = [:]
    ) async throws -> CommandResult {
        let program = try program ?? Self.program
        let process = try commands.withLock { commands in
            let name = "command-\(commands.count)"
            let process = try FleetProcess(
                name, program: program, arguments: arguments, variables: variables,
                log: directory.appending(path: "\(name).log").path, input: input)
            commands.append(process)
            return process
        }
        let status = try await process.finish()
        return CommandResult(status: status, output: process.output)
    }

    /// What APNs has answered so far, by the simulator's log.
    func answers() throws -> [LoggedOutcome] {
        try LoggedOutcome.all(in: directory.appending(path: "answers.ndjson").path)
    }

    /// Waits for a condition. On failure it shows the workers' logs.
    func eventually(
        _ what: String, within limit: Duration = .seconds(60), _ condition: () throws -> Bool
    ) async throws {
        do {
            try await waitUntil(what, within: limit) {
                if try condition() { return true }
                let workers = workers
                guard workers.isEmpty || workers.contains(where: \.isRunning) else {
                    throw Timeout(description: "no worker runs any more: waited for \(what)")
                }
                return false
            }
        } catch {
            let excerpts = (workers + commands.withLock { $0 }).map(\.excerpt).joined(
                separator: "\n")
            throw Timeout(description: "\(error)\n\(excerpts)\n\(simulator.counts)")
        }
    }

    // MARK: Records

    /// Returns when the broker has acknowledged the record.
    /// - Parameter partition: nil lets the key choose.
    func write(
        to topic: FleetTopics.Written, key: String?, value: String?, partition: Int32? = nil
    ) throws {
        try write([
            WrittenRecord(topic: topic, key: key, value: value, partition: partition)
        ])
    }

    func write(_ records: [WrittenRecord]) throws {
        try producer.withLock { producer in
            var failures: [String] = []
            for record in records {
                let acceptance = record.lend { key, value in
                    producer.produce(
                        topic: record.topic.rawValue, partition: record.partition, key: key,
                        value: value, ticket: 0)
                }
                if acceptance != .accepted { failures.append("\(acceptance)") }
            }
            if !producer.flush(timeout: .seconds(20)) { failures.append("not acknowledged") }
            producer.poll(now: .current) { _, error in
                if let error { failures.append("\(error)") }
            }
            if !failures.isEmpty { throw Timeout(description: failures.joined(separator: ", ")) }
        }
    }
}

struct CommandResult: Sendable {
    let status: Int32
    /// Standard output and standard error.
    let output: String
}

struct WrittenRecord: Sendable {
    var topic: FleetTopics.Written
    var key: String?
    var value: String?
    var partition: Int32?

    func lend<Result>(
        _ body: (UnsafeRawBufferPointer?, UnsafeRawBufferPointer?) -> Result
    ) -> Result {
        let key = key.map { Array($0.utf8) }
        let value = value.map { Array($0.utf8) }
        func lend(
            _ bytes: [UInt8]?, _ body: (UnsafeRawBufferPointer?) -> Result
        ) -> Result {
            bytes.map { $0.withUnsafeBytes { body($0) } } ?? body(nil)
        }
        return lend(key) { key in lend(value) { value in body(key, value) } }
    }
}
