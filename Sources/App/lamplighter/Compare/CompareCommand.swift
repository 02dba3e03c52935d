// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Configuration
import Entrypoint
import Foundation
import PushModel
import Worker

struct CompareCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "compare",
        abstract: "Holds what a shadow would have sent against what another sender has sent.",
        discussion: """
            Both logs are NDJSON in the order of their times: the first is that of delivery.shadowLog, \
            the other has in each line at (RFC 3339, or seconds or milliseconds since 1970) and \
            tokenSHA256, the SHA-256 of the token's bytes in hexadecimal, or tokenID, its first 16 \
            digits. One of them may be -, standard input.

            A push agrees if the other sender has pushed to the same token within --window; several \
            may agree with one, since a sender may coalesce. Each of the others has a reason: late \
            (within --late), unregistered (only with --config, which says where the registrations \
            are), or unmatched. Pushes of a time of which only one log has something are counted as \
            outside and not compared. With --class those stay out that the other sender has not.

            Exit codes: 0 at least --at-least of the pushes agree; 1 fewer do; 65 a log cannot be read, \
            or there is nothing to compare.
            """)

    @Argument(help: "The log of the shadow.")
    var shadow: String

    @Argument(help: "The log of the other sender.")
    var old: String

    @Option(
        name: .customLong("config"),
        help: "A configuration, to tell by the registrations topic which tokens are registered.")
    var file: String?

    @Option(help: "Only pushes of this app, and those of which a log does not say the app.")
    var app: String?

    @Option(
        name: .customLong("class"),
        help: "Only pushes to this class of tokens, such as device: what the other sender has, too."
    )
    var tokenClass: String?

    @Option(help: "How far apart the same push of both may be.")
    var window = DurationArgument(.seconds(60))

    @Option(help: "How far apart, to be called late.")
    var late = DurationArgument(.seconds(600))

    @Option(help: ArgumentHelp("How much must agree, in percent.", valueName: "percent"))
    var atLeast = 99.9

    @Flag(help: "Print the result as one JSON object.")
    var json = false

    func validate() throws {
        guard shadow != "-" || old != "-" else {
            throw ValidationError("only one of the logs can be standard input")
        }
        guard window.duration >= .milliseconds(1), late.duration <= .seconds(86_400) else {
            throw ValidationError("--window is at least 1ms, and --late at most 24h")
        }
        guard (0...100).contains(atLeast) else {
            throw ValidationError("--at-least is from 0 to 100")
        }
    }

    func run() async throws {
        let filter = PushLogReader.Filter(
            app: app, tokenClass: try tokenClass.map(Arguments.tokenClass))
        var limits = PushComparison.Limits()
        (limits.window, limits.late) = (window.duration, late.duration)
        var comparison = PushComparison(limits, registered: try file.map(registered))
        try Self.run(
            &comparison, old: PushLogReader(old, .old, filter),
            shadow: PushLogReader(shadow, .shadow, filter))
        let result = ComparisonResult(comparison, window: window.duration)
        guard let agreement = comparison.agreement else {
            throw Failure(
                .unreadableInput,
                "there is nothing to compare: the logs have no time in common")
        }
        if json {
            print(try result.json)
        } else {
            for line in result.lines { print(line) }
        }
        guard agreement * 100 >= atLeast else { throw ExitCode(1) }
    }

    /// Reads both logs side by side, the earlier push first.
    static func run(
        _ comparison: inout PushComparison, old: PushLogReader, shadow: PushLogReader
    ) throws {
        var hasEnded: Set<PushComparison.Side> = []
        while old.next != nil || shadow.next != nil {
            for (side, reader) in [(PushComparison.Side.old, old), (.shadow, shadow)]
            where reader.next == nil && hasEnded.insert(side).inserted {
                comparison.ended(side)
            }
            let isOld =
                shadow.next == nil || old.next.map { $0.at <= shadow.next!.at } ?? false
            let reader = isOld ? old : shadow
            do throws(PushComparison.Fault) {
                try comparison.take(reader.next!)
            } catch {
                throw reader.failure(text(of: error))
            }
            try reader.advance()
        }
        comparison.finish()
    }

    private static func text(of fault: PushComparison.Fault) -> String {
        switch fault {
        case .disordered(let distance):
            "it is \(distance.rounded) older than a line before it, more than --window: sort the log by "
                + "time"
        case .tooMany: "more pushes than fit into memory are within --late: choose it shorter"
        }
    }

    /// The tokens that have a registration.
    private func registered(by file: String) throws -> Set<UInt64> {
        let configuration = try Configuration.load(
            file: file, environment: ProcessInfo.processInfo.environment)
        var tokens: Set<UInt64> = []
        let all = RegistrationFilter.Matcher(scope: RegistrationScope(), isImported: false)
        try RegistrationListing(configuration).forEach(all) {
            tokens.insert(TokenName($0.token).number)
        }
        return tokens
    }
}
