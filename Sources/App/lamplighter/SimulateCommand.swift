// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import ArgumentParser
import EmbeddedKafka
import Foundation
import Logging
import OpenSSL
import PushModel

struct SimulateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "simulate",
        abstract: "Stands in for Apple or for Kafka, on this machine.",
        subcommands: [APNS.self, Kafka.self])

    struct Kafka: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Runs an embedded Kafka until SIGTERM, SIGINT or quit.",
            discussion: EmbeddedKafka.limits + "\nStandard input understands:\n"
                + EmbeddedKafka.commands)

        @Option(help: "name:partitions, separated by commas.")
        var topics = ""

        @Option(help: "How many brokers.")
        var brokers = 1

        @Option(help: "Where to write the bootstrap list, besides standard output.")
        var bootstrapFile: String?

        func run() throws {
            var partitions: [String: Int] = [:]
            for topic in topics.split(separator: ",") {
                let parts = topic.split(separator: ":")
                guard parts.count == 2, let count = Int(parts[1]), (1...10_000).contains(count)
                else { throw ValidationError("'\(topic)' is not name:partitions") }
                partitions[String(parts[0])] = count
            }
            guard (1...10).contains(brokers) else {
                throw ValidationError("--brokers must be 1 to 10")
            }
            do {
                try EmbeddedKafka.run(
                    .init(topics: partitions, brokers: brokers, bootstrapFile: bootstrapFile))
            } catch {
                StandardError.write("lamplighter: \(error)")
                throw ExitCode(Failure.Status.internalError.rawValue)
            }
        }
    }

    struct APNS: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "apns",
            abstract: "Runs an APNs simulator until SIGTERM or SIGINT.",
            discussion: """
                It validates requests as APNs does. Its certificate is made at start; clients must \
                trust --ca-file. --answer makes it answer otherwise: \
                STATUS[:REASON][@SHARE|@TOKENPREFIX], such as 503:ServiceUnavailable@1% or \
                410:Unregistered@00fc13.
                """)

        @Option(help: "Port of the production listener; 0 lets the system choose.")
        var port: UInt16 = 0

        @Option(help: "Also serve the development environment, on this port.")
        var developmentPort: UInt16?

        @Option(help: "The numeric address to bind to.")
        var address = "127.0.0.1"

        @Option(help: "Where to write 'environment host:port' lines.")
        var addressFile: String?

        @Option(help: "Where to append one NDJSON line for each answer.")
        var log: String?

        @Option(help: "Where to write the certificate that clients must trust.")
        var caFile: String?

        @Option(help: "Make a signing key and write its private half, a .p8 file, here.")
        var keyOut: String?

        @Option(help: "Accept this key: a .p8 file, or its public half in PEM.")
        var keyFile: String?

        @Option(help: "The team of the key.")
        var team = "ABCDE12345"

        @Option(help: "The identifier of the key.")
        var keyID = "FGHIJ67890"

        @Option(name: .customLong("app"), help: "An app of the team; may be repeated.")
        var apps: [String] = []

        @Option(help: "Milliseconds to wait before each answer.")
        var delay: Int = 0

        @Option(help: "Streams that a connection may have open.")
        var streams = 1000

        @Option(help: "Serving threads.")
        var threads = 1

        @Option(name: .customLong("answer"), help: "A scripted answer; may be repeated.")
        var answers: [ScriptedRule] = []

        func run() throws {
            var options = SimulatorOptions()
            options.listeners = [SimulatorListener(environment: .production, port: port)]
            if let developmentPort {
                options.listeners.append(
                    SimulatorListener(environment: .development, port: developmentPort))
            }
            options.address = address
            options.certificate = .generated(caFile: caFile)
            options.keys = [
                SimulatorKey(teamID: team, keyID: keyID, publicPEM: try publicKey())
            ]
            options.apps = apps.map { SimulatorApp(bundleID: $0, teamID: team) }
            options.delay = .milliseconds(delay)
            options.streamLimit = streams
            options.threads = threads
            options.logPath = log
            options.addressFile = addressFile
            options.rules = answers
            do {
                try APNSSimulator.run(options)
            } catch {
                StandardError.write("lamplighter: \(error)")
                throw ExitCode(Failure.Status.internalError.rawValue)
            }
        }

        private func publicKey() throws -> String {
            if let keyFile {
                let pem = try String(contentsOfFile: keyFile, encoding: .utf8)
                return (try? ES256Key(pem: pem).publicPEM()) ?? pem
            }
            let (privatePEM, publicPEM) = try ES256Key.generate()
            if let keyOut {
                // Nobody else on the machine may sign in its name.
                guard
                    FileManager.default.createFile(
                        atPath: keyOut, contents: Data(privatePEM.utf8),
                        attributes: [.posixPermissions: 0o600])
                else { throw ValidationError("--key-out: \(keyOut) cannot be written") }
            }
            return publicPEM
        }
    }
}
