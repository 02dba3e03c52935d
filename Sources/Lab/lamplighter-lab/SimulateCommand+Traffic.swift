// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Devices
import Entrypoint
import FleetKit
import Foundation
import Logging
import PushModel

extension SimulateCommand {
    struct Traffic: ParsableCommand, StopsInOrder {
        static let configuration = CommandConfiguration(
            commandName: "traffic",
            abstract: "Registers installations and reports changes that they show.",
            discussion: """
                Homes with a door and a lamp, three installations each, with controls, widgets and \
                device tokens; the first door is left alone until standard input says flip. Ends \
                after --duration, at the end of standard input, at quit, SIGTERM or SIGINT. \
                Standard output has a line of JSON five times a second.
                """)

        @Option(help: "host:port, several joined by commas.")
        var bootstrap: String

        @Option(help: "Where to write one NDJSON line for each acknowledged event.")
        var eventsLog: String

        @Option(help: "How many installations, rounded down to whole homes.")
        var installations = 3000

        @Option(help: "Events a second.")
        var rate = 250.0

        @Option(help: "From the first event to the last: 40s, 10m, or a number of seconds.")
        var duration: DurationArgument?

        @Option(help: "The Kafka topic of the events.")
        var eventsTopic = "lamplighter.events"

        @Option(help: "The Kafka topic of the registrations.")
        var registrationsTopic = "lamplighter.registrations"

        @Option(help: "Register with this registrar, such as http://127.0.0.1:8443.")
        var registrar: String?

        @Option(help: "The file of a key made by lamplighter registrar-key create.")
        var keyFile: String?

        @Option(help: "The workers' consumer group, whose lag holds events back.")
        var group = "lamplighter"

        @Option(help: "The workers' index.registrationGrace: 2s, or a number of seconds.")
        var registrationGrace = DurationArgument(.seconds(2))

        @Option(help: "The same seed makes the same events.")
        var seed: UInt64 = 1

        @Option(help: "Changes of registrations a second: tokens come, go and move.")
        var churn = 0.0

        @Option(help: "The share of events that nobody can read, from 0 to 1.")
        var unreadable = 0.0

        @Option(help: "The share of events that expire after 4 s, from 0 to 1.")
        var shortLived = 0.0

        @Option(help: "The share of events about a street that every control shows, from 0 to 1.")
        var street = 0.0

        func validate() throws {
            try TrafficArguments.check(installations: installations, rate: rate)
            guard (0...60).contains(registrationGrace.seconds) else {
                throw ValidationError("--registration-grace is from 0 to 60 seconds")
            }
            guard duration.map({ (0...86_400).contains($0.seconds) }) ?? true else {
                throw ValidationError("--duration is from 0 to 86400 seconds")
            }
            guard (0...1000).contains(churn) else {
                throw ValidationError("--churn is from 0 to 1000 changes a second")
            }
            guard (registrar == nil) == (keyFile == nil) else {
                throw ValidationError("--registrar and --key-file go together")
            }
            guard registrar == nil || churn == 0 else {
                throw ValidationError(
                    "--churn writes to Kafka, behind the registrar's back: leave one of them out")
            }
            guard [unreadable, shortLived, street].allSatisfy({ $0 >= 0 }),
                unreadable + shortLived + street <= 1
            else {
                throw ValidationError(
                    "--unreadable, --short-lived and --street are shares of all events")
            }
        }

        func run() throws {
            var options = TrafficOptions(bootstrap: bootstrap, eventsLog: eventsLog)
            options.eventsTopic = eventsTopic
            options.registrationsTopic = registrationsTopic
            options.group = group
            options.installations = installations
            options.rate = rate
            options.duration = duration?.duration
            options.registrationGrace = registrationGrace.duration
            options.seed = seed
            options.churn = churn
            options.unreadableShare = unreadable
            options.shortLivedShare = shortLived
            options.streetShare = street
            if let registrar, let keyFile {
                guard let key = try? String(contentsOfFile: keyFile, encoding: .utf8) else {
                    throw ValidationError("--key-file: \(keyFile) cannot be read")
                }
                let crowd = RegistrarCrowd(
                    registrar: registrar, key: key.trimmingCharacters(in: .whitespacesAndNewlines),
                    app: Neighbourhood.app, environment: .production)
                options.register = { try crowd.register($0) }
            }
            let logger = Logger(label: "traffic") { _ in
                StreamLogHandler.standardError(label: "traffic")
            }
            try TrafficGenerator(options, logger: logger).run()
        }
    }
}

enum TrafficArguments {
    static func check(installations: Int, rate: Double) throws {
        let counts = TrafficOptions.installationCounts
        guard counts.contains(installations) else {
            throw ValidationError(
                "--installations is from \(counts.lowerBound) to \(counts.upperBound)")
        }
        let rates = TrafficOptions.rates
        guard rates.contains(rate) else {
            throw ValidationError(
                "--rate is from \(rates.lowerBound) to \(rates.upperBound) events a second")
        }
    }
}
