// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// The configuration of a fleet's workers, written as `lamplighter.yaml`. Back-offs are short, and
/// librdkafka is tuned for the embedded Kafka, so that runs take less time.
package struct WorkerConfiguration: Sendable {
    package struct Credential: Sendable {
        package var name: String
        package var team: String
        package var keyID: String
        /// The path of the key; a relative one is relative to the configuration's folder.
        package var keyFile: String
        package var apps: [String]

        package init(
            name: String, team: String, keyID: String, keyFile: String, apps: [String]
        ) {
            self.name = name
            self.team = team
            self.keyID = keyID
            self.keyFile = keyFile
            self.apps = apps
        }
    }

    package struct Endpoint: Sendable {
        package var environment: PushEnvironment
        package var host: String
        package var port: UInt16

        package init(_ environment: PushEnvironment, host: String, port: UInt16) {
            self.environment = environment
            self.host = host
            self.port = port
        }
    }

    package var bootstrap = ""
    package let topics: FleetTopics
    /// The event topics with their bindings in YAML, such as `{decode: json}`.
    package var events: [(topic: String, binding: String)]
    /// The topic of outcomes; nil for none.
    package var outcomes: String?
    package var credentials: [Credential] = []
    /// Those of the simulator, which answers to pushes, broadcasts and requests about channels alike.
    package var endpoints: [Endpoint] = []
    package var transport = "auto"
    package var caFile = "ca.pem"
    /// The consumers' session timeout, after which the group notices a dead worker.
    package let session: Duration
    /// `index.registrationGrace`, which the checker must know too.
    package var registrationGrace = Duration.seconds(2)
    package var holdMax = Duration.seconds(10)
    /// `deadLetters.repeatAfter`: the checker takes a letter as the proof of each failure.
    package var repeatAfter = Duration.zero
    /// Properties of librdkafka.
    package var properties: [String: String]
    /// Additional keys of the section `delivery`, with values in YAML; likewise `kafka`, `intake`,
    /// `canary`, `planning` and `apns`.
    package var delivery: [(key: String, value: String)] = []
    package var kafka: [(key: String, value: String)] = []
    package var intake: [(key: String, value: String)] = []
    package var canary: [(key: String, value: String)] = []
    package var planning: [(key: String, value: String)] = []
    /// `planning.minimumGap`, in YAML. The checker knows of no gap: by default there is none, not
    /// even between background pushes.
    package var minimumGap = "{background: 0s}"
    package var apns: [(key: String, value: String)] = []

    /// The token that requests of operators must carry; nil for none.
    package var operatorToken: String?
    /// The name of the file with the token, in the configuration's folder.
    static let operatorTokenFile = "operator.token"
    /// The port of the fleet's registrar; 0 for a fleet without one.
    package var registrarPort = 0
    /// The name of the file with the keys of those who may register.
    static let registrarKeysFile = "registrar-keys"
    /// `log.level`; nil for the default.
    package var logLevel: String?

    package init(_ topics: FleetTopics, session: Duration) {
        self.topics = topics
        self.session = session
        events = [(topics.name(of: "events"), "{decode: json}")]
        properties = [
            "session.timeout.ms": "\(session.wholeMilliseconds)",
            "heartbeat.interval.ms": "200",
            // The embedded Kafka delays an empty fetch by all of this time.
            "fetch.wait.max.ms": "5",
            // The worker reconnects quickly to a broker that was away.
            "reconnect.backoff.max.ms": "500",
        ]
    }

    /// The environment variable of a key: that of `delivery.threads` is
    /// LAMPLIGHTER_DELIVERY_THREADS.
    package static func variable(of key: String) -> String {
        "LAMPLIGHTER_" + key.replacing(".", with: "_").uppercased()
    }

    /// The shortest session timeout that works for a fleet.
    ///
    /// The embedded Kafka makes a group wait at each join for the session timeout less 1 s, but 3 s
    /// at the first, and forgets members that wait for longer than their session. Apache Kafka
    /// allows no less than 6 s.
    package static func session(isKafkaEmbedded: Bool) -> Duration {
        isKafkaEmbedded ? .milliseconds(3500) : .seconds(6)
    }

    package var text: String {
        """
        kafka:
          bootstrap: \(bootstrap)
          group: \(topics.prefix)
          startFrom: earliest
        \(lines(kafka.map { ($0.key, $0.value) }, indent: 2))
          topics:
            registrations: \(topics.name(of: "registrations"))
            suppressions: \(topics.name(of: "suppressions"))
            deferred: \(topics.name(of: "deferred"))
            deadLetters: \(topics.name(of: "dead-letters"))
            restrictions: \(topics.name(of: "restrictions"))
        \(lines(outcomes.map { [("outcomes", $0)] } ?? [], indent: 4))
          events:
        \(lines(events.map { ($0.topic, $0.binding) }, indent: 4))
          properties:
        \(lines(properties.sorted { $0.key < $1.key }, indent: 4))
        index:
          registrationGrace: \(registrationGrace.notation)
        delivery:
          backoffMin: 100ms
          cooldownMin: 1s
          holdMax: \(holdMax.notation)
        \(lines(delivery.map { ($0.key, $0.value) }, indent: 2))
        \(section("intake", intake.map { ($0.key, $0.value) }))
        \(section("canary", canary.map { ($0.key, $0.value) }))
        deadLetters: {repeatAfter: \(repeatAfter.notation)}
        \(section("planning", [("minimumGap", minimumGap)] + planning.map { ($0.key, $0.value) }))
        apns:
          transport: \(transport)
          caFile: \(caFile)
          reconnectMin: 10ms
        \(lines(apns.map { ($0.key, $0.value) }, indent: 2))
          credentials:
        \(credentials.map(text).joined(separator: "\n"))
          endpoints:
        \(lines(endpoints.map { ($0.environment.name, address(of: $0)) }, indent: 4))
          broadcastEndpoints:
        \(lines(endpoints.map { ($0.environment.name, address(of: $0)) }, indent: 4))
          channelEndpoints:
        \(lines(endpoints.map { ($0.environment.name, address(of: $0)) }, indent: 4))
        health:
          port: 0
        admin:
          port: 0
        \(operatorToken == nil ? "" : "  tokenFile: \(Self.operatorTokenFile)")
        \(section("registrar", registrar))
        log:
          format: text
        \(logLevel.map { "  level: \($0)" } ?? "")

        """.split(separator: "\n", omittingEmptySubsequences: true).joined(separator: "\n") + "\n"
    }

    private var registrar: [(String, String)] {
        guard registrarPort > 0 else { return [] }
        return [
            ("port", "\(registrarPort)"), ("group", "\(topics.prefix)-registrar"),
            ("requestsPerSecond", "100000"),
            ("auth", "{serviceKeysFile: \(Self.registrarKeysFile)}"),
        ]
    }

    private func section(_ name: String, _ values: [(String, String)]) -> String {
        values.isEmpty ? "" : "\(name):\n\(lines(values, indent: 2))"
    }

    private func lines(_ values: [(String, String)], indent: Int) -> String {
        values.map { String(repeating: " ", count: indent) + "\($0.0): \($0.1)" }
            .joined(separator: "\n")
    }

    private func text(of credential: Credential) -> String {
        let environments = Set(endpoints.map(\.environment.name)).sorted().reversed()
        return """
                \(credential.name):
                  team: \(credential.team)
                  keyID: \(credential.keyID)
                  keyFile: \(credential.keyFile)
                  apps: [\(credential.apps.joined(separator: ", "))]
                  environments: [\(environments.joined(separator: ", "))]
            """
    }

    private func address(of endpoint: Endpoint) -> String {
        "{host: \(endpoint.host), port: \(endpoint.port), serverName: localhost}"
    }
}

extension Duration {
    /// The duration in whole milliseconds, rounded down.
    package var wholeMilliseconds: Int { Int(self / .milliseconds(1)) }
}
