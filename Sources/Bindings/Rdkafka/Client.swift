// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CRdkafka
internal import Synchronization

/// One librdkafka handle, with its threads and connections. A consumer must be closed before it is
/// let go, or the group waits for its session to end.
package final class Client: @unchecked Sendable {
    // SAFETY: the library's calls are safe from any thread; what its callbacks collect in `context`
    // is read by the one thread that polls.
    package enum Kind: Sendable { case consumer, producer }

    /// Level (syslog's, 0 to 7), facility, text. Called on the library's threads.
    package typealias LogSink = @Sendable (Int32, String, String) -> Void

    /// The client wants a bearer token: its first, or the next because four fifths of the last
    /// one's life are over. Called on a thread of the library's, which also ends with the client:
    /// return at once, and answer from elsewhere. One that throws is called again in ten seconds.
    package typealias TokenRefresh = @Sendable (TokenRecipient) throws -> Void

    let pointer: OpaquePointer
    let context: ClientContext

    /// - Parameter tokens: for SASL/OAUTHBEARER, which the configuration must then name; nil for
    ///   any other mechanism.
    /// - Parameter redact: takes secrets out of what brokers say.
    package init(
        _ kind: Kind, configuration: borrowing Configuration, tokens: TokenRefresh? = nil,
        log: @escaping LogSink, redact: @escaping @Sendable (String) -> String = { $0 }
    ) throws(RdkafkaError) {
        context = ClientContext(tokens: tokens, log: log, redact: redact)
        let copy = rd_kafka_conf_dup(configuration.pointer)!
        context.install(in: copy, kind: kind)
        let type = kind == .consumer ? RD_KAFKA_CONSUMER : RD_KAFKA_PRODUCER
        var text = [CChar](repeating: 0, count: 512)
        guard let created = rd_kafka_new(type, copy, &text, text.count) else {
            let code = ErrorCode(rd_kafka_last_error())
            // Only a client that was created owns its configuration.
            rd_kafka_conf_destroy(copy)
            throw RdkafkaError(code, message: String(nulTerminated: text))
        }
        pointer = created
        if tokens != nil { try callForTokensInBackground() }
    }

    deinit {
        ClientRemains(pointer: pointer, context: context).destroyInBackground()
    }

    /// How many of this process's clients are gone, and not closed or not destroyed yet. Usually that takes less than
    /// a second; of a consumer whose topic was deleted it may never end, and the threads and the memory
    /// of the library's are lost.
    package static var remains: Int {
        ClientRemains.count.load(ordering: .relaxed)
            + BoundedCall.leftCount.load(ordering: .relaxed)
    }

    // MARK: What callbacks reported

    /// Whether `takeNews` has something: one flag, cheap enough to look at after every message.
    package var hasNews: Bool { context.hasNews }

    package func takeNews() -> ClientNews { context.takeNews() }

    /// The error after which the client does nothing any more; nil while it is well.
    package var fatalError: RdkafkaError? {
        // Asked once per turn, and almost always without an answer: no buffer for that.
        guard rd_kafka_fatal_error(pointer, nil, 0) != RD_KAFKA_RESP_ERR_NO_ERROR else {
            return nil
        }
        var text = [CChar](repeating: 0, count: 512)
        let code = rd_kafka_fatal_error(pointer, &text, text.count)
        return RdkafkaError(ErrorCode(code), message: String(nulTerminated: text))
    }

    /// What went wrong with its connections lately.
    package var troubles: ConnectionTroubles { context.troubles }

    // MARK: The cluster

    /// What the mock cluster's id begins with; Kafka's own ids are UUIDs in base64.
    package static let mockClusterIDPrefix = "mockCluster"

    /// The cluster's ID; nil when no broker answered in time.
    package func clusterID(timeout: Duration) -> String? {
        guard let id = rd_kafka_clusterid(pointer, timeout.milliseconds) else { return nil }
        defer { rd_kafka_mem_free(pointer, id) }
        return String(cString: id)
    }

    /// What the cluster knows of one topic. Does not create it where brokers create topics on
    /// demand, provided the client is a consumer without `allow.auto.create.topics`.
    package func metadata(of topic: Topic, timeout: Duration) throws(RdkafkaError) -> TopicMetadata
    {
        let all = try metadata(allTopics: false, only: topic.pointer, timeout: timeout)
        guard let first = all.first else { throw RdkafkaError(.unknownTopic) }
        return first
    }

    /// All topics of the cluster; never creates one.
    package func metadataOfAllTopics(timeout: Duration) throws(RdkafkaError) -> [TopicMetadata] {
        try metadata(allTopics: true, only: nil, timeout: timeout)
    }

    private func metadata(
        allTopics: Bool, only: OpaquePointer?, timeout: Duration
    ) throws(RdkafkaError) -> [TopicMetadata] {
        var answer: UnsafePointer<rd_kafka_metadata>?
        try RdkafkaError.check(
            rd_kafka_metadata(pointer, allTopics ? 1 : 0, only, &answer, timeout.milliseconds))
        defer { rd_kafka_metadata_destroy(answer) }
        guard let metadata = answer?.pointee else { throw RdkafkaError(.failed) }
        return (0..<Int(metadata.topic_cnt)).map { index in
            let topic = metadata.topics[index]
            let partitions = UnsafeBufferPointer(
                start: topic.partitions, count: Int(topic.partition_cnt))
            var leaders = [Int32](repeating: TopicMetadata.noLeader, count: partitions.count)
            for partition in partitions where leaders.indices.contains(Int(partition.id)) {
                leaders[Int(partition.id)] = partition.leader
            }
            return TopicMetadata(
                name: String(cString: topic.topic), leaders: leaders,
                error: ErrorCode(topic.err),
                replication: partitions.map(\.replica_cnt).min() ?? 0)
        }
    }

    /// The brokers of the cluster, by the addresses that they advertise.
    package func brokers(timeout: Duration) throws(RdkafkaError) -> [BrokerAddress] {
        var answer: UnsafePointer<rd_kafka_metadata>?
        // The request is for all topics: one for no topic would be refused.
        try RdkafkaError.check(
            rd_kafka_metadata(pointer, 1, nil, &answer, timeout.milliseconds))
        defer { rd_kafka_metadata_destroy(answer) }
        guard let metadata = answer?.pointee else { throw RdkafkaError(.failed) }
        return (0..<Int(metadata.broker_cnt)).map { index in
            let broker = metadata.brokers[index]
            let host = String(cString: broker.host)
            return BrokerAddress(
                id: broker.id,
                text: (host.contains(":") ? "[\(host)]" : host) + ":\(broker.port)")
        }
    }
}

