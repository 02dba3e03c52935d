// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Demo
import Entrypoint
import FleetKit
import Foundation

struct ChaosCommand: ParsableCommand, StopsInOrder {
    static let configuration = CommandConfiguration(
        commandName: "chaos",
        abstract: "Runs workers while everything goes wrong, and proves that nothing was lost.",
        discussion: """
            Each round has a fleet of its own: an embedded Kafka (or the one that --bootstrap names, \
            with topics of its own, whose faults are then left out), an APNs simulator, three \
            workers, and traffic with changing registrations, unreadable and short-lived events. \
            What goes wrong follows from the seed. The checker (verify) judges each round; the last \
            line is JSON.

            Exit codes: 0 nothing was lost; 1 something was, or another promise was broken; 69 \
            lamplighter is not there; 70 it could not be run to its end.
            """)

    @Option(help: "How many rounds.")
    var rounds = 20

    @Option(help: "The same seed does the same; without it, one is chosen and printed.")
    var seed: UInt64?

    @Option(help: "Only this round, from 0 on.")
    var round: Int?

    @Option(help: "How long each round has traffic: 28s, 10m, or a number of seconds.")
    var duration = DurationArgument(.seconds(28))

    @Option(help: "How many installations, rounded down to whole homes.")
    var installations = 3000

    @Option(help: "Events a second.")
    var rate = 360.0

    @Option(help: ArgumentHelp("A Kafka that is there already.", valueName: "host:port,…"))
    var bootstrap: String?

    @Option(
        help: ArgumentHelp(
            "Where the rounds have their folders; those of good rounds are removed.",
            valueName: "folder"))
    var directory: String?

    @Flag(help: "Keep the folders of good rounds too.")
    var keep = false

    func validate() throws {
        try TrafficArguments.check(installations: installations, rate: rate)
        guard ChaosOptions.roundCounts.contains(rounds), round.map({ $0 >= 0 }) ?? true else {
            let counts = ChaosOptions.roundCounts
            throw ValidationError(
                "--rounds is from \(counts.lowerBound) to \(counts.upperBound), --round not negative"
            )
        }
        guard ChaosOptions.durations.contains(duration.seconds) else {
            let durations = ChaosOptions.durations
            throw ValidationError(
                "--duration is from \(durations.lowerBound) to \(durations.upperBound) seconds")
        }
    }

    func run() throws {
        let report = try ChaosRun(try options()).run { StandardError.write($0) }
        print(report.json)
        if !report.isGood { throw ExitCode(1) }
    }

    private func options() throws -> ChaosOptions {
        let directory =
            directory
            ?? FileManager.default.temporaryDirectory
            .appending(path: "lamplighter-chaos-\(ProcessInfo.processInfo.processIdentifier)").path
        var options = ChaosOptions(
            try FleetPrograms(),
            seed: seed ?? UInt64.random(in: 1...999_999), directory: directory)
        options.rounds = rounds
        options.round = round
        options.duration = duration.duration
        options.installations = installations
        options.rate = rate
        options.kafka = bootstrap
        options.keepsLogs = keep
        return options
    }
}
