// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import KafkaLog

/// A topic that workers need, and the settings that it must have.
package struct RequiredTopic: Sendable {
    package var name: String
    var cleanupPolicy: String
    /// What Kafka would do to its records under another policy, as text for a message.
    var otherwise: String
    /// Whether the broker must set the records' times: registrations are ordered by its clock, not
    /// by their producers'.
    var needsLogAppendTime = false
    /// The least compaction lag, for `deferred` only. Compaction must not remove a record hidden by
    /// the tombstone of an older one before the owner has rewritten it. That takes seconds if the
    /// partition has an owner; the lag covers a fleet that is down.
    var compactionLag: Duration?
    /// For how long tombstones stay, for the topics that a snapshot of the index is made of: it may
    /// be half as old. Longer costs disk alone.
    var tombstonesLast: Duration?

    package static func all(_ kafka: Configuration.Kafka) -> [RequiredTopic] {
        var topics = kafka.events.keys.sorted().map {
            RequiredTopic(
                name: $0, cleanupPolicy: "delete",
                otherwise: "drops events if a later one has the same key")
        }
        topics += compacted(kafka)
        topics.append(
            RequiredTopic(
                name: kafka.topics.deadLetters, cleanupPolicy: "delete",
                otherwise: "drops dead letters if a later one has the same subject"))
        if let name = kafka.topics.outcomes {
            topics.append(
                RequiredTopic(
                    name: name, cleanupPolicy: "delete",
                    otherwise: "drops outcomes if a later one has the same token"))
        }
        return topics
    }

    /// Those that this configuration's workers need: a shadow writes no records, and reads none that
    /// others have deferred.
    package static func all(of configuration: Configuration) -> [RequiredTopic] {
        needed(all(configuration.kafka), by: configuration)
    }

    package static func compacted(of configuration: Configuration) -> [RequiredTopic] {
        needed(compacted(configuration.kafka), by: configuration)
    }

    private static func needed(
        _ topics: [RequiredTopic], by configuration: Configuration
    ) -> [RequiredTopic] {
        guard configuration.delivery.mode == .shadow else { return topics }
        let names = configuration.kafka.topics
        return topics.filter {
            ![names.deferred, names.deadLetters, names.outcomes].contains($0.name)
        }
    }

    /// Those whose records are in effect until another one has the same key. Without compaction alone
    /// Kafka deletes what is in effect, so a worker does not start.
    package static func compacted(_ kafka: Configuration.Kafka) -> [RequiredTopic] {
        [
            RequiredTopic(
                name: kafka.topics.registrations, cleanupPolicy: "compact",
                otherwise: "deletes registrations that are still in effect",
                needsLogAppendTime: true, tombstonesLast: snapshotTombstones),
            RequiredTopic(
                name: kafka.topics.suppressions, cleanupPolicy: "compact",
                otherwise: "deletes suppressions in effect, and dead tokens are sent pushes again",
                tombstonesLast: snapshotTombstones),
            RequiredTopic(
                name: kafka.topics.deferred, cleanupPolicy: "compact",
                otherwise: "deletes pushes that still wait", compactionLag: .seconds(3600)),
            RequiredTopic(
                name: kafka.topics.restrictions, cleanupPolicy: "compact",
                otherwise: "deletes what operators have paused, and pushes go out again"),
        ]
    }

    /// Two days, so that a worker that was down for a night and a morning need not read everything.
    private static let snapshotTombstones = Duration.seconds(48 * 3600)
    /// Kafka's default, a day: with less, a snapshot of last night is too old in the morning.
    private static let leastTombstones = Duration.seconds(24 * 3600)

    package var configuration: [String: String] {
        var configuration = ["cleanup.policy": cleanupPolicy]
        if needsLogAppendTime { configuration["message.timestamp.type"] = "LogAppendTime" }
        if let compactionLag {
            configuration["min.compaction.lag.ms"] = "\(compactionLag.components.seconds * 1000)"
        }
        if let tombstonesLast {
            configuration["delete.retention.ms"] = "\(tombstonesLast.components.seconds * 1000)"
        }
        return configuration
    }

    /// What a check of the topic has found.
    package struct Finding: Hashable, Sendable {
        package var exists = true
        /// Problems with which a worker fails or loses records.
        package var problems: [String] = []
        package var warnings: [String] = []
    }

    /// Checks the topic, as far as this Kafka supports it and this user is allowed to.
    package func look(_ admin: TopicAdmin) throws(KafkaError) -> Finding {
        var finding = Finding()
        do throws(KafkaError) {
            // The embedded Kafka supports only this request.
            _ = try admin.partitionCount(of: name)
            compare(try admin.describe(name), &finding)
        } catch .missingTopic {
            finding.exists = false
            finding.problems = ["\(name) is missing: create it with lamplighter topics create"]
        } catch .forbidden(_, "DESCRIBE") {
            finding.exists = false
            finding.problems = [
                "\(name) is missing, or hidden from this user, who has no right on it: "
                    + "create it, or give the rights of docs/kafka.md"
            ]
        } catch .forbidden {
            finding.warnings = [
                "\(name) exists; its settings were not checked, since this user lacks the right "
                    + "DESCRIBE_CONFIGS on it"
            ]
        } catch .unsupported {}
        return finding
    }

    /// What is wrong with the cleanup policy; nil if nothing is, or if it is not known.
    package func wrongPolicy(_ description: TopicDescription) -> String? {
        guard let policy = description.cleanupPolicy, policy != cleanupPolicy else { return nil }
        return
            "\(name) has cleanup.policy=\(policy), and must have \(cleanupPolicy): otherwise Kafka "
            + "\(otherwise). To change it: kafka-configs.sh --alter --entity-type topics "
            + "--entity-name \(name) --add-config cleanup.policy=\(cleanupPolicy)"
    }

    func compare(_ description: TopicDescription, _ finding: inout Finding) {
        if let problem = wrongPolicy(description) { finding.problems.append(problem) }
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
        if tombstonesLast != nil, let lasting = description.deleteRetention,
            lasting < Self.leastTombstones
        {
            finding.warnings.append(
                "\(name) has delete.retention.ms=\(lasting / .milliseconds(1)): a snapshot of the "
                    + "index may be half as old at most, and a worker that needs longer than that "
                    + "to read the topic can miss that a phone was removed")
        }
        let inSync = description.configuration["min.insync.replicas"].flatMap { Int($0) } ?? 2
        if description.replication < 3 || inSync < 2 {
            finding.warnings.append(
                "\(name) has \(description.replication) replicas and min.insync.replicas="
                    + "\(inSync): with less than 3 and 2 the loss of one broker can lose "
                    + "acknowledged records or stop the topic")
        }
    }
}
