// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
package import Logging
internal import Rdkafka

/// Creates topics and tells how they are set up. Every call waits, at most for its timeout: for
/// commands and start-up, not for the planner thread.
package struct TopicAdmin {
    private let settings: KafkaClientSettings
    private let logger: Logger
    private let client: Client
    private let tokens: TokenSource?
    private let timeout: Duration

    package init(
        settings: KafkaClientSettings, timeout: Duration = .seconds(10), logger: Logger
    ) throws(KafkaError) {
        self.timeout = timeout
        tokens = settings.tokens
        self.settings = settings
        self.logger = logger
        client = try settings.client(for: .admin, logger: logger)
        // Here nobody waits for a second try: what is wrong is said at once.
        do throws(TokenFailure) {
            try tokens?.token()
        } catch {
            throw .noToken(error)
        }
    }

    /// - Parameters:
    ///   - replication: nil takes the broker's default.
    ///   - configuration: such as `cleanup.policy`, `message.timestamp.type`, `retention.ms`.
    package func create(
        _ name: String, partitions: Int32, replication: Int32? = nil,
        configuration: [String: String] = [:]
    ) throws(KafkaError) {
        try refuseEmbedded("CreateTopics")
        let topic = NewTopic(
            name: name, partitions: partitions, replication: replication ?? -1,
            configuration: configuration)
        do {
            try client.createTopic(topic, timeout: timeout)
        } catch {
            throw sorted(error, "CREATE", topic: name)
        }
    }

    /// Works with the embedded Kafka too, and creates nothing.
    package func partitionCount(of name: String) throws(KafkaError) -> Int32 {
        try metadata(of: name).partitionCount
    }

    private func metadata(of name: String) throws(KafkaError) -> TopicMetadata {
        let topic: TopicMetadata
        do throws(RdkafkaError) {
            topic = try isEmbedded == true ? listed(name) : named(name)
        } catch {
            throw sorted(error, "DESCRIBE", topic: name)
        }
        guard topic.error == .none else {
            throw sorted(RdkafkaError(topic.error), "DESCRIBE", topic: name)
        }
        return topic
    }

    /// A list of all topics leaves out those that this user may not see: they would look missing.
    private func named(_ name: String) throws(RdkafkaError) -> TopicMetadata {
        try client.metadata(of: Topic(name, of: client), timeout: timeout)
    }

    /// The mock cluster creates whatever is asked for by name.
    private func listed(_ name: String) throws(RdkafkaError) -> TopicMetadata {
        let topics = try client.metadataOfAllTopics(timeout: timeout)
        guard let topic = topics.first(where: { $0.name == name }) else {
            throw RdkafkaError(.unknownTopic)
        }
        return topic
    }

    /// The first of these that the cluster does not have, or that it hides from this user. Works with the
    /// embedded Kafka too, and creates nothing.
    package func firstMissing(of names: [String]) throws(KafkaError) -> String? {
        let topics: [TopicMetadata]
        do {
            topics = try client.metadataOfAllTopics(timeout: timeout)
        } catch {
            throw sorted(error, "DESCRIBE", topic: "")
        }
        // One that has another error is there: it has no leader yet, for instance.
        let missing: [ErrorCode] = [.unknownTopicOrPartition, .unknownTopic]
        let known = Set(topics.filter { !missing.contains($0.error) }.map(\.name))
        return names.first { !known.contains($0) }
    }

    package func describe(_ name: String) throws(KafkaError) -> TopicDescription {
        try refuseEmbedded("DescribeConfigs")
        let topic = try metadata(of: name)
        do {
            let configuration = try client.describeTopic(name, timeout: timeout)
            return TopicDescription(
                name: name, partitionCount: topic.partitionCount, replication: topic.replication,
                configuration: configuration)
        } catch {
            throw sorted(error, "DESCRIBE_CONFIGS", topic: name)
        }
    }

    // MARK: New topics

    /// What topics get that say nothing else.
    package struct BrokerDefaults: Hashable, Sendable {
        package var replication: Int32?
        package var minInSyncReplicas: Int32?
    }

    /// Nil where this user may not know.
    package func brokerDefaults() throws(KafkaError) -> BrokerDefaults {
        try refuseEmbedded("CreateTopics")
        var defaults = BrokerDefaults()
        guard let broker = try brokers().first,
            let configuration = try? client.describeBroker(broker.id, timeout: timeout)
        else { return defaults }
        func number(_ name: String) -> Int32? { configuration[name].flatMap { Int32($0) } }
        defaults.replication = number("default.replication.factor")
        defaults.minInSyncReplicas = number("min.insync.replicas")
        return defaults
    }

    /// Waits until every broker knows these topics, with a leader for each partition. A broker says
    /// that a topic is made before the others have heard of it, and a client asks any of them.
    ///
    /// - Returns: the brokers that do not know all of them, when the time is over.
    package func waitUntilKnown(
        _ topics: [String], within limit: Duration = .seconds(30)
    ) throws(KafkaError) -> [String] {
        let deadline = ContinuousClock.now + limit
        var left: [(address: String, client: Client)] = []
        // One client each: it asks the broker that it is connected to, and that is the one it has
        // been given, since it connects to others only when it needs them.
        for broker in try brokers() {
            var one = settings
            one.bootstrap = broker.text
            left.append(
                (broker.text, try one.client(for: .admin, logger: logger)))
        }
        while true {
            left.removeAll { broker in topics.allSatisfy { Self.knows($0, broker.client) } }
            if left.isEmpty || deadline < .now { return left.map(\.address) }
            usleep(100_000)
        }
    }

    private func brokers() throws(KafkaError) -> [BrokerAddress] {
        do {
            return try client.brokers(timeout: timeout)
        } catch {
            throw sorted(error, "DESCRIBE", topic: "")
        }
    }

    private static func knows(_ name: String, _ client: Client) -> Bool {
        guard let topic = try? Topic(name, of: client),
            let metadata = try? client.metadata(of: topic, timeout: .seconds(5))
        else { return false }
        return metadata.error == .none && metadata.partitionCount > 0
            && metadata.ledCount == metadata.partitionCount
    }

    private func sorted(_ error: RdkafkaError, _ operation: String, topic: String) -> KafkaError {
        .sorted(error, operation: operation, topic: topic, client: client, tokens: tokens)
    }

    /// The mock cluster names no controller, for which the library would wait until its timeout.
    private func refuseEmbedded(_ operation: String) throws(KafkaError) {
        switch isEmbedded {
        case true: throw .unsupported(operation: operation)
        case nil: throw sorted(RdkafkaError(.timedOut), operation, topic: "")
        default: return
        }
    }

    /// Whether this is the embedded Kafka, which keeps everything in memory and compacts nothing;
    /// nil when no broker answered.
    package var isEmbedded: Bool? {
        client.clusterID(timeout: timeout).map { $0.hasPrefix(Client.mockClusterIDPrefix) }
    }
}

package struct TopicDescription: Hashable, Sendable {
    package let name: String
    package let partitionCount: Int32
    /// Replicas of the partition with the fewest.
    package let replication: Int32
    /// Every entry in force, defaults included.
    package let configuration: [String: String]

    /// `delete`, `compact` or both with a comma.
    package var cleanupPolicy: String? { configuration["cleanup.policy"] }
    package var isCompacted: Bool { cleanupPolicy?.contains("compact") ?? false }
    /// `CreateTime` or `LogAppendTime`.
    package var timestampType: String? { configuration["message.timestamp.type"] }
    package var retentionMilliseconds: Int64? {
        configuration["retention.ms"].flatMap { Int64($0) }
    }
}
