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
        /// The worker's identity for static membership; nil for dynamic membership.
        package var groupInstanceID: String?
        package var topics = Topics()
        /// The bindings of the event topics, by Kafka topic.
        package var events = ["lamplighter.events": TopicBinding.standard]
        /// Examples of the topics' records, which `lamplighter check` tries.
        package var eventTests: [String: [BindingTest]] = [:]
        package var schemaRegistry = SchemaRegistry()
        /// Where to start without a commit; nil for the default of `Configuration.startFrom`.
        package var startFrom: StartFrom?
        package var skip: [RecordCoordinates] = []
        /// Properties that are passed to librdkafka unchanged; some hold passwords.
        package var properties: [String: Secret] = [:]
    }
}

extension Configuration {
    /// Where reading starts if the group has committed nothing. The default goes back by the
    /// longest `ttl`, so that no push is skipped that would still be worth sending.
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
        /// Nil writes no outcomes.
        package var outcomes: String?
        package var restrictions = "lamplighter.restrictions"
    }

    /// One record of an event topic.
    package struct RecordCoordinates: Sendable, Hashable {
        package var topic: String
        package var partition: Int32
        package var offset: Int64

        package init(topic: String, partition: Int32, offset: Int64) {
            self.topic = topic
            self.partition = partition
            self.offset = offset
        }
    }

    /// librdkafka's properties that the configuration has a key for, apart from those that the
    /// driver refuses.
    static let ownProperties: KeyValuePairs<String, String> = [
        "client.id": "clientID", "group.instance.id": "groupInstanceID",
    ]

    /// librdkafka's default.
    private var securityProtocol: String {
        properties["security.protocol"]?.text.lowercased() ?? "plaintext"
    }

    /// That a password is never sent, and nothing encrypted; nil if it need not be said.
    var plaintextNotice: String? {
        let login = ["sasl.username", "sasl.password", "sasl.mechanism", "sasl.mechanisms"]
        guard !securityProtocol.hasPrefix("sasl_"),
            let name = login.first(where: { properties[$0] != nil })
        else { return nil }
        return "kafka.properties: \(name) is set, and security.protocol is \(securityProtocol)"
            + (properties["security.protocol"] == nil ? ", the default" : "")
            + ": Kafka is told no user"
            + (securityProtocol == "plaintext" ? ", and nothing is encrypted" : "")
            + ". Set security.protocol to sasl_ssl"
    }

    /// A protocol before a broker's name must be that of `security.protocol`: librdkafka leaves other
    /// brokers out. Another `security.protocol` is proposed only where nobody has chosen one and
    /// all brokers name the same: what was chosen may protect the password.
    func protocolProblem() -> Complaint? {
        let named = bootstrap.split(separator: ",").map { broker in
            broker.firstRange(of: "://").map { broker[..<$0.lowerBound].lowercased() }
        }
        guard let other = named.compactMap(\.self).first(where: { $0 != securityProtocol }) else {
            return nil
        }
        let isMeant =
            properties["security.protocol"] == nil && named.allSatisfy { $0 == other }
            && ["plaintext", "ssl", "sasl_plaintext", "sasl_ssl"].contains(other)
        return Complaint(
            wrong: "has \(other.uppercased()):// before a broker, and security.protocol is "
                + securityProtocol,
            remedy: "write host:port alone"
                + (isMeant ? ", and kafka.properties: security.protocol: \(other)" : ""))
    }

    /// What `groupInstanceID` is in the configuration to be the host's name.
    private static let hostsName = "auto"

    /// Puts the host's name in the place of `auto`. A name that every host has which was given none
    /// is refused: two workers would take it from each other.
    mutating func nameInstance(_ reader: inout SettingReader, hostName: String) {
        guard groupInstanceID == Self.hostsName else { return }
        groupInstanceID = hostName
        let isShared = hostName.isEmpty || hostName.split(separator: ".").first == "localhost"
        let isTaken = hostName.wholeMatch(of: try! Regex(Self.name)) != nil
        guard isShared || !isTaken else { return }
        reader.report(
            ["kafka", "groupInstanceID"],
            wrong: "is auto, and this host is called '\(hostName)', "
                + (isShared ? "as others are" : "which Kafka does not take"),
            remedy: "name the worker here as no other worker is, or leave the key out")
    }

    /// The settings of every Kafka client of this worker.
    package var clientSettings: KafkaClientSettings {
        var properties = self.properties
        properties["client.id"] = Secret(clientID)
        properties["group.instance.id"] = groupInstanceID.map { Secret($0) }
        return KafkaClientSettings(bootstrap: bootstrap, group: group, properties: properties)
    }

    /// The value of a property as it may be shown: hidden if the name suggests a secret.
    static func shown(property name: String, value: Secret) -> String {
        let words = ["password", "secret", "pem", "key", "token", "username", "config"]
        return words.contains { name.contains($0) } ? "\(value)" : value.text
    }
}
