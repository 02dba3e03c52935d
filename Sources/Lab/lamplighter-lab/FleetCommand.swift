// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Entrypoint
import FleetKit

struct FleetCommand: ParsableCommand, StopsInOrder {
    static let configuration = CommandConfiguration(
        commandName: "fleet",
        abstract: "Runs workers, and a Kafka and an APNs for them, for others to write to.",
        discussion: """
            An embedded Kafka, an APNs simulator and workers, each a process, until quit, SIGTERM, \
            SIGINT or the end of standard input. Logs, keys and lamplighter.yaml are in \
            --directory.

            Standard input takes 'workers N', and after it as many names of configuration keys with \
            values as are to differ from the file, as in 'workers 2 delivery.threads=2': the \
            workers are ended in order, and so many others started.

            Standard output has a line of JSON for each start of workers: the Kafka, the port of \
            APNs, the process identifiers.
            """)

    @Option(help: "An empty or missing folder.")
    var directory: String

    @Option(help: "How many workers at first.")
    var workers = 2

    @Option(help: "Of the topics, and the name of the consumer group.")
    var prefix = "lamplighter"

    @Option(
        name: .customLong("partitions"),
        help: ArgumentHelp("The partitions of one topic; may be repeated.", valueName: "name=count")
    )
    var partitions: [Setting] = []

    @Option(
        name: .customLong("events"),
        help: ArgumentHelp(
            "A further topic of events, and its binding; may be repeated. It needs --partitions too.",
            valueName: "name=binding"))
    var events: [Setting] = []

    @Option(
        name: .customLong("app"), help: "A further app of the same credential; may be repeated.")
    var apps: [String] = []

    @Option(help: ArgumentHelp("A Kafka that is there already.", valueName: "host:port,…"))
    var bootstrap: String?

    @Option(help: "The loopback port of an APNs simulator that is there already.")
    var apnsPort: UInt16?

    @Option(help: ArgumentHelp("Its certificate authority.", valueName: "file"))
    var caFile: String?

    @Option(help: ArgumentHelp("The signing key that it takes.", valueName: "file"))
    var keyFile: String?

    @Option(help: "auto, nghttp2 or curl.")
    var transport = "auto"

    @Option(
        name: .customLong("property"),
        help: ArgumentHelp("A property of librdkafka; may be repeated.", valueName: "name=value"))
    var properties: [Setting] = []

    func validate() throws {
        guard (apnsPort == nil) == (caFile == nil), (apnsPort == nil) == (keyFile == nil) else {
            throw ValidationError("--apns-port, --ca-file and --key-file go together")
        }
        guard (0...100).contains(workers) else { throw ValidationError("--workers is 0 to 100") }
        guard partitions.allSatisfy({ $0.count != nil }) else {
            throw ValidationError("--partitions is as in events=16")
        }
        guard events.allSatisfy({ topic in partitions.contains { $0.name == topic.name } }) else {
            throw ValidationError("each topic of --events has its --partitions")
        }
    }

    func run() throws {
        var run = try FleetRun(
            try plan(), apnsPort: apnsPort,
            topicPartitions: partitions.first { $0.name == "events" }?.count)
        try run.run(workers: workers)
    }

    private func plan() throws -> FleetPlan {
        var plan = FleetPlan.underTraffic(
            programs: try FleetPrograms(), directory: directory, kafka: bootstrap, prefix: prefix,
            partitions: Dictionary(
                partitions.map { ($0.name, $0.count!) }, uniquingKeysWith: { $1 }),
            transports: [], traffic: [])
        plan.configuration.transport = transport
        plan.configuration.registrationGrace = .seconds(2)
        plan.configuration.apns = []
        if !apps.isEmpty {
            // An event that names no app is the first one's.
            plan.configuration.events[0].binding = "{app: \(Neighbourhood.app), decode: json}"
        }
        plan.configuration.events += events.map { (plan.topics.name(of: $0.name), $0.value) }
        plan.configuration.credentials[0].apps += apps
        if let caFile, let keyFile {
            plan.configuration.caFile = caFile
            plan.configuration.credentials[0].keyFile = keyFile
        }
        for property in properties {
            plan.configuration.properties[property.name] = property.value
        }
        return plan
    }
}

/// An argument of the form `name=value`.
struct Setting: ExpressibleByArgument {
    let name: String
    let value: String

    init?(argument: String) {
        guard let mark = argument.firstIndex(of: "=") else { return nil }
        name = String(argument[..<mark])
        value = String(argument[argument.index(after: mark)...])
        guard !name.isEmpty else { return nil }
    }

    /// The value as a number of partitions; nil if it is not a valid one.
    var count: Int? { Int(value).flatMap { (1...10_000).contains($0) ? $0 : nil } }
}
