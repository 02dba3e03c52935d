// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import PushModel

/// The claims of one waiting push: for each track the oldest offset it answers for, never a list
/// of events. Nearly always one; further ones stand in a chain of the pool.
package struct HoldSet: BitwiseCopyable {
    fileprivate var first = Hold(
        track: TrackID(rawValue: .max), holder: HolderID(rawValue: .max))
    fileprivate var more = HoldPool.none

    package init() {}

    package var isEmpty: Bool { first.track.rawValue == .max }
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

    /// Adds a claim unless the set already answers for an older offset of the same track. False
    /// means the set did not need it.
    package mutating func insert(_ hold: Hold, into set: inout HoldSet) -> Bool {
        if set.isEmpty {
            set.first = hold
            return true
        }
        if contains(hold.track, in: set) { return false }
        set.more = link(hold, next: set.more)
        return true
    }

    package func contains(_ track: TrackID, in set: HoldSet) -> Bool {
        if set.isEmpty { return false }
        if set.first.track == track { return true }
        var row = set.more
        while row != Self.none {
            if links[Int(row)].hold.track == track { return true }
            row = links[Int(row)].next
        }
        return false
    }

    /// Empties `set`, giving each claim to `body`.
    package mutating func drain(_ set: inout HoldSet, _ body: (Hold) -> Void) {
        guard !set.isEmpty else { return }
        body(set.first)
        var row = set.more
        while row != Self.none {
            body(links[Int(row)].hold)
            free.append(row)
            row = links[Int(row)].next
        }
        set = HoldSet()
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

    /// Chained claims in use; zero when every set is empty or has one.
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
