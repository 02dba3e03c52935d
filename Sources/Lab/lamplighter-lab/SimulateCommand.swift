// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import EmbeddedKafka
import Entrypoint

struct SimulateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "simulate",
        abstract: "Stands in for Apple, Kafka or those who use them, on this machine.",
        subcommands: [APNS.self, Kafka.self, Traffic.self, Devices.self])

    struct Kafka: ParsableCommand, StopsInOrder {
        static let configuration = CommandConfiguration(
            abstract: "Runs an embedded Kafka until SIGTERM, SIGINT or quit.",
            discussion: EmbeddedKafka.limits + "\nStandard input understands:\n"
                + EmbeddedKafka.commands)

        @Option(help: "name:partitions, separated by commas.")
        var topics = ""

        @Option(help: "How many brokers.")
        var brokers = 1

        @Option(help: "Where to write the bootstrap list, besides standard output.")
        var bootstrapFile: String?

        func run() throws {
            var partitions: [String: Int] = [:]
            for topic in topics.split(separator: ",") {
                let parts = topic.split(separator: ":")
                guard parts.count == 2, let count = Int(parts[1]), (1...10_000).contains(count)
                else { throw ValidationError("'\(topic)' is not name:partitions") }
                partitions[String(parts[0])] = count
            }
            guard (1...10).contains(brokers) else {
                throw ValidationError("--brokers must be 1 to 10")
            }
            try EmbeddedKafka.run(
                .init(topics: partitions, brokers: brokers, bootstrapFile: bootstrapFile))
        }
    }
}
