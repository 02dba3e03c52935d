// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Intake
package import KafkaLog
package import PushModel

extension Configuration {
    package struct Kafka: Sendable {
        package var bootstrap = ""
        package var group = "lamplighter"
        package var clientID = "lamplighter"
        /// Static membership, where a worker's identity is stable.
        package var groupInstanceID: String?
        package var topics = Topics()
        /// By Kafka topic.
        package var events = ["lamplighter.events": TopicBinding.standard]
        /// Nil: the longest life that an event may give a push; see `Configuration.startFrom`.
        package var startFrom: StartFrom?
        package var skip: [RecordCoordinates] = []
        /// For librdkafka, as they are; some hold passwords.
        package var properties: [String: Secret] = [:]
    }
}

extension Configuration {
    /// Where a group begins that has committed nothing. By default no push is skipped that would still
    /// be worth sending.
    package var startFrom: StartFrom {
        if let startFrom = kafka.startFrom { return startFrom }
        let lives = kafka.events.values.map { $0.ttl ?? max(planning.ttl, planning.payloadTTL) }
        return .ago(lives.max() ?? max(planning.ttl, planning.payloadTTL))
    }
}

extension Configuration.Kafka {
    /// The topics of Lamplighter's own records.
    package struct Topics: Sendable {
        package var registrations = "lamplighter.registrations"
        package var suppressions = "lamplighter.suppressions"
        package var deferred = "lamplighter.deferred"
        package var deadLetters = "lamplighter.dead-letters"
    }

    /// One record of an event topic.
    package struct RecordCoordinates: Sendable, Hashable {
        package var topic: String
        package var partition: Int32
        package var offset: Int64
    }

    /// Properties of librdkafka that have a key of their own, besides those the driver refuses.
    static let ownProperties: KeyValuePairs<String, String> = [
        "client.id": "clientID", "group.instance.id": "groupInstanceID",
    ]

    /// What every Kafka client of this worker is started with.
    package var clientSettings: KafkaClientSettings {
        var properties = self.properties
        properties["client.id"] = Secret(clientID)
        properties["group.instance.id"] = groupInstanceID.map { Secret($0) }
        return KafkaClientSettings(bootstrap: bootstrap, group: group, properties: properties)
    }

    /// What a person may see of a property: nothing where its name speaks of a secret.
    static func shown(property name: String, value: Secret) -> String {
        let words = ["password", "secret", "pem", "key", "token", "username", "config"]
        return words.contains { name.contains($0) } ? "\(value)" : value.text
    }
}
