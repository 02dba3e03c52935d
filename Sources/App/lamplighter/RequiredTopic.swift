// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import KafkaLog
import Worker

/// A topic of the contract, and what it must be like.
struct RequiredTopic {
    var name: String
    var cleanupPolicy: String
    /// What Kafka does to its records under another policy.
    var otherwise: String
    /// Registrations are ordered by the broker's clock, not by their producers'.
    var needsLogAppendTime = false
    /// Of `deferred`: compaction must not remove a record hidden by the tombstone of an older one
    /// before the owner has rewritten it. That takes seconds while the partition has an owner; the
    /// lag is for a fleet that is down.
    var compactionLag: Duration?

    static func all(_ kafka: Configuration.Kafka) -> [RequiredTopic] {
        kafka.events.keys.sorted().map {
            RequiredTopic(
                name: $0, cleanupPolicy: "delete",
                otherwise: "drops events of which a later one has the same key")
        } + [
            RequiredTopic(
                name: kafka.topics.registrations, cleanupPolicy: "compact",
                otherwise: "deletes registrations that are still in force",
                needsLogAppendTime: true),
            RequiredTopic(
                name: kafka.topics.suppressions, cleanupPolicy: "compact",
                otherwise: "deletes suppressions that stand, and dead tokens are sent pushes again"),
            RequiredTopic(
                name: kafka.topics.deferred, cleanupPolicy: "compact",
                otherwise: "deletes pushes that still wait", compactionLag: .seconds(3600)),
            RequiredTopic(
                name: kafka.topics.deadLetters, cleanupPolicy: "delete",
                otherwise: "drops dead letters of which a later one has the same subject"),
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

    /// What was seen of it.
    struct Finding {
        var exists = true
        /// With these a worker does not work, or loses something.
        var problems: [String] = []
        var warnings: [String] = []

        func print() {
            for problem in problems { Swift.print("wrong   \(problem)") }
            for warning in warnings { Swift.print("warning \(warning)") }
        }
    }

    /// As far as this Kafka can be asked, and this user may ask it.
    func look(_ admin: TopicAdmin) throws(KafkaError) -> Finding {
        var finding = Finding()
        do throws(KafkaError) {
            // The embedded Kafka can be asked for this alone.
            _ = try admin.partitionCount(of: name)
            compare(try admin.describe(name), &finding)
        } catch .missingTopic {
            finding.exists = false
            finding.problems = ["\(name) is missing: create it with lamplighter topics create"]
        } catch .forbidden(_, "DESCRIBE") {
            finding.exists = false
            finding.problems = [
                "\(name) is missing, or hidden from this user, who has no right on it at all: "
                    + "create it, or give the rights of docs/kafka.md"
            ]
        } catch .forbidden {
            finding.warnings = [
                "\(name) is there; what it is set to was not looked at, for want of the right "
                    + "DESCRIBE_CONFIGS on it"
            ]
        } catch .unsupported {}
        return finding
    }

    func compare(_ description: TopicDescription, _ finding: inout Finding) {
        if let policy = description.cleanupPolicy, policy != cleanupPolicy {
            finding.problems.append(
                "\(name) has cleanup.policy=\(policy), and must have \(cleanupPolicy): otherwise "
                    + "Kafka \(otherwise)")
        }
        if needsLogAppendTime, let type = description.timestampType, type != "LogAppendTime" {
            finding.problems.append(
                "\(name) has message.timestamp.type=\(type), and must have LogAppendTime: "
                    + "otherwise a producer's clock says how old a registration is")
        }
        if let compactionLag, let text = description.configuration["min.compaction.lag.ms"],
            let lag = Int64(text), lag < compactionLag.components.seconds * 1000
        {
            finding.problems.append(
                "\(name) has min.compaction.lag.ms=\(lag), and must have at least "
                    + "\(compactionLag.components.seconds * 1000): otherwise a deferred push may "
                    + "be lost")
        }
        let inSync = description.configuration["min.insync.replicas"].flatMap { Int($0) } ?? 2
        if description.replication < 3 || inSync < 2 {
            finding.warnings.append(
                "\(name) has \(description.replication) replicas and min.insync.replicas="
                    + "\(inSync): with less than 3 and 2 one broker that goes can take "
                    + "acknowledged records with it, or stop the topic")
        }
    }
}
