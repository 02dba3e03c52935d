// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Devices
import Entrypoint
import Foundation
import PushModel

extension SimulateCommand {
    struct Devices: ParsableCommand, StopsInOrder {
        static let configuration = CommandConfiguration(
            commandName: "devices",
            abstract: "Registers pretended iPhones with a registrar, as the client package does.",
            discussion: """
                Each launches, adds and removes controls, changes what they show, gets new tokens, \
                is reinstalled, and has its installation removed when its user signs out; it tries \
                a request again until it is acknowledged. At the end, \
                or at SIGTERM or SIGINT, each asks the registrar what is registered of it. Standard output has a line of JSON \
                twice a second, and then the sums; with --apns-log, the pushes that the APNs simulator \
                has delivered to the devices are among them. The subjects are door-0, door-1 and so \
                on. Exit code 1 if a registration was refused, is otherwise than the device shows, \
                or a token was reached that its device had given up.
                """)

        @Option(help: "The registrar's URL, such as http://127.0.0.1:8443.")
        var registrar: String

        @Option(help: "The file of a key made by lamplighter registrar-key create.")
        var keyFile: String

        @Option(help: "The app.")
        var app = "com.example.Home"

        @Option(help: "production or development.")
        var environment = "production"

        @Option(help: "PEM file of the roots to trust for https instead of the system's.")
        var caFile: String?

        @Option(help: "How many devices.")
        var devices = 1000

        @Option(help: "How many subjects they show.")
        var subjects = 1000

        @Option(help: "Changes a second, of all together, once each has launched.")
        var rate = 50.0

        @Option(help: "For how long: 40s, 10m, or a number of seconds.")
        var duration = DurationArgument(.seconds(30))

        @Option(help: "The same seed makes the same devices.")
        var seed: UInt64 = 1

        @Option(help: "The simulator's --log.")
        var apnsLog: String?

        func validate() throws {
            guard PushEnvironment(name: environment) != nil else {
                throw ValidationError("--environment is production or development")
            }
            guard (1...1_000_000).contains(devices), (1...1_000_000).contains(subjects) else {
                throw ValidationError("--devices and --subjects are from 1 to 1000000")
            }
            guard (0...100_000).contains(rate) else {
                throw ValidationError("--rate is from 0 to 100000 a second")
            }
            guard registrar.hasPrefix("http://") || registrar.hasPrefix("https://"),
                !registrar.hasSuffix("/")
            else { throw ValidationError("--registrar is a URL without a slash at its end") }
        }

        func run() throws {
            guard let key = try? String(contentsOfFile: keyFile, encoding: .utf8) else {
                throw ValidationError("--key-file: \(keyFile) cannot be read")
            }
            var options = DeviceTraffic.Options(
                registrar: registrar, key: key.trimmingCharacters(in: .whitespacesAndNewlines),
                app: app, devices: devices, subjects: subjects, rate: rate,
                duration: duration.duration, seed: seed)
            options.environment = environment
            options.caFile = caFile
            options.log = apnsLog
            let report = try DeviceTraffic(options).run { print($0) }
            print(report.json.line)
            if !report.isGood { throw ExitCode(1) }
        }
    }
}