package struct TopicMetadata: Hashable, Sendable {
    package let name: String
    /// The broker that leads each partition, indexed by partition, or `noLeader`.
    package let leaders: [Int32]
    package let error: ErrorCode
    /// The number of replicas of the partition that has the fewest.
    package let replication: Int32

    package static let noLeader: Int32 = -1
    package var partitionCount: Int32 { Int32(leaders.count) }
    /// The number of partitions that have a leader.
    package var ledCount: Int32 { Int32(leaders.count { $0 != Self.noLeader }) }
}

package struct BrokerAddress: Hashable, Sendable {
    package let id: Int32
    /// `host:port`.
    package let text: String
}

/// A client's view of one topic. While it lives, the topic's messages carry its identity.
package final class Topic: @unchecked Sendable {
    // SAFETY: immutable, and the library's topic calls are safe from any thread.
    package let name: String
    let pointer: OpaquePointer
    /// Topics must go before their client does.
    private let client: Client

    package init(_ name: String, of client: Client) throws(RdkafkaError) {
        guard let topic = rd_kafka_topic_new(client.pointer, name, nil) else {
            throw RdkafkaError(ErrorCode(rd_kafka_last_error()))
        }
        self.name = name
        self.client = client
        pointer = topic
    }

    deinit { rd_kafka_topic_destroy(pointer) }

    /// Compare with `Message.topicIdentity`.
    package var identity: OpaquePointer { pointer }
}

extension Duration {
    /// For the library's timeouts: at least one, since zero would mean "do not wait" and a negative
    /// number "for ever".
    var milliseconds: CInt {
        let (seconds, attoseconds) = components
        let whole = min(seconds, 86_400) * 1000 + attoseconds / 1_000_000_000_000_000
        return CInt(max(1, whole))
    }
}
