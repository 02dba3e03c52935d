// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// Everything that is wrong with a configuration, found in one pass.
package struct InvalidConfiguration: Error, Sendable, Equatable, CustomStringConvertible {
    /// The problems, at least one, in the order of the key table.
    package var problems: [ConfigurationProblem]

    /// One line per problem.
    package var description: String {
        problems.map(\.description).joined(separator: "\n")
    }
}

/// One problem of a configuration: where it is, what is wrong, and what to do about it.
package struct ConfigurationProblem: Error, Sendable, Equatable, CustomStringConvertible {
    /// The path of the key, such as `delivery.threads`; empty for the file as a whole.
    package var path: String
    /// The line of the file, or the variable, that the value came from; nil if it is missing.
    package var origin: Setting.Origin?
    package var complaint: Complaint

    /// The most characters shown: a name may be as long as the file.
    private static let charactersMax = 500

    /// `path (line 3): what is wrong; what to do`, on one line of at most 2,000 bytes.
    package var description: String {
        let place = [path, origin.map { path.isEmpty ? "\($0)" : "(\($0))" } ?? ""]
            .filter { !$0.isEmpty }.joined(separator: " ")
        let line = (place.isEmpty ? "" : place + ": ") + complaint.wrong + "; " + complaint.remedy
        let shown = String(line.map { $0.isNewline ? " " : $0 }).printable
        let start = shown.unicodeScalars.prefix(Self.charactersMax)
        return start.endIndex == shown.endIndex ? shown : String(start.dropLast()) + "…"
    }
}

/// What is wrong with one value and what to do about it. Never quotes a secret.
package struct Complaint: Error, Sendable, Equatable {
    package var wrong: String
    package var remedy: String
}
