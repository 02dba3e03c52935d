// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Foundation
internal import LinuxIO

/// The processes of a demo and the folder that they share. All of them end with this one.
final class DemoFleet {
    private let options: DemoOptions
    let directory: String
    private let isKept: Bool
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

    /// An event partition's 5 MiB are all that the embedded Kafka keeps of it; 16 of them hold a
    /// million events.
    private static let topics =
        "lamplighter.events:16,lamplighter.registrations:16,lamplighter.verdicts:4,"
        + "lamplighter.deferred:4,lamplighter.dead-letters:4"
    private static let team = "ABCDE12345"
    private static let keyID = "FGHIJ67890"
    /// `index.settle`. Nobody registers once there are events, and offsets that are held for less
    /// time leave less to be read again after a kill.
    private static let settleMilliseconds = 200
    /// From the last registration to the first event: a group's first join takes 3 s in the
    /// embedded Kafka, and there is nothing to see before.
    private static let trafficSettleSeconds = 3

    init(_ options: DemoOptions) throws {
        self.options = options
        isKept = options.directory != nil
        directory =
            options.directory.map { URL(filePath: $0).path }
            ?? FileManager.default.temporaryDirectory
            .appending(path: "lamplighter-demo-\(ProcessInfo.processInfo.processIdentifier)").path
        // Variables of that name are the configuration's, and this one is the demo's own.
        environment = ProcessInfo.processInfo.environment
            .filter { !$0.key.hasPrefix("LAMPLIGHTER_") }.map { "\($0.key)=\($0.value)" }
        try FileManager.default.createDirectory(
            atPath: directory, withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700])
        let files = try FileManager.default.contentsOfDirectory(atPath: directory)
        guard files.isEmpty else {
            throw DemoError(description: "\(directory) is not empty: two runs' logs would mix")
        }
    }

    func path(_ name: String) -> String { "\(directory)/\(name)" }

    // MARK: Starting

    func startSimulators() throws {
        kafka = try start(
            "kafka",
            [
                "simulate", "kafka", "--topics", Self.topics, "--bootstrap-file",
                path("bootstrap"),
            ])
        apns = try start(
            "apns",
            [
                "simulate", "apns", "--address-file", path("addresses"), "--control", "0",
                "--log", path("answers.ndjson"), "--ca-file", path("ca.pem"),
                "--key-out", path("AuthKey.p8"), "--team", Self.team, "--key-id", Self.keyID,
                "--app", Neighbourhood.app, "--delay", "uniform 1ms..4ms",
                "--command", "answer 410:Unregistered token \(Neighbourhood.goneTokenPrefix)",
            ])
    }

    /// True when both have said where they are.
    func simulatorsServe() throws -> Bool {
        let addresses = SimulatorAddresses(read("addresses"))
        let bootstrap = read("bootstrap")
        guard addresses.isComplete, bootstrap.hasSuffix("\n") else { return false }
        self.addresses = addresses
        self.bootstrap = bootstrap.trimmingCharacters(in: .newlines)
        return true
    }

    func startWorkersAndTraffic() throws {
        try configuration.write(
            toFile: path("lamplighter.yaml"), atomically: true, encoding: .utf8)
        for index in 0..<options.workers { workers.append(try startWorker(index)) }
        traffic = try start(
            "traffic",
            [
                "simulate", "traffic", "--bootstrap", bootstrap, "--events-log",
                path("events.ndjson"), "--installations", "\(options.installations)",
                "--rate", "\(options.rate)", "--settle", "\(Self.trafficSettleSeconds)",
            ], errors: path("traffic-errors.log"))
    }

    private func startWorker(_ index: Int) throws -> Worker {
        let process = try start(
            "worker-\(index + 1)", ["run", "--config", path("lamplighter.yaml")])
        return Worker(process: process, startedAt: .now)
    }

    private func start(
        _ name: String, _ arguments: [String], errors: String? = nil
    ) throws -> ChildProcess {
        try ChildProcess(
            executable: options.program, arguments: arguments, environment: environment,
            output: path("\(name).log"), errors: errors)
    }

    private var configuration: String {
        """
        kafka:
          bootstrap: \(bootstrap)
          startFrom: earliest
          properties:
            # The embedded Kafka makes a group wait for a session less 1 s at each join, but 3 s at
            # the first, and forgets members that wait for longer than their session.
            session.timeout.ms: 3500
            heartbeat.interval.ms: 200
            # And it holds an empty fetch for all of this time.
            fetch.wait.max.ms: 5
        index:
          settle: \(Self.settleMilliseconds)ms
        delivery:
          backoffMin: 100ms
          cooldownMin: 1s
          shutdownTimeout: 5s
        apns:
          transport: \(options.transport)
          caFile: ca.pem
          reconnectMin: 10ms
          # What a stall swallows is sent again after this time.
          requestTimeout: 3s
          credentials:
            home:
              team: \(Self.team)
              keyID: \(Self.keyID)
              keyFile: AuthKey.p8
              apps: [\(Neighbourhood.app)]
              environments: [production]
          endpoints:
            production: {host: \(addresses.host), port: \(addresses.port), serverName: localhost}
        log:
          format: text

        """
    }

    // MARK: Running

    /// Kills the worker at once and starts another in its place.
    func killWorker(_ index: Int) throws {
        workers[index].process.signal(9)
        workers[index] = try startWorker(index)
    }

    /// Starts another worker in the place of each that has ended, and says how it ended.
    func replaceEndedWorkers() throws -> [String] {
        var messages: [String] = []
        for index in workers.indices {
            guard let ending = workers[index].process.poll() else { continue }
            messages.append("worker \(index + 1) has \(ending.words) by itself; started another")
            workers[index] = try startWorker(index)
        }
        return messages
    }

    /// Nothing can go on without them.
    func requireSimulators() throws {
        for (name, process) in [("kafka", kafka), ("apns", apns)] {
            guard let ending = process?.poll() else { continue }
            throw DemoError(description: "\(name) has \(ending.words): \(tail("\(name).log"))")
        }
    }

    /// The last lines of a log.
    func tail(_ name: String) -> String {
        read(name).split(separator: "\n").suffix(3).joined(separator: " | ")
    }

    private func read(_ name: String) -> String {
        (try? String(contentsOfFile: path(name), encoding: .utf8)) ?? ""
    }

    // MARK: Ending

    /// The checker, on its way: its report in `verdict.json`, its words in `verdict.log`.
    func startChecker(kills: String) throws -> ChildProcess {
        try ChildProcess(
            executable: options.checker,
            arguments: [
                "--events", path("events.ndjson"), "--answers", path("answers.ndjson"),
                "--bootstrap", bootstrap, "--registrations", "lamplighter.registrations",
                "--dead-letters", "lamplighter.dead-letters", "--verdicts",
                "lamplighter.verdicts", "--settle", "\(Double(Self.settleMilliseconds) / 1000)",
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

    /// Ends everything, in order as long as that takes no longer than so: workers first, so that
    /// they drain while the others still answer.
    func end(within limit: Duration, keepingLogs: Bool) {
        let deadline = ContinuousClock.now + limit
        end(workers.map(\.process) + [traffic].compactMap(\.self), by: deadline)
        end([apns, kafka].compactMap(\.self), by: deadline)
        workers = []
        (traffic, apns, kafka) = (nil, nil, nil)
        if !isKept && !keepingLogs { try? FileManager.default.removeItem(atPath: directory) }
    }

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
