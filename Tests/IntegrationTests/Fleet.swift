// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
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
    /// Of the suite that the running test belongs to.
    @TaskLocal static var current: Fleet?

    static let testBootstrap = ProcessInfo.processInfo.environment["LAMPLIGHTER_TEST_BOOTSTRAP"]

    let directory: URL
    let topics: FleetTopics
    let bootstrap: String
    let simulator: APNSSimulator
    let configurationFile: URL
    /// Nil where the tests were given a Kafka.
    let broker: ChildProcess?
    private let producer: Mutex<RecordProducer>
    private let processes = Mutex<[ChildProcess]>([])

    init(_ plan: FleetPlan = FleetPlan()) async throws {
        directory = FileManager.default.temporaryDirectory.appending(
            path: "lamplighter-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        topics = FleetTopics()
        (bootstrap, broker) = try await Self.kafka(topics, directory)
        simulator = try Self.startSimulator(plan, directory)
        configurationFile = try plan.configuration(
            in: directory, bootstrap: bootstrap, topics: topics, simulator: simulator)
        producer = Mutex(
            try RecordProducer(
                settings: KafkaClientSettings(bootstrap: bootstrap, group: ""),
                topics: FleetTopics.Written.allCases.map { [topics] in topics[$0] },
                logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })))
        for _ in 0..<plan.workers { try startWorker() }
    }

    deinit {
        simulator.stop()
        try? FileManager.default.removeItem(at: directory)
    }

    /// Ends every process at once.
    func end() {
        for process in processes.withLock({ $0 }) { process.signal(SIGKILL) }
        broker?.signal(SIGKILL)
        simulator.stop()
    }

    private static func kafka(
        _ topics: FleetTopics, _ directory: URL
    ) async throws -> (String, ChildProcess?) {
        if let testBootstrap {
            try topics.create(bootstrap: testBootstrap)
            return (testBootstrap, nil)
        }
        let file = directory.appending(path: "bootstrap")
        let broker = try ChildProcess(
            "kafka", executable: try program,
            arguments: [
                "simulate", "kafka", "--topics", topics.argument, "--bootstrap-file", file.path,
            ], outputFile: directory.appending(path: "kafka.log"))
        var bootstrap = ""
        try await waitUntil("the embedded Kafka") {
            guard broker.isRunning else { throw Timeout(description: broker.tail) }
            bootstrap = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
            return bootstrap.hasSuffix("\n")
        }
        return (bootstrap.trimmingCharacters(in: .newlines), broker)
    }

    private static func startSimulator(_ plan: FleetPlan, _ directory: URL) throws -> APNSSimulator
    {
        var options = SimulatorOptions()
        options.listeners = PushEnvironment.allCases.map { SimulatorListener(environment: $0) }
        options.certificate = .generated(caFile: directory.appending(path: "ca.pem").path)
        options.logPath = directory.appending(path: "answers.ndjson").path
        options.keys = [SigningTeam.home, .homeNext, .other].map(\.simulatorKey)
        options.apps = SigningTeam.home.simulatorApps + SigningTeam.other.simulatorApps
        options.recordRequests = plan.recordRequests
        options.delay = .fixed(plan.answerDelay)
        let simulator = try APNSSimulator(options)
        try simulator.start()
        return simulator
    }

    /// `lamplighter`, which is built beside the tests.
    static var program: URL {
        get throws {
            if let path = ProcessInfo.processInfo.environment["LAMPLIGHTER_BINARY"] {
                return URL(filePath: path)
            }
            let beside = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
                .appending(path: "lamplighter")
            guard FileManager.default.isExecutableFile(atPath: beside.path) else {
                throw Timeout(description: "\(beside.path) is not there; set LAMPLIGHTER_BINARY")
            }
            return beside
        }
    }

    // MARK: Workers

    /// In the order of their starts, also those that have ended.
    var workers: [ChildProcess] {
        processes.withLock { $0.filter { $0.name.hasPrefix("worker") } }
    }

    @discardableResult
    func startWorker() throws -> ChildProcess {
        try start("worker", ["run", "--config", configurationFile.path])
    }

    /// Runs a command to its end, at most a minute.
    /// - Parameter program: by default ours.
    func run(
        _ arguments: [String], program: String? = nil, input: String = ""
    ) async throws -> CommandResult {
        let process = try start("command", arguments, program: program, input: input)
        let status = try await process.finish(within: .seconds(60))
        return CommandResult(status: status, output: process.output)
    }

    private func start(
        _ kind: String, _ arguments: [String], program: String? = nil, input: String? = nil
    ) throws -> ChildProcess {
        let executable = try program.map { URL(filePath: $0) } ?? Self.program
        return try processes.withLock { processes in
            let name = "\(kind)-\(processes.count)"
            let process = try ChildProcess(
                name, executable: executable, arguments: arguments,
                outputFile: directory.appending(path: "\(name).log"), input: input)
            processes.append(process)
            return process
        }
    }

    /// Waits, and shows what the workers have said where it was in vain.
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
            let tails = processes.withLock { $0 }.map(\.tail).joined(separator: "\n")
            throw Timeout(description: "\(error)\n\(tails)\n\(simulator.counts)")
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
    /// Both streams.
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
