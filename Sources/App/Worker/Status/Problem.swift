// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel

/// Something that is wrong with a worker, in words for whoever is on call.
package struct Problem: Codable, Sendable, Equatable {
    package enum Severity: String, Codable, Sendable {
        /// Pushes are not sent, or not as they should be, or soon will not be.
        case error
        /// Pushes are sent, and yet something is to be looked at.
        case warning
    }

    package var severity: Severity
    /// What is wrong, in a sentence.
    package var summary: String
    /// What to do, in a sentence or two.
    package var remedy: String

    init(_ severity: Severity, _ summary: String, remedy: String) {
        self.severity = severity
        self.summary = summary.asSentence
        self.remedy = remedy.asSentence
    }
}
