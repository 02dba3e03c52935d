// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
package import Logging
internal import Rdkafka

/// Creates and describes topics. Every call blocks, at most for its timeout, so this is for
/// commands and start-up, not for the running planner.
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
        // The token is requested now, so that a failure is reported at once instead of retried.
        do throws(TokenFailure) {
            try tokens?.token()
        } catch {
            throw .noToken(error)
        }
    }

    /// - Parameters:
    ///   - replication: nil takes the broker's default.
    ///   - configuration: topic settings such as `cleanup.policy` or `retention.ms`.
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

    /// The number of partitions of a topic. Works with the embedded Kafka too, and never creates
    /// the topic.
    package func partitionCount(of name: String) throws(KafkaError) -> Int32 {
        try metadata(of: name).partitionCount
    }

    /// The first offset in the log of each partition, and the one after the last. Works with the
    /// embedded Kafka too.
    package func logs(of name: String) throws(KafkaError) -> [Range<Int64>] {
        let count = try partitionCount(of: name)
        do throws(RdkafkaError) {
            let list = TopicPartitionList(capacity: Int(count))
            for partition in 0..<count { list.append(topic: name, partition: partition) }
            var questions = OffsetQuestions(
                topics: [try Topic(name, of: client)], client: client, isAskedApart: false,
                timeout: timeout)
            let ends = try questions.offsets(of: list, at: Offset.end)
            let starts = try questions.offsets(of: list, at: Offset.beginning)
            if let fault = questions.faults.values.first { throw fault }
            return (0..<count).map { partition in
                let key = TopicPartition(topic: name, partition: partition)
                let start = max(0, starts[key] ?? 0)
                return start..<max(start, ends[key] ?? 0)
            }
        } catch {
            throw sorted(error, "DESCRIBE", topic: name)
        }
    }

    private func metadata(of name: String) throws(KafkaError) -> TopicMetadata {
        // Who has not answered by now will not within another timeout.
        guard let isEmbedded else { throw sorted(RdkafkaError(.timedOut), "DESCRIBE", topic: name) }
        let topic: TopicMetadata
        do throws(RdkafkaError) {
            topic = try isEmbedded ? listed(name) : named(name)
        } catch {
            throw sorted(error, "DESCRIBE", topic: name)
        }
        guard topic.error == .none else {
            throw sorted(RdkafkaError(topic.error), "DESCRIBE", topic: name)
        }
        return topic
    }

    /// Asks for the topic by name: a list of all topics omits those that this user may not
    /// describe, so that they would look missing.
    private func named(_ name: String) throws(RdkafkaError) -> TopicMetadata {
        try client.metadata(of: Topic(name, of: client), timeout: timeout)
    }

    /// Finds the topic in the list of all topics: the mock cluster creates any topic that is asked
    /// for by name.
    private func listed(_ name: String) throws(RdkafkaError) -> TopicMetadata {
        let topics = try client.metadataOfAllTopics(timeout: timeout)
        guard let topic = topics.first(where: { $0.name == name }) else {
            throw RdkafkaError(.unknownTopic)
        }
        return topic
    }

    /// The first of these topics that does not exist or that this user may not describe. Works with
    /// the embedded Kafka too, and never creates a topic.
    package func firstMissing(of names: [String]) throws(KafkaError) -> String? {
        let topics: [TopicMetadata]
        do {
            topics = try client.metadataOfAllTopics(timeout: timeout)
        } catch {
            throw sorted(error, "DESCRIBE", topic: "")
        }
        // A topic with another error exists; it may have no leader yet, for instance.
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

    /// The brokers' defaults for topics that are created without these settings.
    package struct BrokerDefaults: Hashable, Sendable {
        package var replication: Int32?
        package var minInSyncReplicas: Int32?
    }

    /// Asks a broker for its defaults. A value is nil if this user may not read the configuration.
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

    /// Waits until every broker knows these topics, with a leader for each partition. A broker
    /// reports a topic as created before the others know of it, and clients ask any broker.
    ///
    /// - Parameter waiting: called once, if not every broker knows them at the first look.
    /// - Returns: the brokers that still do not know all the topics when the time is up.
    package func waitUntilKnown(
        _ topics: [String], within limit: Duration = .seconds(30),
        waiting: ([BehindBroker]) -> Void = { _ in }
    ) throws(KafkaError) -> [BehindBroker] {
        let deadline = ContinuousClock.now + limit
        var left: [(address: String, client: Client)] = []
        // Each broker gets a client of its own, which asks the broker it is connected to: the one
        // it was given, since it connects to others only when needed. Metadata needs no right but
        // DESCRIBE; DescribeConfigs would need another, and says nothing of leaders.
        for broker in try brokers() {
            var one = settings
            one.bootstrap = broker.text
            left.append(
                (broker.text, try one.client(for: .admin, logger: logger)))
        }
        var isFirst = true
        while true {
            var behind: [BehindBroker] = []
            left.removeAll { broker in
                let one = BehindBroker(broker.address, topics: topics) {
                    Self.sight($0, broker.client, until: deadline)
                }
                if let one { behind.append(one) }
                return one == nil
            }
            if behind.isEmpty || deadline < .now { return behind }
            if isFirst { waiting(behind) }
            isFirst = false
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

    /// Asks for at most 5 s, and at the end of the time for at least one.
    private static func sight(
        _ name: String, _ client: Client, until deadline: ContinuousClock.Instant
    ) -> BehindBroker.Sight {
        let timeout = min(.seconds(5), max(.seconds(1), deadline - .now))
        do throws(RdkafkaError) {
            return BehindBroker.Sight(
                try client.metadata(of: Topic(name, of: client), timeout: timeout))
        } catch {
            return .failed("\(error)")
        }
    }

    private func sorted(_ error: RdkafkaError, _ operation: String, topic: String) -> KafkaError {
        .sorted(error, operation: operation, topic: topic, client: client, tokens: tokens)
    }

    /// Throws for the embedded Kafka. It names no controller, for which librdkafka would wait until
    /// its timeout.
    private func refuseEmbedded(_ operation: String) throws(KafkaError) {
        switch isEmbedded {
        case true: throw .unsupported(operation: operation)
        case nil: throw sorted(RdkafkaError(.timedOut), operation, topic: "")
        default: return
        }
    }

    /// Whether this is the embedded Kafka, which keeps everything in memory and compacts nothing;
    /// nil if no broker answered.
    package var isEmbedded: Bool? {
        clusterID.map { $0.hasPrefix(Client.mockClusterIDPrefix) }
    }

    /// The cluster's ID; nil if no broker answered.
    package var clusterID: String? { client.clusterID(timeout: timeout) }
}

package struct TopicDescription: Hashable, Sendable {
    package let name: String
    package let partitionCount: Int32
    /// The replicas of the partition that has the fewest.
    package let replication: Int32
    /// Every effective setting, defaults included.
    package let configuration: [String: String]

    /// The policy: `delete`, `compact`, or both separated by a comma.
    package var cleanupPolicy: String? { configuration["cleanup.policy"] }
    package var isCompacted: Bool { cleanupPolicy?.contains("compact") ?? false }
    /// Who sets the records' times: `CreateTime` (the producer) or `LogAppendTime` (the broker).
    package var timestampType: String? { configuration["message.timestamp.type"] }
    /// For how long a tombstone stays after the log was compacted.
    package var deleteRetention: Duration? {
        configuration["delete.retention.ms"].flatMap { Int64($0) }.map { .milliseconds($0) }
    }
}
