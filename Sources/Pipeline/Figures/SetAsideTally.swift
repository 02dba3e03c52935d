// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Counts what was read of the compacted topics and set aside, since it could not be used, by reason:
/// whoever it was for gets nothing of it.
package struct SetAsideTally: Sendable, Equatable {
    package enum Part: Sendable, CaseIterable {
        /// Whole records of registrations.
        case registrations
        /// Rows and targets of registrations whose other rows are in use.
        case registrationRows
        case suppressions
        case deferred
        case restrictions
    }

    private var counts: [Part: [String: Int]] = [:]

    package init() {}

    /// - Parameter reason: one of a bounded number of words.
    mutating func add(_ part: Part, _ reason: String, count: Int = 1) {
        if count > 0 { counts[part, default: [:]][reason, default: 0] += count }
    }

    package func total(_ part: Part) -> Int {
        counts[part]?.values.reduce(0, +) ?? 0
    }

    /// The counts of each reason, in alphabetical order.
    package subscript(part: Part) -> [(reason: String, count: Int)] {
        (counts[part] ?? [:]).sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }
}
