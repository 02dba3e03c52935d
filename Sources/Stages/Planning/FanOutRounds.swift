// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Ledger
package import PushModel

/// How a fan-out that is spread goes through its list: in rounds, each for the next part of the tokens by
/// their hash, which every worker agrees on. So the next owner of the event can go on where this one
/// was.
package struct FanOutRounds: Sendable {
    /// The parts of all tokens that the event has: of those that are shards, its own and the others'.
    package let count: UInt16
    /// The first of the event, and how many it has.
    package let first: UInt16
    package let length: UInt16
    /// How many of them the owners before have come through.
    package let done: UInt16

    /// An owner that gives the event up sends one round in so many again, but for each round it goes
    /// through the whole list. For the 16 shards of an event that is 16 times 16 passes.
    private static let ofEvent = 64, ofShard = 16
    /// A round of fewer tokens is not worth a pass.
    private static let tokensLeast = 16

    /// - Parameters:
    ///   - count: the length of the list.
    ///   - progress: where the owner before was; nil to begin anew. One that is not of the event's parts,
    ///     such as of another version, begins anew too.
    /// - Returns: nil for a shard of more than this version makes.
    package init?(of shard: TokenShard?, count: Int, from progress: FanOutProgress? = nil) {
        let shard = shard ?? TokenShard(index: 0, count: 1)
        guard shard.count <= FanOutProgress.countMax / 64 else { return nil }
        let tokens = count / Int(shard.count)
        let most = shard.count > 4 ? Self.ofShard : Self.ofEvent
        var length = UInt16(min(most, max(4, tokens / Self.tokensLeast)))
        var done: UInt16 = 0
        if let progress, progress.count >= shard.count, progress.count % shard.count == 0 {
            let known = progress.count / shard.count
            let start = known * shard.index
            if (start..<start + known).contains(progress.index) {
                (length, done) = (known, progress.index - start)
            }
        }
        self.count = shard.count * length
        first = shard.index * length
        self.length = length
        self.done = done
    }

    /// The tokens of a pass of the fan-out.
    func tokens(ofPass pass: Int) -> TokenShard {
        TokenShard(index: first + UInt16(pass % Int(length)), count: count)
    }

    /// The share of the event's tokens that is left.
    package var left: Double { Double(length - done) / Double(length) }
}

/// How far an event has come through its tokens: it has ended for each whose hash is in a part, of
/// `count`, before `index`.
package struct FanOutProgress: Hashable, Sendable {
    package var index: UInt16
    package var count: UInt16

    package static let countMax: UInt16 = 1024

    package init(index: UInt16, count: UInt16) {
        precondition(
            index < count && count <= Self.countMax,
            "a part's index lies below the count of parts, which is at most countMax")
        self.index = index
        self.count = count
    }

    /// Whether the token is one of those for which the event has ended.
    package func isBehind(_ token: UnsafeRawBufferPointer) -> Bool {
        TokenShard.index(of: token, count: count) < index
    }

    /// The progress of an event with these parts that is no further than this one.
    fileprivate func rounded(to count: UInt16) -> UInt16 {
        UInt16(Int(index) * Int(count) / Int(self.count))
    }
}

/// How far the events have come that are spread. Each round of a fan-out holds the event's offset by a claim
/// of its own: the event has come to the oldest round whose claim is still there. It counts what is
/// under way, not only what was visited.
package struct SpreadProgress {
    private struct Row {
        let claim: OffsetClaim
        let rounds: FanOutRounds
        let index: UInt16
    }

    private var rows: [ClaimID: Row] = [:]
    /// With so many rows, those whose claims are gone are looked for.
    private var sweptAt = 64

    /// Of so many events the progress is told to the next owner of a partition.
    private static let eventsMax = 8

    package init() {}

    /// From now on the claim holds what is asked for in this round.
    mutating func begin(
        _ index: UInt16, of rounds: FanOutRounds, _ claim: OffsetClaim,
        _ tracker: borrowing OffsetTracker
    ) {
        if rows.count >= sweptAt {
            rows = rows.filter { tracker.isHeld($0.value.claim) }
            sweptAt = max(64, 2 * rows.count)
        }
        rows[claim.id] = Row(claim: claim, rounds: rounds, index: index)
    }

    /// How far the oldest events of a partition have come, by offset. Behind an event that is not spread
    /// there are none: a push may answer for both, and then holds the older one alone. For the same
    /// reason none is further than that of an older event which may be for the same tokens.
    package func events(
        of id: AssignmentID, _ tracker: borrowing OffsetTracker
    ) -> [(offset: Int64, progress: FanOutProgress)] {
        guard !rows.isEmpty else { return [] }
        var found: [(offset: Int64, rounds: FanOutRounds, index: UInt16)] = []
        tracker.forEachOpen(id) { claim in
            guard let row = rows[claim.id], row.claim == claim else {
                // What claims the offset of a spread event beside its rounds is in none.
                if found.last?.offset == claim.offset { found.removeLast() }
                return false
            }
            if found.last?.offset == claim.offset {
                found[found.count - 1].index = min(found[found.count - 1].index, row.index)
            } else {
                guard found.count < Self.eventsMax else { return false }
                found.append((claim.offset, row.rounds, row.index))
            }
            return true
        }
        // One at its beginning says nothing.
        let progress = Self.progress(found)
        return zip(progress, found).filter { $0.progress.index > $1.rounds.first }.map(\.0)
    }

    private static func progress(
        _ found: [(offset: Int64, rounds: FanOutRounds, index: UInt16)]
    ) -> [(offset: Int64, progress: FanOutProgress)] {
        var progress: [(offset: Int64, progress: FanOutProgress)] = []
        for (number, event) in found.enumerated() {
            var index = event.index
            for (other, older) in found[..<number].enumerated()
            where older.rounds.overlaps(event.rounds) {
                index = min(index, progress[other].progress.rounded(to: event.rounds.count))
            }
            index = max(index, event.rounds.first)
            progress.append((event.offset, FanOutProgress(index: index, count: event.rounds.count)))
        }
        return progress
    }
}

extension FanOutRounds {
    /// Whether the two may be for the same token.
    fileprivate func overlaps(_ other: FanOutRounds) -> Bool {
        let (start, end) = (Int(first), Int(first) + Int(length))
        let (otherStart, otherEnd) = (Int(other.first), Int(other.first) + Int(other.length))
        return start * Int(other.count) < otherEnd * Int(count)
            && otherStart * Int(count) < end * Int(other.count)
    }
}
