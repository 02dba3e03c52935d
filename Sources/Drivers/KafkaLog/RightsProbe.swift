// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
package import Logging
internal import Rdkafka

/// Finds out what Kafka allows this user by trying it, in ways that change nothing: a right to
/// describe rights (`DescribeAcls`) is one that nobody has. Every call waits, for its timeout at
/// most.
package struct RightsProbe {
    package enum Answer: Hashable, Sendable {
        case allowed, refused
        /// Nobody answered as expected; what was said, if anything.
        case unknown(String)
    }

    private let settings: KafkaClientSettings
    private let timeout: Duration
    private let logger: Logger

    package init(settings: KafkaClientSettings, timeout: Duration = .seconds(10), logger: Logger) {
        self.settings = settings
        self.timeout = timeout
        self.logger = logger
    }

    /// READ on topics that exist: fetches at the end of one partition of each.
    package func reading(_ topics: [String]) throws(KafkaError) -> [String: Answer] {
        let client = try settings.client(for: .table, logger: logger)
        var answers: [String: Answer] = [:]
        do throws(RdkafkaError) {
            try client.pollEverythingAsConsumer()
            let list = TopicPartitionList(capacity: topics.count)
            for topic in topics { list.append(topic: topic, partition: 0, offset: Offset.end) }
            try client.assign(list)
            let count = Set(topics).count
            poll(client) { message in
                Self.take(message, &answers)
                return answers.count == count
            }
            // The mock cluster tells the end also with a refusal, which stands behind it then.
            poll(client, within: .milliseconds(100)) { message in
                Self.take(message, &answers)
                return false
            }
        } catch {
            throw .client(error)
        }
        _ = client.closeConsumer(timeout: .seconds(2))
        return answers.merging(topics.map { ($0, .unknown("")) }) { known, _ in known }
    }

    private static func take(_ message: borrowing Message, _ answers: inout [String: Answer]) {
        guard let topic = message.topicName else { return }
        switch message.error {
        // The end is told to whom records would have been given.
        case .none, .partitionEOF: answers[topic] = .allowed
        case .topicAuthorizationFailed: answers[topic] = .refused
        default: answers[topic] = answers[topic] ?? .unknown(message.errorText)
        }
    }

    /// WRITE on topics that exist: hands over a record whose `acks` no broker accepts. That is looked
    /// at behind the right, and before anything is written. The record would be a tombstone for a key
    /// that nobody has, should a broker of another make write it all the same.
    package func writing(_ topics: [String]) throws(KafkaError) -> [String: Answer] {
        let client = try settings.client(for: .writeProbe, logger: logger)
        var answers: [String: Answer] = [:]
        do throws(RdkafkaError) {
            // They live as long as what was handed over.
            var handles: [Topic] = []
            for (index, name) in topics.enumerated() {
                let topic = try Topic(name, of: client)
                handles.append(topic)
                try offer(to: topic, ticket: UInt64(index), by: client)
            }
            _ = client.flush(timeout: timeout)
            for report in client.takeDeliveryReports() {
                answers[topics[Int(report.ticket)]] = Self.answer(of: report.code)
            }
            withExtendedLifetime(handles) {}
        } catch {
            throw .client(error)
        }
        return answers.merging(topics.map { ($0, .unknown("")) }) { known, _ in known }
    }

    private static let key = "lamplighter/check"

    private func offer(
        to topic: Topic, ticket: UInt64, by client: Client
    ) throws(RdkafkaError) {
        let key = Array(Self.key.utf8)
        let result = key.withUnsafeBytes { key in
            Result { () throws(RdkafkaError) in
                try client.produce(
                    to: topic, partition: 0, key: key, value: nil, headers: nil, ticket: ticket)
            }
        }
        try result.get()
    }

    private static func answer(of code: ErrorCode) -> Answer {
        switch code {
        case .invalidRequiredAcks, .none: .allowed
        case .topicAuthorizationFailed: .refused
        default: .unknown(code.text)
        }
    }

    /// READ on the group: commits an offset of a partition that no topic has. The broker looks at the
    /// right first, and then finds nothing to write; nobody joins.
    /// - Parameter topic: that exists.
    package func group(_ topic: String) throws(KafkaError) -> Answer {
        let client = try settings.client(for: .table, logger: logger)
        var answer = Answer.unknown("")
        do throws(RdkafkaError) {
            try client.pollEverythingAsConsumer()
            let list = TopicPartitionList(capacity: 1)
            list.append(topic: topic, partition: .max, offset: 0)
            do throws(RdkafkaError) {
                let code = try client.commit(list, timeout: timeout)[0].error
                answer = code == .none ? .allowed : Self.groupAnswer(of: RdkafkaError(code))
            } catch {
                answer = Self.groupAnswer(of: error)
            }
            // Without DESCRIBE the group's coordinator is not even found.
            if case .unknown = answer {
                poll(client, within: .milliseconds(500)) { message in
                    guard message.error == .groupAuthorizationFailed else { return false }
                    answer = .refused
                    return true
                }
            }
        } catch {
            throw .client(error)
        }
        _ = client.closeConsumer(timeout: .seconds(2))
        return answer
    }

    private static func groupAnswer(of error: RdkafkaError) -> Answer {
        switch error.code {
        case .groupAuthorizationFailed: .refused
        // Of the topic: the group's has been looked at before.
        case .unknownTopicOrPartition, .topicAuthorizationFailed: .allowed
        default: .unknown(error.message)
        }
    }

    private func poll(
        _ client: Client, within limit: Duration? = nil,
        _ isDone: (borrowing Message) -> Bool
    ) {
        let deadline = ContinuousClock.now + (limit ?? timeout)
        while ContinuousClock.now < deadline {
            guard let message = client.pollMessage() else {
                usleep(10_000)
                continue
            }
            if isDone(message) { return }
        }
    }
}
