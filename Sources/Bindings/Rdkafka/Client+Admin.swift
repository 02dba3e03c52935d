// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import CRdkafka

/// A topic to be created.
package struct NewTopic: Sendable {
    package var name: String
    package var partitions: Int32
    /// -1 takes the broker's default.
    package var replication: Int32
    package var configuration: [String: String]

    package init(
        name: String, partitions: Int32, replication: Int32, configuration: [String: String] = [:]
    ) {
        self.name = name
        self.partitions = partitions
        self.replication = replication
        self.configuration = configuration
    }
}

extension Client {
    package func createTopic(_ topic: NewTopic, timeout: Duration) throws(RdkafkaError) {
        var text = [CChar](repeating: 0, count: 512)
        guard
            let request = rd_kafka_NewTopic_new(
                topic.name, topic.partitions, topic.replication, &text, text.count)
        else { throw RdkafkaError(.invalidArgument, message: String(nulTerminated: text)) }
        defer { rd_kafka_NewTopic_destroy(request) }
        for (name, value) in topic.configuration {
            try RdkafkaError.check(rd_kafka_NewTopic_set_config(request, name, value))
        }
        let event = try answer(to: RD_KAFKA_ADMIN_OP_CREATETOPICS, timeout: timeout) {
            options, queue in
            var requests: [OpaquePointer?] = [request]
            rd_kafka_CreateTopics(pointer, &requests, 1, options, queue)
        }
        defer { rd_kafka_event_destroy(event) }
        var count = 0
        let results = rd_kafka_CreateTopics_result_topics(
            rd_kafka_event_CreateTopics_result(event), &count)
        guard count == 1, let result = results?[0] else { throw RdkafkaError(.failed) }
        try Self.check(
            rd_kafka_topic_result_error(result), rd_kafka_topic_result_error_string(result))
    }

    /// Every configuration entry of a topic, defaults included.
    package func describeTopic(
        _ name: String, timeout: Duration
    ) throws(RdkafkaError) -> [String: String] {
        try describe(RD_KAFKA_RESOURCE_TOPIC, name, timeout: timeout)
    }

    /// Every configuration entry of a broker.
    package func describeBroker(
        _ id: Int32, timeout: Duration
    ) throws(RdkafkaError) -> [String: String] {
        try describe(RD_KAFKA_RESOURCE_BROKER, "\(id)", timeout: timeout)
    }

    private func describe(
        _ type: rd_kafka_ResourceType_t, _ name: String, timeout: Duration
    ) throws(RdkafkaError) -> [String: String] {
        guard let resource = rd_kafka_ConfigResource_new(type, name) else {
            throw RdkafkaError(.invalidArgument, message: "not a name: \(name)")
        }
        defer { rd_kafka_ConfigResource_destroy(resource) }
        let event = try answer(to: RD_KAFKA_ADMIN_OP_DESCRIBECONFIGS, timeout: timeout) {
            options, queue in
            var requests: [OpaquePointer?] = [resource]
            rd_kafka_DescribeConfigs(pointer, &requests, 1, options, queue)
        }
        defer { rd_kafka_event_destroy(event) }
        var count = 0
        let results = rd_kafka_DescribeConfigs_result_resources(
            rd_kafka_event_DescribeConfigs_result(event), &count)
        guard count == 1, let result = results?[0] else { throw RdkafkaError(.failed) }
        try Self.check(
            rd_kafka_ConfigResource_error(result), rd_kafka_ConfigResource_error_string(result))
        return Self.entries(of: result)
    }

    private static func entries(of resource: OpaquePointer) -> [String: String] {
        var count = 0
        let entries = rd_kafka_ConfigResource_configs(resource, &count)
        var values: [String: String] = [:]
        for index in 0..<count {
            guard let entry = entries?[index], let name = rd_kafka_ConfigEntry_name(entry),
                let value = rd_kafka_ConfigEntry_value(entry)
            else { continue }
            values[String(cString: name)] = String(cString: value)
        }
        return values
    }

    /// Sends one admin request and waits for its answer, an event that the caller destroys.
    private func answer(
        to operation: rd_kafka_admin_op_t, timeout: Duration,
        _ send: (_ options: OpaquePointer?, _ queue: OpaquePointer) -> Void
    ) throws(RdkafkaError) -> OpaquePointer {
        let queue = EventQueue(for: self)
        let options = rd_kafka_AdminOptions_new(pointer, operation)
        precondition(options != nil, "librdkafka has every operation that is asked for")
        defer { rd_kafka_AdminOptions_destroy(options) }
        var text = [CChar](repeating: 0, count: 512)
        let set = rd_kafka_AdminOptions_set_request_timeout(
            options, timeout.milliseconds, &text, text.count)
        if set != RD_KAFKA_RESP_ERR_NO_ERROR {
            throw RdkafkaError(ErrorCode(set), message: String(nulTerminated: text))
        }
        send(options, queue.pointer)
        // The library answers within its own timeout; the extra second only covers its timer.
        guard let event = queue.poll(timeout: timeout + .seconds(1)) else {
            throw RdkafkaError(.timedOut)
        }
        let code = rd_kafka_event_error(event)
        guard code == RD_KAFKA_RESP_ERR_NO_ERROR else {
            let message = rd_kafka_event_error_string(event).map { String(cString: $0) }
            rd_kafka_event_destroy(event)
            throw RdkafkaError(ErrorCode(code), message: message)
        }
        return event
    }

    private static func check(
        _ code: rd_kafka_resp_err_t, _ text: UnsafePointer<CChar>?
    ) throws(RdkafkaError) {
        guard code != RD_KAFKA_RESP_ERR_NO_ERROR else { return }
        throw RdkafkaError(ErrorCode(code), message: text.map { String(cString: $0) })
    }
}
