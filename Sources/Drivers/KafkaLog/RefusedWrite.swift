// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Rdkafka

/// Kafka has refused a record, and what to do about it.
package struct RefusedWrite: Error, Hashable, Sendable {
    package let topic: String
    private let error: RdkafkaError

    package init(topic: String, _ error: RdkafkaError) {
        self.topic = topic
        self.error = error
    }

    package init(topic: String, _ code: ErrorCode) {
        self.init(topic: topic, RdkafkaError(code))
    }

    /// Whether a right or the topic is missing, so that trying again later does not help.
    package var isConfiguration: Bool {
        switch error.code {
        case .topicAuthorizationFailed, .unknownTopic, .unknownTopicOrPartition: true
        default: false
        }
    }
}

extension RefusedWrite: CustomStringConvertible {
    package var description: String {
        switch error.code {
        case .topicAuthorizationFailed:
            "Kafka does not allow this user WRITE on topic '\(topic)': see Rights in docs/kafka.md"
        // Without any right on a topic a broker does not say whether it exists.
        case .unknownTopic, .unknownTopicOrPartition:
            "Kafka has no topic '\(topic)', or hides it from this user: create it (lamplighter "
                + "topics create), or give the user WRITE on it (Rights in docs/kafka.md)"
        default: "Kafka refused the record for topic '\(topic)': \(error)"
        }
    }
}
