// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FleetKit
internal import Foundation
internal import LinuxIO

/// Runs rounds of chaos one after the other, and adds up their results. It belongs to the main
/// thread.
package struct ChaosRun {
    private let options: ChaosOptions

    package init(_ options: ChaosOptions) { self.options = options }

    /// - Parameter tell: called with a line for people, before and after each round.
    /// - Throws: the error that prevented a round's result, with the name of the round.
    package func run(tell: (String) -> Void) throws -> ChaosReport {
        StopRequests.count()
        var total = ChaosReport(seed: options.seed)
        let rounds = options.round.map { [$0] } ?? Array(0..<options.rounds)
        for round in rounds {
            let result = try run(round: round, tell: tell)
            total.add(result)
        }
        return total
    }

    private func run(round: Int, tell: (String) -> Void) throws -> ChaosReport {
        let session = WorkerConfiguration.session(isKafkaEmbedded: options.kafka == nil)
        let script = ChaosScript(
            seed: options.seed, round: round, duration: options.duration, session: session,
            isKafkaOurs: options.kafka == nil)
        let name = "round \(round) of seed \(options.seed)"
        tell(
            "\(name): \(script.transports.joined(separator: " ")), hold \(script.holdMax): "
                + script.faults.map(\.rawValue).joined(separator: ", "))
        let plan = options.plan(script, round: round)
        do {
            let round = try ChaosRound(
                script, plan: plan, duration: options.duration, seed: options.seed)
            try round.run()
            tell(round.report.summary)
            for failure in round.report.failures { tell("  \(failure)") }
            if round.report.isGood && !options.keepsLogs {
                round.removeLogs()
            } else {
                tell("  the logs are in \(plan.directory)")
            }
            return round.report
        } catch {
            throw FleetError(description: "\(name): \(error); the logs are in \(plan.directory)")
        }
    }
}
