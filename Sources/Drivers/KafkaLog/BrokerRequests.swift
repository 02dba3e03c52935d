// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Rdkafka
internal import Synchronization

/// Which requests a broker answers. librdkafka asks it with each connection, and tells the answer to
/// its log alone.
enum BrokerRequests {
    /// ConsumerGroupHeartbeat, without which there is no `group.protocol=consumer`.
    static let consumerGroupHeartbeat = 68

    /// The API key in a line such as `kafka:9092/1:   ApiKey Fetch (1) Versions 0..17`; nil in any
    /// other.
    static func apiKey(in line: String) -> Int? {
        guard let match = line.firstMatch(of: /: +ApiKey \S+ \((\d{1,5})\) Versions \d/) else {
            return nil
        }
        return Int(match.1)
    }
}

/// Those of one broker's answer, while it comes.
private final class ToldKeys: Sendable {
    let keys = Mutex<Set<Int>>([])
}

extension KafkaClientSettings {
    /// Whether a broker that was asked takes part in `group.protocol=consumer`; nil if none answered
    /// in time. One that does may still have it switched off (`group.version`).
    package func kafkaHasConsumerProtocol(
        timeout: Duration = .seconds(10)
    ) throws(KafkaError) -> Bool? {
        let told = ToldKeys()
        let configuration = try configuration(for: .admin, debug: "feature")
        let client = try client(.admin, configuration) { _, _, text in
            guard let key = BrokerRequests.apiKey(in: text) else { return }
            told.keys.withLock { _ = $0.insert(key) }
        }
        guard client.clusterID(timeout: timeout) != nil else { return nil }
        let keys = told.keys.withLock { $0 }
        return keys.isEmpty ? nil : keys.contains(BrokerRequests.consumerGroupHeartbeat)
    }

    /// What is wrong with the protocol that the group is to have; nil if nothing is, as far as known.
    ///
    /// - Parameter isInKafka: what `kafkaHasConsumerProtocol` has found.
    package func protocolProblem(isInKafka: Bool?) -> KafkaError? {
        guard groupProtocol == .consumer, isInKafka == false else { return nil }
        return .refusedProperty(
            GroupProtocol.property,
            reason: "this Kafka has no group.protocol=consumer, which needs 4.0; leave it out")
    }

    /// Throws if `group.protocol=consumer` is asked for, and this Kafka has not got it: a member would
    /// wait for ever, without a word.
    package func requireGroupProtocol() throws(KafkaError) {
        guard groupProtocol == .consumer else { return }
        if let problem = protocolProblem(isInKafka: try kafkaHasConsumerProtocol()) {
            throw problem
        }
    }
}
