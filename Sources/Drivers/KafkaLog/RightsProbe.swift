// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Glibc
package import Logging
internal import PushModel
internal import Rdkafka

/// Finds out what Kafka allows this user by trying it, in ways that change nothing, since users
/// rarely have the right to list rights (`DescribeAcls`). Every call blocks, for its timeout at
/// most.
package struct RightsProbe {
    package enum Answer: Hashable, Sendable {
        case allowed, refused
        /// No expected answer came. The text is the error, or empty.
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

    /// Tests READ on existing topics: fetches at the end of one partition of each.
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
            // The mock cluster reports the end before a refusal too, so a refusal may still follow.
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
        // A broker reports the end only to a user that may read the records.
        case .none, .partitionEOF: answers[topic] = .allowed
        case .topicAuthorizationFailed: answers[topic] = .refused
        default: answers[topic] = answers[topic] ?? .unknown(message.errorText)
        }
    }

    /// Tests WRITE on existing topics: sends a record with an `acks` that Kafka refuses, after it has
    /// checked the right and before it writes anything. A broker of another make may store the record,
    /// which cannot be told before: so one topic is tried first, and where it has a `ProbeRecord` then,
    /// no other one is.
    package func writing(_ topics: [String]) throws(KafkaError) -> [String: Answer] {
        let client = try settings.client(for: .writeProbe, logger: logger)
        var answers: [String: Answer] = [:]
        var tried = 0
        var (isRefused, isStored) = (false, false)
        do throws(RdkafkaError) {
            while tried < topics.count, !isStored {
                let part = tried..<(isRefused ? topics.count : tried + 1)
                tried = part.upperBound
                for (topic, code) in try offer(part, of: topics, by: client) {
                    answers[topic] = Self.answer(of: code)
                    isRefused = isRefused || code == .invalidRequiredAcks
                    isStored = isStored || code == .none
                }
            }
        } catch {
            throw .client(error)
        }
        for topic in topics[tried...] {
            answers[topic] = .unknown(
                "this Kafka stores the record that tries it, as topic '\(topics[tried - 1])' has "
                    + "shown, so none was sent")
        }
        return answers.merging(topics.map { ($0, .unknown("")) }) { known, _ in known }
    }

    /// - Parameter part: the places of the topics to write to.
    /// - Returns: by topic, the code that came within the time. It may be of an earlier call.
    private func offer(
        _ part: Range<Int>, of topics: [String], by client: Client
    ) throws(RdkafkaError) -> [String: ErrorCode] {
        // The handles must live as long as the records handed over.
        var handles: [Topic] = []
        for place in part {
            let topic = try Topic(topics[place], of: client)
            handles.append(topic)
            try offer(to: topic, ticket: UInt64(place), by: client)
        }
        _ = client.flush(timeout: timeout)
        var codes: [String: ErrorCode] = [:]
        for report in client.takeDeliveryReports() {
            codes[topics[Int(report.ticket)]] = report.code
        }
        withExtendedLifetime(handles) {}
        return codes
    }

    private func offer(
        to topic: Topic, ticket: UInt64, by client: Client
    ) throws(RdkafkaError) {
        let key = Array(ProbeRecord.key.utf8)
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

    /// Tests READ on the group: commits an offset of a partition that does not exist. The broker
    /// checks the right first, and then has nothing to write. No member joins the group.
    /// - Parameter topic: an existing topic.
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
            // Without DESCRIBE the client does not even find the group's coordinator.
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
        // These are about the topic: the broker has already checked the right to the group.
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
