// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import ArgumentParser
import Entrypoint
import Foundation
import Importing
import PushModel

/// The options that say what another sender's files have, shared by the commands that import them.
struct ImportOptions: ParsableArguments {
    @Argument(
        help: ArgumentHelp(
            "The files, also compressed with gzip; - is standard input.", valueName: "file"))
    var files: [String]

    @Option(
        help: """
            csv, ndjson, copy (PostgreSQL's COPY), onesignal, braze, sns, pinpoint.
            """)
    var format: String

    @Option(
        help: ArgumentHelp(
            """
            Which column has what: token=push_token,lastSeen=seen_at. What: installation, token, \
            environment, app, class, lastSeen, optedOut, optedIn, dead, alive. A column of JSON is \
            a member's name or a pointer such as /device/token.
            """, valueName: "what=column,…"))
    var columns: String?

    @Option(
        help: ArgumentHelp(
            "The names of all columns in order, for copy and for csv without a header.",
            valueName: "name,…"))
    var fields: String?

    @Option(help: "What separates the fields of csv: one character, or tab (default: ,)")
    var delimiter: String?

    @Option(help: "The app's bundle identifier, of rows that name none.")
    var app: String?

    @Option(help: "production or development, of rows that name none.")
    var environment: String?

    @Option(name: .customLong("class"), help: "The class of the tokens (default: device)")
    var tokenClass: String?

    @Option(help: ArgumentHelp("Where the bad rows are listed.", valueName: "file"))
    var bad: String?

    @Option(help: "How many rows may be bad before the command stops.")
    var badMax = 1000

    @Flag(help: "Read everything, say what would be written, and write nothing.")
    var dryRun = false

    @Flag(help: "Print the summary as one line of JSON.")
    var json = false

    func checkArguments() throws {
        _ = try sourceFormat()
        _ = try columnNames()
        _ = try separator()
        if let environment { _ = try Arguments.environment(environment) }
        if let tokenClass { _ = try Arguments.tokenClass(tokenClass) }
        guard badMax >= 0 else { throw ValidationError("--bad-max is a number of rows") }
        guard files.filter({ $0 == "-" }).count <= 1 else {
            throw ValidationError("standard input can be read once")
        }
        if fields == nil, try sourceFormat() == .copy {
            throw ValidationError(
                "--fields is missing: COPY's text format does not name its columns")
        }
    }

    func sourceFormat() throws -> SourceFormat {
        guard let known = SourceFormat(rawValue: format) else {
            throw ValidationError(
                "'\(TerminalText.visible(format))' is not a format: "
                    + SourceFormat.allCases.map(\.rawValue).joined(separator: ", "))
        }
        return known
    }

    func separator() throws -> UInt8 {
        guard let delimiter else { return UInt8(ascii: ",") }
        if delimiter == "tab" { return UInt8(ascii: "\t") }
        guard delimiter.utf8.count == 1, let byte = delimiter.utf8.first, byte != 0x0A, byte != 0x22
        else { throw ValidationError("--delimiter is one character, such as ; or tab") }
        return byte
    }

    func columnNames() throws -> [RowField: String] {
        var names: [RowField: String] = [:]
        for pair in columns?.split(separator: ",") ?? [] {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, let field = RowField(rawValue: String(parts[0])),
                !parts[1].isEmpty
            else {
                throw ValidationError(
                    "--columns: '\(TerminalText.visible(String(pair)))' is not what=column, with one of "
                        + RowField.allCases.map(\.rawValue).joined(separator: ", "))
            }
            names[field] = String(parts[1])
        }
        return names
    }

    /// What makes of a row's texts what it says.
    func mapper(
        templates: [String] = [], joinColumn: String? = nil
    ) throws -> RowMapper {
        let (format, columns) = (try sourceFormat(), try columnNames())
        do throws(SourceProblem) {
            var made: [SubjectTemplate] = []
            for template in templates { made.append(try SubjectTemplate(template)) }
            var mapper = try RowMapper(
                format, columns: columns, templates: made, joinColumn: joinColumn)
            mapper.app = app
            mapper.environment = environment.flatMap { PushEnvironment(name: $0) }
            if let word = tokenClass.flatMap({ TokenClass(name: $0) }) { mapper.tokenClass = word }
            return mapper
        } catch {
            throw ValidationError(error.reason)
        }
    }
}
