// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// The claims of one waiting push: for each assignment the oldest offset that the push answers for,
/// never a list of events, and each row of a table. There is nearly always just one; others stand in a chain of the pool.
package struct ClaimSet: BitwiseCopyable {
    fileprivate var first = OffsetClaim(epoch: 0, id: ClaimID(rawValue: .max), offset: .max)
    fileprivate var more = ClaimPool.none

    package init() {}

    package var isEmpty: Bool { first.epoch == 0 }
}

/// Owns the chains of all hold sets.
package struct ClaimPool: ~Copyable {
    fileprivate static let none = UInt32.max

    private struct Link {
        var claim: OffsetClaim
        var next: UInt32
    }

    private var links: [Link] = []
    private var free: [UInt32] = []

    package init() {}

    /// Adds a claim. Of two on one assignment the set keeps the older: an event whose fan-out goes through
    /// a large audience comes to a token after events that were read later.
    /// - Returns: the claim that the set does not need: the new one, or the one that it replaces.
    package mutating func insert(_ claim: OffsetClaim, into set: inout ClaimSet) -> OffsetClaim? {
        assert(
            claim.offset >= 0 && claim.offset < .max,
            "a claim's offset is from 0 to below the largest number")
        if set.isEmpty {
            set.first = claim
            return nil
        }
        return insertFurther(claim, into: &set)
    }

    /// Adds a claim beside those that the set has.
    package mutating func append(_ claim: OffsetClaim, to set: inout ClaimSet) {
        assert(!set.isEmpty, "a claim is appended only to a set that has one")
        set.more = link(claim, next: set.more)
    }

    private mutating func insertFurther(_ claim: OffsetClaim, into set: inout ClaimSet)
        -> OffsetClaim?
    {
        if set.first.epoch == claim.epoch { return Self.keepOlder(claim, in: &set.first) }
        var row = set.more
        while row != Self.none {
            if links[Int(row)].claim.epoch == claim.epoch {
                return Self.keepOlder(claim, in: &links[Int(row)].claim)
            }
            row = links[Int(row)].next
        }
        append(claim, to: &set)
        return nil
    }

    private static func keepOlder(_ claim: OffsetClaim, in kept: inout OffsetClaim) -> OffsetClaim {
        guard claim.offset < kept.offset else { return claim }
        let surplus = kept
        kept = claim
        return surplus
    }

    /// Empties `set`, giving each claim to `body`.
    package mutating func drain(_ set: inout ClaimSet, _ body: (OffsetClaim) -> Void) {
        guard !set.isEmpty else { return }
        body(set.first)
        if set.more != Self.none { drainChain(from: set.more, body) }
        set = ClaimSet()
    }

    private mutating func drainChain(from first: UInt32, _ body: (OffsetClaim) -> Void) {
        var row = first
        while row != Self.none {
            body(links[Int(row)].claim)
            free.append(row)
            row = links[Int(row)].next
        }
    }

    package func forEach(in set: ClaimSet, _ body: (OffsetClaim) -> Void) {
        guard !set.isEmpty else { return }
        body(set.first)
        var row = set.more
        while row != Self.none {
            body(links[Int(row)].claim)
            row = links[Int(row)].next
        }
    }

    /// The number of chained claims in use; zero when every set is empty or has one claim.
    package var chained: Int { links.count - free.count }

    private mutating func link(_ claim: OffsetClaim, next: UInt32) -> UInt32 {
        if let row = free.popLast() {
            links[Int(row)] = Link(claim: claim, next: next)
            return row
        }
        links.append(Link(claim: claim, next: next))
        return UInt32(links.count - 1)
    }
}
