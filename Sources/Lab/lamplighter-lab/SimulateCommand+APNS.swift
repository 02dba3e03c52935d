// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSSimulator
import ArgumentParser
import Entrypoint
import Foundation
import OpenSSL
import PushModel
import TestCertificates

extension SimulateCommand {
    struct APNS: ParsableCommand, StopsInOrder {
        static let configuration = CommandConfiguration(
            commandName: "apns",
            abstract: "Runs an APNs simulator until SIGTERM, SIGINT or quit.",
            discussion: """
                It validates requests as APNs does. Its certificate is made at start; clients must \
                trust --ca-file. It misbehaves by commands: --command and the options that stand \
                for one are carried out before the first request, --script has its own times, and \
                --control takes one a line and answers ok or error: … to each.

                \(CommandLanguage.help)

                \(SimulatorScript.help)
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

        @Option(
            help: ArgumentHelp(
                "Keep the certificate and its key here, and take them if they are there already.",
                valueName: "file"))
        var identity: String?

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

        @Option(
            name: .customLong("push-type"),
            help: ArgumentHelp(
                "A push type beyond Apple's, with the suffix of its topic; may be repeated.",
                valueName: "name:suffix"))
        var pushTypes: [String] = []

        @Option(help: "Serving threads.")
        var threads = 1

        @Option(help: "As the command delay, such as 50ms or 'uniform 10ms..200ms'.")
        var delay: String?

        @Option(help: "As the command streams.")
        var streams: String?

        @Option(name: .customLong("answer"), help: "As the command answer; may be repeated.")
        var answers: [String] = []

        @Option(name: .customLong("command"), help: "Any command; may be repeated.")
        var commands: [String] = []

        @Option(help: "A file of commands and their times.")
        var script: String?

        @Option(help: "Take commands at this path (a Unix socket) or loopback port.")
        var control: String?

        func validate() throws { _ = try startCommands() }

        func run() throws {
            // The script is parsed before anything is made or opened.
            let script = try script.map(Self.read)
            try APNSSimulator.run(
                try options(), control: control.map { ControlAddress($0) }, script: script)
        }

        private func options() throws -> SimulatorOptions {
            var options = SimulatorOptions()
            options.listeners = [SimulatorListener(environment: .production, port: port)]
            if let developmentPort {
                options.listeners.append(
                    SimulatorListener(environment: .development, port: developmentPort))
            }
            options.address = address
            options.certificate = try certificate()
            options.keys = [
                SimulatorKey(teamID: team, keyID: keyID, publicPEM: try publicKey())
            ]
            options.apps = apps.map { SimulatorApp(bundleID: $0, teamID: team) }
            options.pushTypes = try pushTypes.map(Self.pushType)
            options.threads = threads
            options.logPath = log
            options.addressFile = addressFile
            options.commands = try startCommands()
            return options
        }

        private static func pushType(_ text: String) throws -> SimulatorPushType {
            let parts = text.split(separator: ":", maxSplits: 1).map(String.init)
            guard parts.count == 2, parts[1].hasPrefix(".") else {
                throw ValidationError(
                    "--push-type: '\(text)' is not a name and a suffix, as in "
                        + "signage:.push-type.signage")
            }
            return SimulatorPushType(name: parts[0], topicSuffix: parts[1])
        }

        private func startCommands() throws -> [SimulatorCommand] {
            let given =
                (delay.map { [("--delay", "delay \($0)")] } ?? [])
                + (streams.map { [("--streams", "streams \($0)")] } ?? [])
                + answers.map { ("--answer", "answer \($0)") }
                + commands.map { ("--command", $0) }
            return try given.map { flag, text in
                do throws(CommandError) {
                    guard case .perform(let command) = try CommandLanguage.parse(text) else {
                        throw CommandError(
                            word: 1, problem: "'\(text)' is for a running simulator",
                            remedy: "say it to --control")
                    }
                    return command
                } catch {
                    throw ValidationError("\(flag): '\(text)', \(error)")
                }
            }
        }

        private static func read(_ file: String) throws -> SimulatorScript {
            let text: String
            do {
                text = try String(contentsOfFile: file, encoding: .utf8)
            } catch {
                throw Failure(.configuration, "--script: \(file) cannot be read as UTF-8 text")
            }
            do throws(CommandError) {
                return try SimulatorScript(text)
            } catch {
                throw Failure(.configuration, "--script: \(file), \(error)")
            }
        }

        private func publicKey() throws -> String {
            if let keyFile {
                return try Self.publicKey(in: keyFile)
            }
            let (privatePEM, publicPEM) = try ES256Key.generate()
            if let keyOut { try Self.write(secret: privatePEM, to: keyOut, "--key-out") }
            return publicPEM
        }

        private static func publicKey(in file: String) throws -> String {
            guard let pem = try? String(contentsOfFile: file, encoding: .utf8) else {
                throw Failure(.configuration, "--key-file: \(file) cannot be read as UTF-8 text")
            }
            do throws(ES256Error) {
                if pem.contains("PRIVATE KEY-----") { return try ES256Key(pem: pem).publicPEM() }
                _ = try ES256PublicKey(pem: pem)
                return pem
            } catch {
                throw Failure(.configuration, "--key-file: \(file): \(error)")
            }
        }

        /// The certificate. With `--identity` it is kept, so that a simulator that is started again
        /// is still trusted.
        private func certificate() throws -> SimulatorCertificate {
            guard let identity else { return .generated(caFile: caFile) }
            if let pem = try? String(contentsOfFile: identity, encoding: .utf8) {
                return .pem(certificate: pem, key: pem)
            }
            let authority = try CertificateAuthority()
            let made = try authority.serverCertificate()
            try Self.write(
                secret: made.certificatePEM + made.keyPEM, to: identity, "--identity")
            if let caFile {
                do {
                    try authority.certificatePEM.write(
                        toFile: caFile, atomically: true, encoding: .utf8)
                } catch {
                    throw Failure(.configuration, "--ca-file: \(caFile) cannot be written")
                }
            }
            return .pem(certificate: made.certificatePEM, key: made.keyPEM)
        }

        /// Writes a secret so that no other user of the machine can read it.
        private static func write(secret: String, to path: String, _ option: String) throws {
            guard
                FileManager.default.createFile(
                    atPath: path, contents: Data(secret.utf8),
                    attributes: [.posixPermissions: 0o600])
            else { throw Failure(.configuration, "\(option): \(path) cannot be written") }
        }
    }
}
