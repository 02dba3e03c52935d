// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Rdkafka

/// Why Kafka cannot be used as configured, and what to do about it.
package enum KafkaError: Error, Hashable, Sendable {
    case unknownProperty(String)
    case invalidProperty(String, message: String)
    case refusedProperty(String, reason: String)
    case missingProperty(String, remedy: String)
    /// Properties that are each valid contradict each other; the text says how.
    case refusedTogether(String)
    /// The brokers require a token, and none could be obtained.
    case noToken(TokenFailure)
    /// The topic does not exist. It is never created implicitly.
    case missingTopic(String)
    /// No broker answered in time.
    ///
    /// - lastWords: what librdkafka said last of a connection that has just failed.
    case unreachable(RdkafkaError, lastWords: String? = nil)
    /// No connection could be made, and the cause is known.
    case noConnection(ConnectionFailure)
    /// The broker does not allow this user the operation.
    case forbidden(topic: String, operation: String)
    /// The broker does not support the request; the embedded one has no administration.
    case unsupported(operation: String)
    case topicExists(String)
    /// Any other error, in librdkafka's words.
    case client(RdkafkaError)
}

extension KafkaError: CustomStringConvertible {
    package var description: String {
        switch self {
        case .unknownProperty(let name):
            "kafka.properties: librdkafka \(RdkafkaVersion.text) has no property '\(name)'; "
                + "check its spelling"
        case .invalidProperty(let name, let message):
            "kafka.properties: '\(name)': \(message)"
        case .refusedProperty(let name, let reason):
            "kafka.properties: '\(name)' cannot be set: \(reason)"
        case .missingProperty(let name, let remedy):
            "kafka.properties: '\(name)' is missing: \(remedy)"
        case .refusedTogether(let reason):
            "kafka.properties: \(reason)"
        case .noToken(let failure):
            "Kafka requires a token, and \(failure)"
        case .missingTopic(let name):
            "Kafka has no topic '\(name)': create it (lamplighter topics create) or name another"
        case .unreachable(let error, let lastWords):
            "Kafka does not answer (\(error)"
                + (lastWords.map { "; librdkafka's last reason: \($0)" } ?? "")
                + "): check kafka.bootstrap, TLS and SASL settings"
        case .noConnection(let failure):
            "\(failure)"
        case .forbidden(let topic, let operation):
            "Kafka does not allow this user \(operation) on topic '\(topic)': see docs/kafka.md "
                + "for the rights that are needed"
        case .unsupported(let operation):
            "this Kafka does not support '\(operation)': the embedded one has no administration; "
                + "name its topics when you start it"
        case .topicExists(let name):
            "Kafka already has a topic '\(name)'"
        case .client(let error):
            "Kafka: \(error)"
        }
    }

    /// Translates an error of librdkafka's.
    /// - Parameters:
    ///   - operation: the right that the operation needs.
    ///   - client: the client that raised the error. If it cannot connect, its calls only report a
    ///     timeout; the cause is in its log.
    ///   - tokens: the client's source of tokens, if it needs any. Without a token it cannot
    ///     connect.
    static func sorted(
        _ error: RdkafkaError, operation: String, topic: String, client: Client,
        tokens: TokenSource?
    ) -> KafkaError {
        switch error.code {
        case .unknownTopic, .unknownTopicOrPartition: .missingTopic(topic)
        case .timedOut, .transport, .allBrokersDown, .requestTimedOut:
            tokens?.failure.map { .noToken($0) }
                ?? client.connectionFailure.map { .noConnection($0) }
                ?? .unreachable(error, lastWords: client.troubles.lastWords())
        case .topicAuthorizationFailed: .forbidden(topic: topic, operation: operation)
        case .unsupportedFeature: .unsupported(operation: operation)
        case .topicAlreadyExists: .topicExists(topic)
        default: .client(error)
        }
    }
}
