// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// How chaos is run.
package struct ChaosOptions: Sendable {
    /// `lamplighter` itself, of which every process is one.
    package var program: String
    /// `lamplighter-check`.
    package var checker: String
    package var rounds = 20
    package var seed: UInt64
    /// Only this round, from 0 on; nil for all.
    package var round: Int?
    /// Of each round's traffic; starting, waiting for the last push and the verdict come on top.
    package var duration = Duration.seconds(28)
    package var installations = 3000
    /// Events a second.
    package var rate = 360.0
    /// Changes of registrations a second.
    package var churn = 10.0
    /// A Kafka that is there already; nil for an embedded one in each round.
    package var kafka: String?
    /// An empty or missing folder for the rounds' folders; those of good rounds are removed.
    package var directory: String
    /// Those of good rounds too.
    package var keepsLogs = false

    package init(program: String, checker: String, seed: UInt64, directory: String) {
        self.program = program
        self.checker = checker
        self.seed = seed
        self.directory = directory
    }

    package static let roundCounts = 1...1000
    package static let durations = 5.0...600

    /// `index.settle` of the workers. Registrations change, and while Kafka fails they are read late.
    static let settle = Duration.seconds(2)
    static let shutdownTimeout = Duration.seconds(10)

    func plan(_ script: ChaosScript, round: Int) -> FleetPlan {
        FleetPlan(
            program: program, checker: checker, directory: "\(directory)/round-\(round)",
            transports: script.transports, kafka: kafka,
            prefix: kafka == nil ? "lamplighter" : "chaos-\(seed)-\(round)",
            settle: Self.settle, holdMax: script.holdMax, shutdownTimeout: Self.shutdownTimeout,
            traffic: [
                "--installations", "\(installations)", "--rate", "\(rate)", "--churn", "\(churn)",
                "--unreadable", "0.01", "--short-lived", "0.03",
                "--seed", "\(seed &+ UInt64(round))",
            ])
    }
}
