// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// The claims of one waiting push: for each assignment the oldest offset that the push answers for,
/// never a list of events. There is nearly always just one; others stand in a chain of the pool.
package struct HoldSet: BitwiseCopyable {
    fileprivate var first = Hold(epoch: 0, holder: HolderID(rawValue: .max), offset: .max)
    fileprivate var more = HoldPool.none

    package init() {}

    package var isEmpty: Bool { first.epoch == 0 }
}

/// Owns the chains of all hold sets.
package struct HoldPool: ~Copyable {
    fileprivate static let none = UInt32.max

    private struct Link {
        var hold: Hold
        var next: UInt32
    }

    private var links: [Link] = []
    private var free: [UInt32] = []

    package init() {}

    /// Adds a claim. Of two on one assignment the set keeps the older: an event that walks through
    /// a large audience comes to a token after events that were read later.
    /// - Returns: the claim that the set does not need: the new one, or the one that it replaces.
    package mutating func insert(_ hold: Hold, into set: inout HoldSet) -> Hold? {
        assert(hold.offset >= 0 && hold.offset < .max, "a claim has no valid offset")
        if set.isEmpty {
            set.first = hold
            return nil
        }
        return insertFurther(hold, into: &set)
    }

    private mutating func insertFurther(_ hold: Hold, into set: inout HoldSet) -> Hold? {
        if set.first.epoch == hold.epoch { return Self.keepOlder(hold, in: &set.first) }
        var row = set.more
        while row != Self.none {
            if links[Int(row)].hold.epoch == hold.epoch {
                return Self.keepOlder(hold, in: &links[Int(row)].hold)
            }
            row = links[Int(row)].next
        }
        set.more = link(hold, next: set.more)
        return nil
    }

    private static func keepOlder(_ hold: Hold, in kept: inout Hold) -> Hold {
        guard hold.offset < kept.offset else { return hold }
        let surplus = kept
        kept = hold
        return surplus
    }

    /// Empties `set`, giving each claim to `body`.
    package mutating func drain(_ set: inout HoldSet, _ body: (Hold) -> Void) {
        guard !set.isEmpty else { return }
        body(set.first)
        if set.more != Self.none { drainChain(from: set.more, body) }
        set = HoldSet()
    }

    private mutating func drainChain(from first: UInt32, _ body: (Hold) -> Void) {
        var row = first
        while row != Self.none {
            body(links[Int(row)].hold)
            free.append(row)
            row = links[Int(row)].next
        }
    }

    package func forEach(in set: HoldSet, _ body: (Hold) -> Void) {
        guard !set.isEmpty else { return }
        body(set.first)
        var row = set.more
        while row != Self.none {
            body(links[Int(row)].hold)
            row = links[Int(row)].next
        }
    }

    /// The number of chained claims in use; zero when every set is empty or has one claim.
    package var chained: Int { links.count - free.count }

    private mutating func link(_ hold: Hold, next: UInt32) -> UInt32 {
        if let row = free.popLast() {
            links[Int(row)] = Link(hold: hold, next: next)
            return row
        }
        links.append(Link(hold: hold, next: next))
        return UInt32(links.count - 1)
    }
}
