// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Something about the registrar's keys that an operator is told in the log.
package struct AccessNotice: Sendable, Hashable {
    /// Whether somebody has to do something: a file or a key set cannot be used.
    package let isFault: Bool
    /// One line without secrets.
    package let text: String
}

/// What callers were let in and refused since the start.
package struct AccessCounts: Sendable, Hashable {
    /// How a caller showed who they are.
    package enum Scheme: String, Sendable, CaseIterable { case service, jwt, appAttest }

    package var accepted: [Scheme: UInt64] = [:]
    package var refused: [AccessRefusal.Problem: UInt64] = [:]
    /// Credentials that were issued after an attestation.
    package var attested: UInt64 = 0
    /// Looks at a file or a key set that found it unusable.
    package var faults: UInt64 = 0
}
