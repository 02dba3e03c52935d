// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import FleetKit
internal import PushModel

/// The options of a chaos run.
package struct ChaosOptions: Sendable {
    package var programs: FleetPrograms
    package var rounds = 20
    package var seed: UInt64
    /// The only round to run, counted from 0; nil for all.
    package var round: Int?
    /// How long each round has traffic. Starting, waiting for the last push and checking take extra
    /// time.
    package var duration = Duration.seconds(28)
    package var installations = 3000
    /// Events a second.
    package var rate = 360.0
    /// Changes of registrations a second.
    package var churn = 10.0
    /// An existing Kafka; nil for an embedded one in each round.
    package var kafka: String?
    /// An empty or missing folder for the rounds' folders. Those of successful rounds are removed.
    package var directory: String
    /// Whether the folders of successful rounds are kept too.
    package var keepsLogs = false

    package init(_ programs: FleetPrograms, seed: UInt64, directory: String) {
        self.programs = programs
        self.seed = seed
        self.directory = directory
    }

    package static let roundCounts = 1...1000
    package static let durations = 5.0...600

    /// The workers' `index.registrationGrace`. It is not shorter because registrations are read
    /// late while Kafka fails.
    static let registrationGrace = Duration.seconds(2)
    static let shutdownTimeout = Duration.seconds(10)
    /// The share of events about a street that every control shows: one in some three seconds, whose
    /// pushes are then a third of all.
    private static let streetShare = 0.001

    func plan(_ script: ChaosScript, round: Int) -> FleetPlan {
        var plan = FleetPlan.underTraffic(
            programs: programs, directory: "\(directory)/round-\(round)", kafka: kafka,
            prefix: kafka == nil ? "lamplighter" : "chaos-\(seed)-\(round)",
            transports: script.transports,
            traffic: [
                "--installations", "\(installations)", "--rate", "\(rate)", "--churn", "\(churn)",
                "--unreadable", "0.01", "--short-lived", "0.03", "--street", "\(Self.streetShare)",
                "--seed", "\(seed &+ UInt64(round))",
            ])
        plan.configuration.registrationGrace = Self.registrationGrace
        plan.configuration.holdMax = script.holdMax
        // Events about the street are split into shards.
        plan.configuration.planning = [("splitAbove", "1000")]
        plan.configuration.delivery = [("shutdownTimeout", Self.shutdownTimeout.notation)]
        plan.sayAll()
        return plan
    }
}
