// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Configuration
import Entrypoint
import Foundation
import PushModel

struct SuppressionsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "suppressions",
        abstract: "Shows which tokens are sent nothing more, and takes such suppressions back.",
        subcommands: [List.self, Import.self, Revoke.self])

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints the suppressions that stand, a line each, and their number.",
            discussion: "Of a token, the first 16 digits of its SHA-256 are shown.")

        @OptionGroup var options: ConfigurationOption
        @OptionGroup var scope: SuppressionScope

        @Option(help: "Only suppressions of this reason.")
        var reason: String?

        @Flag(help: "One JSON object a line; the last one is the summary.")
        var json = false

        func run() async throws {
            let table = try SuppressionTable(try options.load())
            let matches = try scope.matcher(table.routing)
            let listed = table.suppressions.filter { suppression in
                matches(suppression) && reason.map { $0 == suppression.suppression.reason } ?? true
            }
            for suppression in listed {
                let listed = ListedSuppression(suppression, table.route(of: suppression))
                print(json ? try JSONLine.of(listed) : listed.line)
            }
            let summary = SuppressionSummary(
                suppressions: listed.count, unreadable: table.unreadable)
            print(json ? try JSONLine.of(["summary": summary]) : summary.line)
        }
    }

    struct Revoke: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Takes suppressions back, so that their tokens are sent pushes again.",
            discussion: """
                Name the tokens: by --token-id, as `list` prints it; by --app and --environment, \
                for all of an app; or with --token - the token itself on standard input.
                """)

        @OptionGroup var options: ConfigurationOption
        @OptionGroup var scope: SuppressionScope

        @Option(name: .customLong("token-id"), help: "The 16 digits of a token; may be repeated.")
        var tokenIDs: [String] = []

        @Option(help: "- reads one token in hexadecimal from standard input.")
        var token: String?

        @Flag(help: "Say what would be revoked, and write nothing.")
        var dryRun = false

        /// To be called by `run` and not named `validate`: that is called before an unknown option is
        /// reported, so that a misspelt one would be told as one that is missing.
        private func checkArguments() throws {
            if let token, token != "-" {
                throw ValidationError(
                    "a token is not for the command line: --token - reads it from standard input")
            }
            for text in tokenIDs where TokenName(written: text) == nil {
                throw ValidationError("'\(text)' is not the 16 digits of a token")
            }
            let namesApp = scope.app != nil && scope.environment != nil
            guard namesApp || token != nil || !tokenIDs.isEmpty else {
                throw ValidationError(
                    "name what to revoke: --token-id, --token -, or --app with --environment")
            }
        }

        func run() async throws {
            try checkArguments()
            let names = try tokenNames()
            let configuration = try options.load()
            let table = try SuppressionTable(configuration)
            let matches = try scope.matcher(table.routing)
            let revoked = table.suppressions.filter { suppression in
                matches(suppression) && (names.isEmpty || names.contains(suppression.token))
            }
            if !dryRun { try write(revoked, configuration) }
            for suppression in revoked {
                print(ListedSuppression(suppression, table.route(of: suppression)).line)
            }
            print(
                "\(dryRun ? "would revoke" : "revoked") \(revoked.count.counted("suppression"))")
        }

        /// The tokens to revoke; empty for all of an app.
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

        private func write(_ suppressions: [ActiveSuppression], _ configuration: Configuration)
            throws
        {
            var stream = try RecordStream(
                configuration, topics: [configuration.kafka.topics.suppressions])
            for suppression in suppressions {
                try stream.write(OwnedRecord(topic: 0, key: suppression.key, value: nil))
            }
            try stream.finish()
        }
    }
}

/// The options that select suppressions.
struct SuppressionScope: ParsableArguments {
    @Option(help: "Only tokens of this app.")
    var app: String?

    @Option(help: "production or development.")
    var environment: String?

    @Option(help: "Only suppressions since this instant, or for so long: 2026-11-21T06:12:00Z, 2h.")
    var since: String?

    func validate() throws {
        if let environment { _ = try Arguments.environment(environment) }
        if let since { _ = try Arguments.instant(since, now: RecordWriter.now().wall) }
    }

    func matcher(_ routing: RoutingTable) throws -> (ActiveSuppression) -> Bool {
        let environment = try environment.map(Arguments.environment)
        let since = try since.map { try Arguments.instant($0, now: RecordWriter.now().wall) }
        let wanted = try app.map { try Arguments.app($0, in: routing) }
        return { suppression in
            let route = routing[suppression.route]
            if let environment, route.environment != environment { return false }
            if let wanted, route.app != wanted { return false }
            return since.map { suppression.writtenAt >= $0 } ?? true
        }
    }
}

private struct ListedSuppression: Encodable {
    let tokenID: String
    let environment: String
    let apnsTopic: String
    let reason: String
    let status: UInt16
    let apnsTimestamp: String?
    let registeredAt: String
    let writtenAt: String

    init(_ standing: ActiveSuppression, _ route: Route) {
        tokenID = "\(standing.token)"
        environment = route.environment.name
        apnsTopic = route.apnsTopic
        reason = standing.suppression.reason
        status = standing.suppression.status
        apnsTimestamp = standing.suppression.apnsTimestamp?.rfc3339
        registeredAt = standing.suppression.registeredAt.rfc3339
        writtenAt = standing.writtenAt.rfc3339
    }

    var line: String {
        [
            writtenAt, tokenID, environment, apnsTopic, "\(status)", TerminalText.visible(reason),
            "registered \(registeredAt)",
        ].joined(separator: "  ")
    }
}

private struct SuppressionSummary: Encodable {
    let suppressions: Int
    let unreadable: Int

    var line: String {
        let text = suppressions.counted("suppression")
        return unreadable == 0 ? text : text + "; \(unreadable.counted("record")) unreadable"
    }
}
