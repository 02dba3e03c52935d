// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Why structures could not be written to a file, or why a file that holds some is not used: part of
/// a sentence whose subject is the file.
package struct SnapshotFault: Error, Hashable, Sendable, CustomStringConvertible {
    package let reason: String

    package init(_ reason: String) { self.reason = reason }

    package var description: String { reason }
}
