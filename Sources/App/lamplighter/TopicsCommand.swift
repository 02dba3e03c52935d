// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Configuration
import Entrypoint
import Glibc
import KafkaLog
import Logging
import PushModel

struct TopicsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "topics",
        abstract: "Creates or checks the topics that Lamplighter needs.",
        subcommands: [Create.self, Check.self])

    struct Create: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Creates the topics that are missing, and waits until every broker has them.",
            discussion: """
                Choose the partitions of compacted topics (registrations, suppressions, deferred, restrictions) for \
                years: never add any. With three replicas or more, min.insync.replicas is 2.
                """)

        @OptionGroup var options: ConfigurationOption

        @Option(help: "Partitions of each new topic: the most workers that can share the work.")
        var partitions: Int32 = 12

        @Option(
            name: [.customLong("replication-factor"), .customLong("replication")],
            help: "Replicas of each new topic; the brokers' default where it is left out.")
        var replicationFactor: Int32?

        @Option(help: "How long to wait until every broker knows the topics: 30s, or seconds.")
        var wait = DurationArgument(.seconds(30))

        func validate() throws {
            guard (1...10_000).contains(partitions) else {
                throw ValidationError("--partitions is from 1 to 10000")
            }
            // Kafka's protocol has 16 bits for the replication factor.
            if let replicationFactor, !(1...32_767).contains(replicationFactor) {
                throw ValidationError("--replication-factor is from 1 to 32767")
            }
        }

        func run() async throws {
            let configuration = try options.load()
            let admin = try TopicAdmin(configuration)
            let topics = RequiredTopic.all(of: configuration)
            if admin.isEmbedded == true { return try admin.expectEmbedded(topics) }
            try create(topics, admin)
            let behind = try admin.waitUntilKnown(topics.map(\.name), within: wait.duration) {
                for broker in $0 { print("waiting \(broker)") }
                // Standard output to a container's log is written only at the end otherwise.
                fflush(nil)
            }
            guard behind.isEmpty else {
                throw Failure(
                    .unavailable,
                    "the topics are made, but not known everywhere: "
                        + behind.map(\.description).joined(separator: "; ")
                        + ". See to these brokers, and do this again before you start a worker")
            }
        }

        private func create(_ topics: [RequiredTopic], _ admin: TopicAdmin) throws {
            let defaults = try admin.brokerDefaults()
            for topic in topics {
                var settings = topic.configuration
                if let replicas = replicationFactor ?? defaults.replication, replicas >= 3,
                    defaults.minInSyncReplicas ?? 1 < 2
                {
                    settings["min.insync.replicas"] = "2"
                }
                let isNew = try make(topic.name, settings, admin)
                print((isNew ? "created " : "exists  ") + topic.name)
            }
        }

        /// Creates a topic; false if one of that name exists.
        private func make(
            _ name: String, _ settings: [String: String], _ admin: TopicAdmin
        ) throws(KafkaError) -> Bool {
            do throws(KafkaError) {
                try admin.create(
                    name, partitions: partitions, replication: replicationFactor,
                    configuration: settings)
                return true
            } catch {
                guard case .topicExists = error else { throw error }
                return false
            }
        }
    }

    struct Check: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Says which topics are missing or set up so that records could be lost.",
            discussion: """
                Whether a topic was given more partitions since it was made, nobody can see. Never \
                add any to registrations, suppressions, deferred or restrictions.
                """)

        @OptionGroup var options: ConfigurationOption

        func run() async throws {
            let configuration = try options.load()
            let admin = try TopicAdmin(configuration)
            var isWrong = false
            for topic in RequiredTopic.all(of: configuration) {
                let finding = try topic.look(admin)
                finding.print()
                if finding.problems.isEmpty { print("ok      \(topic.name)") }
                isWrong = isWrong || !finding.problems.isEmpty
            }
            let topics = configuration.kafka.topics
            print(
                "note    never add partitions to \(topics.registrations), \(topics.suppressions), "
                    + "\(topics.deferred) or \(topics.restrictions): see docs/kafka.md")
            guard !isWrong else {
                throw ExitCode(Failure.Status.configuration.rawValue)
            }
        }
    }
}

extension RequiredTopic.Finding {
    func print() {
        for problem in problems { Swift.print("wrong   \(problem)") }
        for warning in warnings { Swift.print("warning \(warning)") }
    }
}

extension TopicAdmin {
    init(_ configuration: Configuration) throws {
        try self.init(
            settings: configuration.kafka.clientSettings,
            logger: ConfigurationOption.logger(configuration.log))
    }
}

extension TopicAdmin {
    /// Checks that the topics exist in the embedded Kafka, which cannot create topics on request:
    /// they are named when it is started.
    fileprivate func expectEmbedded(_ topics: [RequiredTopic]) throws {
        var missing: [String] = []
        for topic in topics {
            do throws(KafkaError) {
                _ = try partitionCount(of: topic.name)
                print("exists  \(topic.name)")
            } catch {
                guard case .missingTopic = error else { throw error }
                missing.append(topic.name)
            }
        }
        guard missing.isEmpty else {
            throw Failure(
                .unavailable,
                "the embedded Kafka creates no topics: start it with lamplighter-lab simulate kafka "
                    + "--topics \(missing.map { "\($0):12" }.joined(separator: ","))")
        }
    }
}
