// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// What a fleet is made of, and how its workers are configured.
package struct FleetPlan: Sendable {
    package var programs: FleetPrograms
    /// Where everything is written.
    package var directory: String
    /// `host:port` of a Kafka that is there already; nil for an embedded one.
    package var kafka: String?
    /// Of each worker that is started with the fleet: auto, nghttp2 or curl.
    package var transports: [String]
    /// All but where Kafka and APNs are, which shows when they are started.
    package var configuration: WorkerConfiguration
    /// More options of the traffic generator.
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

    /// A fleet with an APNs simulator and a traffic generator of its own.
    package static func underTraffic(
        programs: FleetPrograms, directory: String, kafka: String? = nil,
        prefix: String = "lamplighter", partitions: [String: Int] = [:], transports: [String],
        traffic: [String]
    ) -> FleetPlan {
        var configuration = WorkerConfiguration(
            .underTraffic(prefix: prefix, partitions: partitions),
            session: WorkerConfiguration.session(isKafkaEmbedded: kafka == nil))
        configuration.registrationGrace = .milliseconds(200)
        // What a stall swallows is sent again after this time.
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

    static let team = "ABCDE12345"
    static let keyID = "FGHIJ67890"
}
