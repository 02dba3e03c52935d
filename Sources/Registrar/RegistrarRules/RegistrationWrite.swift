// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// A record that the registrar writes. Without a value it is a tombstone.
package struct RegistrationWrite: Hashable, Sendable {
    package var ticket: RegistrationArbiter.Ticket
    package var partition: Int32
    package var key: [UInt8]
    package var value: [UInt8]?
    /// Beside the value, which says none if it has no targets.
    package var tokenClass: RegistrationClass?
    /// The replica's number.
    package var writer: UInt64
    package var owner: Ownership
    package var order: ClientOrder
}
