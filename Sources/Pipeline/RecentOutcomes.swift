// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Delivery
internal import FlatMemory
internal import Planning
internal import PushModel

/// The last outcomes of pushes, for people who ask what became of a token's. Acceptances have a ring
/// of their own, so that they do not push out the few failures.
///
/// An entry is written for each outcome, so it is a few plain stores into memory that is there. It
/// names the token by its row. The row may be another token's by the time somebody asks, so a part of
/// `apns-id`, which is hashed from the event and the token, tells whether it still is the same.
struct RecentOutcomes: ~Copyable {
    struct Entry: BitwiseCopyable {
        var at: WallTime
        var token: TokenID
        var tag: UInt32
        /// The oldest event that the push answered for.
        var origin: RecordPosition?
        var status: UInt16
        var reason: APNSReason
        var kind: PushOutcome.Kind
        var type: PushType
    }

    private var accepted = Ring(capacity: Self.acceptedMax)
    private var failed = Ring(capacity: Self.failedMax)

    /// At 40 bytes an entry: 640 and 160 KiB.
    static let acceptedMax = 16_384
    static let failedMax = 4096

    /// A push was accepted, and has not ended in the book yet.
    mutating func accepted(_ outcome: PushOutcome, _ book: borrowing PushBook, now: Now) {
        accepted.append(Self.entry(outcome, book, now: now))
    }

    /// A push has come back with another outcome, and the book does not know yet.
    mutating func failed(_ outcome: PushOutcome, _ book: borrowing PushBook, now: Now) {
        failed.append(Self.entry(outcome, book, now: now))
    }

    /// A push expired before it was handed over, and has not ended in the book yet.
    mutating func expiredUnsent(_ slot: UInt32, _ book: borrowing PushBook, now: Now) {
        var entry = Self.entry(PushOutcome(slot: slot, kind: .expired), book, now: now)
        // The slab has the identifier of an earlier push.
        let token = book.audience.tokenBytes(of: entry.token)
        entry.tag = Self.tag(of: book.apnsID(entry.origin, token: token))
        failed.append(entry)
    }

    private static func entry(
        _ outcome: PushOutcome, _ book: borrowing PushBook, now: Now
    ) -> Entry {
        let slot = outcome.slot
        return Entry(
            at: now.wall, token: book.pushes.token(of: slot),
            tag: tag(of: book.slab.push(slot).pointee.apnsID),
            origin: book.pushes[slot].content.origin, status: outcome.status,
            reason: outcome.reason, kind: outcome.kind, type: book.pushes[slot].content.type)
    }

    private static func tag(of apnsID: APNSID) -> UInt32 {
        UInt32(truncatingIfNeeded: apnsID.low)
    }

    /// The outcomes of pushes to this token, newest first.
    /// - Parameter apnsID: the identifier of a push for this event to this token.
    func outcomes(
        of token: TokenID, most: Int, apnsID: (RecordPosition?) -> APNSID
    ) -> [(entry: Entry, apnsID: APNSID)] {
        var found: [(entry: Entry, apnsID: APNSID)] = []
        let take = { (entry: Entry) in
            let id = apnsID(entry.origin)
            if Self.tag(of: id) == entry.tag { found.append((entry, id)) }
        }
        accepted.forEach(of: token, take)
        failed.forEach(of: token, take)
        found.sort { $0.entry.at > $1.entry.at }
        return Array(found.prefix(most))
    }

    /// The last entries of one sort, at most `capacity` of them.
    private struct Ring: ~Copyable {
        private var entries: Column<Entry>
        private var count = 0
        private let mask: Int

        init(capacity: Int) {
            precondition(capacity & (capacity - 1) == 0, "a ring's capacity is a power of two")
            mask = capacity - 1
            entries = Column(capacity: capacity)
            entries.extend(to: capacity)
        }

        mutating func append(_ entry: Entry) {
            entries[count & mask] = entry
            count &+= 1
        }

        func forEach(of token: TokenID, _ body: (Entry) -> Void) {
            for place in 0..<min(count, mask + 1) where entries[place].token == token {
                body(entries[place])
            }
        }
    }
}
