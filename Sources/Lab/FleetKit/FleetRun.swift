// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import LinuxIO
internal import PushModel

/// Runs a fleet until it is told to end, and carries out commands from standard input.
package struct FleetRun {
    private let fleet: ProcessFleet
    private let apnsPort: UInt16?
    private let topicPartitions: Int?
    private var input = StandardInputLines()
    /// The workers that are said to have ended.
    private var ended: Set<Int32> = []

    private static let turn = Duration.milliseconds(50)
    private static let startMax = Duration.seconds(60)
    private static let endMax = Duration.seconds(25)

    /// - Parameters:
    ///   - apnsPort: the port of an existing simulator; nil for one of the fleet's own.
    ///   - topicPartitions: the number of partitions of each topic on an existing Kafka; nil for
    ///     the default of `topics create`.
    package init(_ plan: FleetPlan, apnsPort: UInt16?, topicPartitions: Int?) throws {
        fleet = try ProcessFleet(plan)
        self.apnsPort = apnsPort
        self.topicPartitions = topicPartitions
    }

    /// A line of standard output.
    private struct Report: Encodable {
        var bootstrap: String
        var apnsPort: UInt16
        var workers: [Int32]
    }

    /// Runs the fleet until it has been told to end and has ended.
    package mutating func run(workers: Int) throws {
        StopRequests.count()
        defer { fleet.end(within: Self.endMax) }
        guard try startSimulators() else { return }
        try start(workers, variables: [:])
        while let lines = try turn() {
            for line in lines {
                let words = line.split(separator: " ").map(String.init)
                guard words.first == "workers", words.count > 1, let count = Int(words[1]) else {
                    if line == "quit" { return }
                    throw FleetError(description: "'\(line)' is neither 'workers N' nor 'quit'")
                }
                for ending in fleet.endWorkers(within: Self.endMax) where ending != .exited(0) {
                    throw FleetError(
                        description: "a worker has \(ending?.words ?? "not ended in time")")
                }
                try start(count, variables: try Self.variables(words.dropFirst(2)))
            }
        }
    }

    /// Starts the simulators; false if the end was requested before they served.
    private mutating func startSimulators() throws -> Bool {
        try fleet.startKafka()
        if apnsPort == nil { try fleet.startAPNS() }
        let ownAPNS = apnsPort == nil
        guard
            try wait(
                "the simulators", { ownAPNS ? $0.simulatorsServe() : $0.kafkaServes() })
        else { return false }
        try fleet.writeConfiguration(
            endpoints: apnsPort.map { [.init(.production, host: "127.0.0.1", port: $0)] })
        guard fleet.plan.kafka != nil else { return true }
        let creation = try fleet.startTopicCreation(partitions: topicPartitions)
        guard try wait("the topics", { _ in !creation.isRunning }) else { return false }
        guard creation.ending == .exited(0) else {
            throw FleetError(description: "no topics: \(fleet.tail("topics.log"))")
        }
        return true
    }

    private func start(_ count: Int, variables: [String: String]) throws {
        for _ in 0..<count { try fleet.startWorker(variables: variables) }
        let report = Report(
            bootstrap: fleet.bootstrap, apnsPort: apnsPort ?? fleet.addresses.port,
            workers: fleet.workers.map(\.process.identifier))
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        StandardOutput.write(String(decoding: try encoder.encode(report), as: UTF8.self) + "\n")
    }

    /// The environment variables of settings: `delivery.threads=2` sets
    /// LAMPLIGHTER_DELIVERY_THREADS.
    private static func variables(_ words: ArraySlice<String>) throws -> [String: String] {
        var variables: [String: String] = [:]
        for word in words {
            let parts = word.split(separator: "=", maxSplits: 1)
            guard parts.count == 2 else {
                throw FleetError(description: "'\(word)' is not key=value")
            }
            variables[WorkerConfiguration.variable(of: String(parts[0]))] = String(parts[1])
        }
        return variables
    }

    private mutating func wait(
        _ what: String, _ condition: (ProcessFleet) -> Bool
    ) throws -> Bool {
        let deadline = ContinuousClock.now + Self.startMax
        while !condition(fleet) {
            guard ContinuousClock.now < deadline else {
                throw FleetError(description: "waited \(Self.startMax) for \(what)")
            }
            guard try turn() != nil else { return false }
        }
        return true
    }

    /// Takes a turn: the new lines of standard input, or nil when it is time to end.
    private mutating func turn() throws -> [String]? {
        try fleet.requireSimulators()
        for worker in fleet.workers {
            guard let ending = worker.process.ending else { continue }
            let name = worker.process.name
            guard ending == .exited(0) else {
                throw FleetError(
                    description: "\(name) has \(ending.words): \(fleet.tail("\(name).log"))")
            }
            guard ended.insert(worker.process.identifier).inserted else { continue }
            // Standard output has the reports alone.
            try? FileHandle.standardError.write(
                contentsOf: Data(
                    """
                    \(name) has ended in order, as after SIGTERM; the fleet goes on without it, and \
                    'workers N' starts others\n
                    """.utf8))
        }
        guard StopRequests.received == 0 else { return nil }
        return input.next(waiting: Self.turn)
    }
}
