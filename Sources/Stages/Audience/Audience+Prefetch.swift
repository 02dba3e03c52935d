// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// Finding an event's tokens is a chain of cache misses, each of which yields the address of the
/// next. For one event nothing can be done about it. For many, each step is done for all of them
/// before the next step, so that their misses overlap. These are hints only: they change nothing,
/// and no answer depends on them.
extension Audience {
    /// The most subjects whose cache lines stay in the first-level cache until they are read.
    package static let prefetchMax = 32

    /// Has the processor fetch what looking these subjects up will read and, for a subject that
    /// only one token shows, what pushing to that token will read.
    ///
    /// - Parameter hashes: results of `hash`, at most `prefetchMax` of them.
    package func prefetch(subjects hashes: [UInt64]) {
        precondition(
            hashes.count <= Self.prefetchMax, "no more rows are fetched ahead than the cache keeps")
        for hash in hashes { subjects.prefetchSlot(hash: hash) }
        withUnsafeTemporaryAllocation(of: UInt32.self, capacity: Self.prefetchMax) { rows in
            for position in hashes.indices {
                rows[position] = subjects.prefetchRecord(hash: hashes[position]) ?? 0
            }
            for position in hashes.indices where rows[position] != 0 {
                let sole = subjects.soleSubscription(prefetchingListOf: rows[position])
                rows[position] = sole ?? 0
                if let sole { registrations.prefetch(row: sole) }
            }
            for position in hashes.indices where rows[position] != 0 {
                tokens.prefetch(registrations[rows[position]].token)
            }
        }
    }

    /// Has the processor fetch what finding the tokens and subjects of a registration's first rows
    /// will read.
    func prefetch(_ registration: borrowing Registration, _ bytes: UnsafeRawBufferPointer) {
        let count = min(registration.rows.count, Self.prefetchMax)
        typealias Hashes = (token: UInt64, subject: UInt64)
        withUnsafeTemporaryAllocation(of: Hashes.self, capacity: Self.prefetchMax) { hashes in
            for position in 0..<count {
                let row = registration.rows[position]
                let route =
                    routes[registration.environment, registration.app, row.tokenClass]
                    ?? RouteID(rawValue: 0)
                hashes[position] = (
                    tokens.hash(route: route, bytes: bytes[row.token]),
                    hash(registration.app, bytes[row.subject], .subject)
                )
                tokens.prefetchSlot(hash: hashes[position].token)
                subjects.prefetchSlot(hash: hashes[position].subject)
            }
            for position in 0..<count {
                tokens.prefetchRecord(hash: hashes[position].token)
                _ = subjects.prefetchRecord(hash: hashes[position].subject)
            }
        }
    }

    /// Has the processor fetch a token's row.
    package func prefetch(_ token: TokenID) { tokens.prefetch(token) }

    /// Has the processor fetch what pushing to these entries of a subject will read.
    ///
    /// - Parameter positions: below `count(subject)`.
    package func prefetch(_ subject: SubjectID, entries positions: Range<Int>) {
        for position in positions {
            registrations.prefetch(row: subjects.subscription(subject, at: position))
        }
        for position in positions { tokens.prefetch(entry(subject, at: position).token) }
    }
}
