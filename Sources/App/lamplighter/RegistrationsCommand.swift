// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Foundation
import KafkaLog
import PushModel

struct RegistrationsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "registrations",
        abstract: "Lists, exports, imports and removes registrations, and subjects of them.",
        discussion: """
            Workers may run meanwhile. A registration that its app writes again at the same moment \
            is kept: what the command has hidden it writes again.
            """,
        subcommands: [
            List.self, Export.self, Import.self, Coverage.self, Collect.self, Forget.self,
        ])

    struct Collect: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract:
                "Removes registrations whose every token is dead, then suppressions that are spent.",
            discussion: """
                A token is dead when the suppression on it has stood for --dead-for and no registration \
                has outlived it. A registration goes when all its tokens are dead; with one that \
                lives it stays as it is, for a snapshot is its app's to change. A suppression goes when \
                it is as old and no registration has its token any more; never for its age alone, \
                since that would have dead tokens sent pushes again. Of tokens the first 16 digits \
                of their SHA-256 are printed. To run it again changes nothing more.
                """)

        @OptionGroup var options: ConfigurationOption

        @Option(help: "How long a suppression must have stood: 30d, 12h.")
        var deadFor = "30d"

        @Flag(help: "Say what would be removed, and write nothing.")
        var dryRun = false

        func validate() throws { _ = try age() }

        private func age() throws -> Duration {
            guard let age = Duration(notation: deadFor) else {
                throw ValidationError("'\(deadFor)' is no duration such as 30d or 12h")
            }
            return age
        }

        func run() async throws {
            let configuration = try options.load()
            let removal = try RegistrationRemoval(
                configuration, deadFor: try age(), isDryRun: dryRun
            ) { _ in false }
            defer { removal.close() }
            try removal.removeDead()
            try removal.removeSuppressions()
            print(removal.summary)
        }
    }

    struct Forget: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Forgets an installation, or a subject, as a person may ask for.",
            discussion: """
                --installation removes all registrations of the installation, whatever their \
                handlers, and the suppressions on their tokens that no other registration has. --token-id \
                and --token do that with the installations that have the token. --subject \
                takes the subject out of every registration that shows it; the rest of it stays. \
                What waits in the deferred topic ends within its time to live; events and dead \
                letters go with the retention of their topics, and compacted topics keep what was \
                removed until the broker has cleaned them.
                """)

        @OptionGroup var options: ConfigurationOption

        @Option(help: "The installation's identifier.")
        var installation: String?

        @Option(help: "A subject.")
        var subject: String?

        @Option(name: .customLong("token-id"), help: "The 16 digits of a token; may be repeated.")
        var tokenIDs: [String] = []

        @Option(help: "- reads one token in hexadecimal from standard input.")
        var token: String?

        @Option(help: "Only of this app.")
        var app: String?

        @Option(help: "Only in production or development.")
        var environment: String?

        @Flag(help: "Say what would be removed, and write nothing.")
        var dryRun = false

        /// To be called by `run` and not named `validate`: that is called before an unknown option is
        /// reported, so that a misspelt one would be told as one that is missing.
        private func checkArguments() throws {
            if let environment { _ = try Arguments.environment(environment) }
            if let token, token != "-" {
                throw ValidationError(
                    "a token is not for the command line: --token - reads it from standard input")
            }
            for text in tokenIDs where TokenName(written: text) == nil {
                throw ValidationError("'\(text)' is not the 16 digits of a token")
            }
            let isByToken = token != nil || !tokenIDs.isEmpty
            guard [installation != nil, subject != nil, isByToken].count(where: { $0 }) == 1 else {
                throw ValidationError(
                    "name what to forget: --installation, --subject, or --token-id or --token; one of "
                        + "them")
            }
            if isByToken { return }
            // An empty name is usually an unset shell variable. It matches nothing, which would
            // look like success.
            guard installation ?? subject != "" else {
                throw ValidationError(
                    "\(subject == nil ? "--installation" : "--subject") is empty: name one")
            }
        }

        func run() async throws {
            try checkArguments()
            let configuration = try options.load()
            let scope = RegistrationScope(
                environment: try environment.map(Arguments.environment), app: app,
                installation: installation)
            if let subject {
                let change = try SubjectRemoval(
                    configuration, subject: subject, scope: scope, isDryRun: dryRun)
                defer { change.close() }
                return print(try change.run())
            }
            var isWanted = scope.covers
            if token != nil || !tokenIDs.isEmpty {
                isWanted = try TokenOwners(of: try tokenNames(), configuration, scope).have
            }
            let removal = try RegistrationRemoval(
                configuration, deadFor: .zero, isDryRun: dryRun, isWanted: isWanted)
            defer { removal.close() }
            try removal.removeWanted()
            print(removal.summary)
        }

        private func tokenNames() throws -> Set<TokenName> {
            var names = Set(tokenIDs.compactMap { TokenName(written: $0) })
            if token != nil {
                guard let line = readLine() else {
                    throw ValidationError("no token on standard input")
                }
                names.insert(
                    TokenName(try Arguments.token(line.trimmingCharacters(in: .whitespaces))))
            }
            return names
        }
    }
}

/// Selects registrations by their keys.
struct RegistrationScope: Sendable {
    var environment: PushEnvironment?
    var app: String?
    var installation: String?

    /// Whether a registration is selected.
    ///
    /// - Parameter key: `environment/app/installation/handler`.
    @Sendable func covers(_ key: [UInt8]) -> Bool {
        let parts = String(decoding: key, as: UTF8.self)
            .split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 4 else { return false }
        if let environment, PushEnvironment(name: parts[0]) != environment { return false }
        if let app, parts[1] != app { return false }
        return installation.map { parts[2] == $0 } ?? true
    }
}
