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
    /// - Parameter tokens: of the client that raised the error. Without one it connects to nobody,
    ///   and all that the library says is that the time is over.
    static func sorted(
        _ error: RdkafkaError, operation: String, topic: String, tokens: TokenSource?
    ) -> KafkaError {
        switch error.code {
        case .unknownTopic, .unknownTopicOrPartition: .missingTopic(topic)
        case .timedOut, .transport, .allBrokersDown, .requestTimedOut:
            tokens?.failure.map { .noToken($0) } ?? .unreachable(error)
        case .unsupportedFeature: .unsupported(operation: operation)
        case .topicAlreadyExists: .topicExists(topic)
        default: .client(error)
        }
    }
}
