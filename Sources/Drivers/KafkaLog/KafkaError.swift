// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Rdkafka

/// Why Kafka cannot be used as configured: what, and what to do about it.
package enum KafkaError: Error, Hashable, Sendable {
    case unknownProperty(String)
    case invalidProperty(String, message: String)
    case refusedProperty(String, reason: String)
    case missingProperty(String, remedy: String)
    /// Each is right by itself; why they are not together.
    case refusedTogether(String)
    /// The brokers want a token, and there is none to show them.
    case noToken(TokenFailure)
    /// No such topic, and we do not create it on the way.
    case missingTopic(String)
    /// No broker answered in time.
    case unreachable(RdkafkaError)
    /// The same, and it is known why.
    case noConnection(ConnectionFailure)
    /// The broker knows who asks, and does not allow it.
    case forbidden(topic: String, operation: String)
    /// This broker does not know the request; the embedded one knows no administration.
    case unsupported(operation: String)
    case topicExists(String)
    /// Anything else, in the library's words.
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
            "Kafka wants a token, and \(failure)"
        case .missingTopic(let name):
            "Kafka has no topic '\(name)': create it (lamplighter topics create) or name another"
        case .unreachable(let error):
            "Kafka does not answer (\(error)): check kafka.bootstrap, TLS and SASL settings"
        case .noConnection(let failure):
            "\(failure)"
        case .forbidden(let topic, let operation):
            "Kafka does not allow this user \(operation) on topic '\(topic)': see docs/kafka.md "
                + "for the rights that are needed"
        case .unsupported(let operation):
            "this Kafka does not support '\(operation)': the embedded one has no administration; "
                + "name its topics when you start it"
        case .topicExists(let name):
            "Kafka has a topic '\(name)' already"
        case .client(let error):
            "Kafka: \(error)"
        }
    }

    /// Sorts the library's errors into ours.
    /// - Parameters:
    ///   - operation: the right that it takes, where it is about one.
    ///   - client: which raised the error. Where it cannot connect, all that its calls say is that
    ///     the time is over.
    ///   - tokens: of the client. Without one it connects to nobody.
    static func sorted(
        _ error: RdkafkaError, operation: String, topic: String, client: Client,
        tokens: TokenSource?
    ) -> KafkaError {
        switch error.code {
        case .unknownTopic, .unknownTopicOrPartition: .missingTopic(topic)
        case .timedOut, .transport, .allBrokersDown, .requestTimedOut:
            tokens?.failure.map { .noToken($0) }
                ?? client.connectionFailure.map { .noConnection($0) } ?? .unreachable(error)
        case .topicAuthorizationFailed: .forbidden(topic: topic, operation: operation)
        case .unsupportedFeature: .unsupported(operation: operation)
        case .topicAlreadyExists: .topicExists(topic)
        default: .client(error)
        }
    }
}
