// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CRdkafka

/// librdkafka's own brokers: the Kafka protocol over TCP on 127.0.0.1, in memory, with faults on
/// demand. Limited in many ways; see `EmbeddedKafka`.
package final class MockCluster: @unchecked Sendable {
    // SAFETY: immutable; the cluster runs on a thread of the library's, and its calls are messages
    // to that thread.
    private let client: Client
    private let pointer: OpaquePointer

    package init(brokers: Int, log: @escaping Client.LogSink) throws(RdkafkaError) {
        precondition(brokers > 0, "a cluster has at least one broker")
        // The cluster needs some client to live in; this one never connects to anything.
        client = try Client(.producer, configuration: Configuration(), log: log)
        guard let cluster = rd_kafka_mock_cluster_new(client.pointer, CInt(brokers)) else {
            throw RdkafkaError(.failed, message: "no mock cluster with \(brokers) brokers")
        }
        pointer = cluster
    }

    deinit { rd_kafka_mock_cluster_destroy(pointer) }

    /// `host:port,host:port`, for `bootstrap.servers`.
    package var bootstrap: String { String(cString: rd_kafka_mock_cluster_bootstraps(pointer)) }

    package func createTopic(
        _ name: String, partitions: Int32, replication: Int32 = 1
    ) throws(RdkafkaError) {
        try RdkafkaError.check(
            rd_kafka_mock_topic_create(pointer, name, partitions, replication))
    }

    package func takeBrokerDown(_ broker: Int32) throws(RdkafkaError) {
        try RdkafkaError.check(rd_kafka_mock_broker_set_down(pointer, broker))
    }

    package func bringBrokerUp(_ broker: Int32) throws(RdkafkaError) {
        try RdkafkaError.check(rd_kafka_mock_broker_set_up(pointer, broker))
    }

    /// - Parameter broker: -1 for all.
    package func setRoundTrip(
        ofBroker broker: Int32, milliseconds: Int32
    ) throws(RdkafkaError) {
        try RdkafkaError.check(rd_kafka_mock_broker_set_rtt(pointer, broker, milliseconds))
    }

    /// The next requests of this kind are answered with these errors, in order; `transport` drops
    /// the connection instead.
    package func failRequests(apiKey: Int16, with errors: [ErrorCode]) {
        let natives = errors.map(\.native)
        rd_kafka_mock_push_request_errors_array(pointer, apiKey, natives.count, natives)
    }

    /// - Parameter broker: -1 leaves the partition without a leader.
    package func setLeader(
        ofTopic topic: String, partition: Int32, toBroker broker: Int32
    ) throws(RdkafkaError) {
        try RdkafkaError.check(
            rd_kafka_mock_partition_set_leader(pointer, topic, partition, broker))
    }

    /// Every metadata answer about the topic carries this error; `none` ends it.
    package func setError(_ error: ErrorCode, ofTopic topic: String) {
        rd_kafka_mock_topic_set_error(pointer, topic, error.native)
    }
}
