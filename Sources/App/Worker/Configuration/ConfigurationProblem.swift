// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// Everything that is wrong with a configuration, found in one pass.
package struct InvalidConfiguration: Error, Sendable, Equatable, CustomStringConvertible {
    /// At least one, in the order of the key table.
    package var problems: [ConfigurationProblem]

    /// One line per problem.
    package var description: String {
        problems.map(\.description).joined(separator: "\n")
    }
}

/// One thing that is wrong: where, what, and what to do about it.
package struct ConfigurationProblem: Error, Sendable, Equatable, CustomStringConvertible {
    /// The key, such as `delivery.threads`; empty when the file as a whole is meant.
    package var path: String
    /// The line of the file or the variable that the value came from; nil when it is missing.
    package var origin: Setting.Origin?
    package var complaint: Complaint

    /// A name may be as long as the file; no message of ours comes near.
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
