// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Logging
internal import Rdkafka

/// Creates topics and tells how they are set up. Every call waits, at most for its timeout: for
/// commands and start-up, not for the planner thread.
package struct TopicAdmin {
    private let client: Client
    private let tokens: TokenSource?
    private let timeout: Duration

    package init(
        settings: KafkaClientSettings, timeout: Duration = .seconds(10), logger: Logger
    ) throws(KafkaError) {
        self.timeout = timeout
        tokens = settings.tokens
        client = try settings.client(.producer, for: .admin, logger: logger)
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
            throw .sorted(error, operation: "CreateTopics", topic: name, tokens: tokens)
        }
    }

    /// Works with the embedded Kafka too, and creates nothing.
    package func partitionCount(of name: String) throws(KafkaError) -> Int32 {
        let topics: [TopicMetadata]
        do {
            topics = try client.metadataOfAllTopics(timeout: timeout)
        } catch {
            throw .sorted(error, operation: "Metadata", topic: name, tokens: tokens)
        }
        guard let topic = topics.first(where: { $0.name == name }) else {
            throw .missingTopic(name)
        }
        guard topic.error == .none else {
            throw .sorted(
                RdkafkaError(topic.error), operation: "Metadata", topic: name, tokens: tokens)
        }
        return topic.partitionCount
    }

    package func describe(_ name: String) throws(KafkaError) -> TopicDescription {
        try refuseEmbedded("DescribeConfigs")
        let partitions = try partitionCount(of: name)
        do {
            let configuration = try client.describeTopic(name, timeout: timeout)
            return TopicDescription(
                name: name, partitionCount: partitions, configuration: configuration)
        } catch {
            throw .sorted(error, operation: "DescribeConfigs", topic: name, tokens: tokens)
        }
    }

    /// The mock cluster names no controller, for which the library would wait until its timeout.
    private func refuseEmbedded(_ operation: String) throws(KafkaError) {
        switch isEmbedded {
        case true: throw .unsupported(operation: operation)
        case nil: throw .unreachable(RdkafkaError(.timedOut))
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
