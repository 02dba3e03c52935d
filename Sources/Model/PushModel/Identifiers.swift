// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

/// Names a device token from the first registration or suppression that mentions it until
/// `Audience.reclaimRemoved()` runs after the last of them is gone; then the number may name
/// another token. Never 0.
@usableFromInline
package struct TokenID: Hashable, Sendable, BitwiseCopyable {
    @usableFromInline package let rawValue: UInt32
    // Inlinable, like clocks, identifiers and the slab: together that saved 700 of 6,733
    // instructions per push.
    @inlinable package init(rawValue: UInt32) { self.rawValue = rawValue }

    /// The token's place in a table that has some bytes for each token. The number counts units of
    /// 8 bytes in the audience's memory, where a token takes four or more (24 bytes and its own), so
    /// no two tokens share a place, and usual ones of 32 bytes take up four places in seven.
    package var position: Int { Int(rawValue / 4) }
    /// More than any position.
    package static var positionsMax: Int { 1 << 30 }
}

/// Names a subject of one app (or all controls of a kind) while it has a subscription or a cursor.
@usableFromInline
package struct SubjectID: Hashable, Sendable, BitwiseCopyable {
    @usableFromInline package let rawValue: UInt32
    @inlinable package init(rawValue: UInt32) { self.rawValue = rawValue }

    /// Names no subject: the audience counts from 1.
    @inlinable package static var none: SubjectID { SubjectID(rawValue: 0) }
}

/// Names a kind of one app while a subscription shows it, and until `Audience.reclaimKinds()` after
/// the last has gone.
@usableFromInline
package struct KindID: Hashable, Sendable, BitwiseCopyable {
    @usableFromInline package let rawValue: UInt16
    @inlinable package init(rawValue: UInt16) { self.rawValue = rawValue }

    /// A target without a kind, or with one beyond those that its app can tell apart: it gets every
    /// event of its subject except those that name kinds.
    package static let none = KindID(rawValue: 0)
    /// What an event's kind becomes that no subscription shows; no subscription ever has it.
    package static let unknown = KindID(rawValue: .max)
}
