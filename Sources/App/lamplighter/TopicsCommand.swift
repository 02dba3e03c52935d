// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import KafkaLog
import Logging
import PushModel
import Worker

struct TopicsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "topics",
        abstract: "Creates or checks the topics that Lamplighter needs.",
        subcommands: [Create.self, Check.self])

    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Creates the topics that are missing.")

        @OptionGroup var options: ConfigurationOption

        @Option(help: "Partitions of each new topic: the most workers that can share the work.")
        var partitions: Int32 = 12

        @Option(help: "Replicas of each new topic.")
        var replication: Int32 = 1

        func run() async throws {
            try await Failure.reporting {
                let configuration = try options.load()
                let admin = try TopicAdmin(configuration)
                for topic in RequiredTopic.all(configuration.kafka) {
                    do throws(KafkaError) {
                        try admin.create(
                            topic.name, partitions: partitions, replication: replication,
                            configuration: topic.configuration)
                        print("created \(topic.name)")
                    } catch .topicExists {
                        print("exists  \(topic.name)")
                    }
                }
            }
        }
    }

    struct Check: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Says which topics are missing or set up so that records could be lost.")

        @OptionGroup var options: ConfigurationOption

        func run() async throws {
            try await Failure.reporting {
                let configuration = try options.load()
                let admin = try TopicAdmin(configuration)
                var problems: [String] = []
                for topic in RequiredTopic.all(configuration.kafka) {
                    let problem = try topic.problem(admin)
                    print(problem.map { "wrong   \($0)" } ?? "ok      \(topic.name)")
                    if let problem { problems.append(problem) }
                }
                guard problems.isEmpty else {
                    throw ExitCode(Failure.Status.configuration.rawValue)
                }
            }
        }
    }
}

extension TopicAdmin {
    init(_ configuration: Configuration) throws {
        try self.init(
            settings: configuration.kafka.clientSettings,
            logger: ConfigurationOption.logger(configuration.log))
    }
}

/// A topic of the contract, and what it must be like.
struct RequiredTopic {
    var name: String
    var cleanupPolicy: String
    /// Registrations are ordered by the broker's clock, not by their producers'.
    var needsLogAppendTime = false
    /// Of `deferred`: a record that another's null hides must stay until the owner has written it
    /// again. Seconds while anybody owns it; this is for a fleet that is down.
    var compactionLag: Duration?

    static func all(_ kafka: Configuration.Kafka) -> [RequiredTopic] {
        kafka.events.keys.sorted().map { RequiredTopic(name: $0, cleanupPolicy: "delete") } + [
            RequiredTopic(
                name: kafka.topics.registrations, cleanupPolicy: "compact",
                needsLogAppendTime: true),
            RequiredTopic(name: kafka.topics.verdicts, cleanupPolicy: "compact"),
            RequiredTopic(
                name: kafka.topics.deferred, cleanupPolicy: "compact",
                compactionLag: .seconds(3600)),
            RequiredTopic(name: kafka.topics.deadLetters, cleanupPolicy: "delete"),
        ]
    }

    var configuration: [String: String] {
        var configuration = ["cleanup.policy": cleanupPolicy]
        if needsLogAppendTime { configuration["message.timestamp.type"] = "LogAppendTime" }
        if let compactionLag {
            configuration["min.compaction.lag.ms"] = "\(compactionLag.components.seconds * 1000)"
        }
        return configuration
    }

    /// Nil when the topic is as it must be, as far as this Kafka can be asked.
    func problem(_ admin: TopicAdmin) throws(KafkaError) -> String? {
        let description: TopicDescription
        do throws(KafkaError) {
            // The embedded Kafka can be asked for this alone.
            _ = try admin.partitionCount(of: name)
            description = try admin.describe(name)
        } catch .missingTopic {
            return "\(name) is missing: create it with lamplighter topics create"
        } catch .unsupported {
            return nil
        }
        if let policy = description.cleanupPolicy, policy != cleanupPolicy {
            return "\(name) has cleanup.policy=\(policy), and must have \(cleanupPolicy)"
                + (cleanupPolicy == "compact"
                    ? ": otherwise Kafka deletes registrations that are still in force"
                    : ": otherwise Kafka drops events of which a later one has the same key")
        }
        if needsLogAppendTime, let type = description.timestampType, type != "LogAppendTime" {
            return "\(name) has message.timestamp.type=\(type), and must have LogAppendTime"
        }
        if let compactionLag, let text = description.configuration["min.compaction.lag.ms"],
            let lag = Int64(text), lag < compactionLag.components.seconds * 1000
        {
            return "\(name) has min.compaction.lag.ms=\(lag), and must have at least "
                + "\(compactionLag.components.seconds * 1000): otherwise a deferred push may be lost"
        }
        return nil
    }
}
