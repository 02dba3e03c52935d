// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// The processes of a fleet, and the configuration of its workers.
package struct FleetPlan: Sendable {
    package var programs: FleetPrograms
    /// The folder for all files.
    package var directory: String
    /// The `host:port` of an existing Kafka; nil for an embedded one.
    package var kafka: String?
    /// The transport of each worker that is started with the fleet: auto, nghttp2 or curl.
    package var transports: [String]
    /// The formats of these workers' logs, text or json, in turn.
    package var logFormats = ["text"]
    /// The workers' configuration, without the addresses of Kafka and APNs, which are known once
    /// they have started.
    package var configuration: WorkerConfiguration
    /// Additional options of the traffic generator.
    package var traffic: [String]

    package var topics: FleetTopics { configuration.topics }

    package init(
        programs: FleetPrograms, directory: String, kafka: String? = nil,
        configuration: WorkerConfiguration
    ) {
        self.programs = programs
        self.directory = directory
        self.kafka = kafka
        self.configuration = configuration
        transports = []
        traffic = []
    }

    /// The plan of a fleet with its own APNs simulator and traffic generator.
    package static func underTraffic(
        programs: FleetPrograms, directory: String, kafka: String? = nil,
        prefix: String = "lamplighter", partitions: [String: Int] = [:], transports: [String],
        traffic: [String]
    ) -> FleetPlan {
        var configuration = WorkerConfiguration(
            .underTraffic(prefix: prefix, partitions: partitions),
            session: WorkerConfiguration.session(isKafkaEmbedded: kafka == nil))
        configuration.registrationGrace = .milliseconds(200)
        // Requests that a stall leaves unanswered are sent again after this time.
        configuration.apns = [("requestTimeout", "3s")]
        configuration.credentials = [
            .init(
                name: "home", team: team, keyID: keyID, keyFile: "AuthKey.p8",
                apps: [Neighbourhood.app])
        ]
        var plan = FleetPlan(
            programs: programs, directory: directory, kafka: kafka, configuration: configuration)
        plan.transports = transports
        plan.traffic = traffic
        return plan
    }

    /// Has the workers say all they can, in both formats, and gives them secrets of every kind,
    /// which must be in nothing that they say. Neither of Kafka's passwords is used: the connection
    /// is in plaintext.
    package mutating func sayAll() {
        logFormats = ["json", "text"]
        configuration.logLevel = "trace"
        configuration.operatorToken = "hunter-operator-token"
        configuration.properties["sasl.username"] = "lamplighter"
        configuration.properties["sasl.password"] = "hunter-sasl-password"
        configuration.properties["ssl.key.password"] = "hunter-key-password"
    }

    static let team = "ABCDE12345"
    static let keyID = "FGHIJ67890"
}
