// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Deferral
internal import Ledger
internal import Planning
package import PushModel

/// The topic that a record of this worker's goes to.
package enum RecordTopic: Int, Sendable, Hashable, CaseIterable {
    case suppressions
    case deadLetters
    case deferred
    /// An events topic: shards are events.
    case events
}

/// The circuit breaker of a topic that this worker writes to. `closed` is the normal case: Kafka
/// takes records. `RecordOutlet` decides the state, and `Outbox` splits events only where it is not
/// `open`.
package enum TopicBreakerState: Sendable, Hashable {
    case closed
    /// The topic has refused records, and the back-off is over: the records of one event may try it
    /// again.
    case halfOpen
    /// A record that is written now would have to wait.
    case open
}

/// A record to be produced. Its ticket comes back with the acknowledgement.
package struct OutgoingRecord: Sendable {
    package var topic: RecordTopic
    package var key: [UInt8]
    /// The record's value; nil makes it a tombstone.
    package var value: [UInt8]?
    package var ticket: UInt64
    /// The partition to write to; nil lets the key decide.
    package var partition: Int32?
    /// Goes into the header `DeferredPush.endedHeader`.
    package var endedOffset: Int64?
    /// Goes into the header `DeferredPush.endedPayloadHeader`.
    package var endedPayloadAt: WallTime?
    /// Goes into the header `traceparent`.
    package var traceparent: String?
}

/// Records that Kafka has not acknowledged yet, each with the offsets that must wait for it: an
/// offset is committed only after the suppressions and dead letters it caused are safe.
struct TicketTable {
    private var open: [UInt64: Ticket] = [:]
    private var last: UInt64 = 0
    /// The latest open ticket of each key of `deferred`.
    private var latestDeferrals: [[UInt8]: UInt64] = [:]
    /// Usage for each topic, indexed by `RecordTopic.rawValue`. Each topic has a bound of its own:
    /// one that takes nothing must not use up another's.
    private var usages = Array(repeating: Usage(), count: RecordTopic.allCases.count)
    /// What is unacknowledged of each partition of `deferred`.
    var shares = DeferralShares()
    /// Bytes of the dead letters that have been acknowledged or given up so far.
    private(set) var letterBytesClosed = 0

    struct Usage: Equatable {
        var count = 0
        /// The approximate memory of the records, with what belongs to them.
        var bytes = 0
    }

    /// The memory of a ticket in bytes, without its texts and claims.
    static let overhead = 512

    /// Open tickets whose record Kafka has refused at least once.
    private(set) var refused = 0

    struct Ticket {
        var record: OutgoingRecord
        var wasRefused = false
        var claims: [OffsetClaim]
        /// What to produce if the value is too large; nil when there is nothing less to say.
        var fallback: [UInt8]?
        var suppression: IssuedSuppression?
        /// The bytes that were counted when the ticket was issued.
        fileprivate var bytes = 0
        /// The partition of `deferred` in whose share the ticket was counted.
        fileprivate var partition = 0
        var order: PayloadKey?
        /// The row of `deferred` whose push is sent when Kafka has the record.
        var announces: OffsetClaim?
        /// What a shard says. Its subject is the record's key.
        fileprivate(set) var shard: Event?
    }

    /// Identifies the payload of a deferral that another event may replace, and gives its age.
    struct PayloadKey {
        var hash: UInt64
        var age: BodyAge
    }

    /// What a suppression record says, to be compared with what is known when it is refused.
    struct IssuedSuppression {
        var route: RouteID
        var token: [UInt8]
        var registeredAt: WallTime
    }

    var count: Int { open.count }
    var deferrals: Int { usage(of: .deferred).count }
    var isEmpty: Bool { open.isEmpty }

    subscript(ticket: UInt64) -> Ticket? { open[ticket] }

    func usage(of topic: RecordTopic) -> Usage { usages[topic.rawValue] }

    /// Opens a ticket. If another record of the same key of `deferred` is open, the new one must say
    /// all that the open one does.
    mutating func issue(_ draft: RecordDraft) -> OutgoingRecord {
        precondition(
            draft.value != nil || draft.topic == .deferred,
            "only a row of deferred ends with a tombstone, so only its value may be nil")
        last += 1
        var record = OutgoingRecord(
            topic: draft.topic, key: draft.key, value: draft.value, ticket: last,
            partition: draft.partition, traceparent: draft.traceparent)
        record.endedOffset = draft.endedOffset
        record.endedPayloadAt = draft.endedPayloadAt
        var ticket = Ticket(
            record: record, claims: draft.claims, fallback: draft.fallback,
            suppression: draft.suppression)
        ticket.order = draft.order
        ticket.announces = draft.announces
        ticket.bytes =
            Self.overhead + draft.key.count + (draft.value?.count ?? 0)
            + (draft.fallback?.count ?? 0)
            + draft.claims.count * MemoryLayout<OffsetClaim>.stride
        open[last] = ticket
        usages[draft.topic.rawValue].count += 1
        usages[draft.topic.rawValue].bytes += ticket.bytes
        if draft.topic == .deferred { deferralOpened(record, draft) }
        return record
    }

    /// Keeps what the shard that was issued last says.
    mutating func keepLast(_ shard: Event) {
        precondition(
            open[last]?.record.topic == .events,
            "only a shard, an event of the worker's own, is kept decoded")
        open[last]!.shard = shard
    }

    mutating func noteRefusal(of ticket: UInt64) {
        guard open[ticket]?.wasRefused == false else { return }
        open[ticket]!.wasRefused = true
        refused += 1
    }

    /// The latest deferral of this key that Kafka has not acknowledged yet.
    func openDeferral(of key: [UInt8]) -> Ticket? {
        latestDeferrals[key].flatMap { open[$0] }
    }

    /// Whether a record that the owner of this partition of `deferred` has written is with Kafka.
    /// One that Kafka has refused does not count: nobody knows when it will accept it.
    func isOpen(deferredPartition partition: Int32) -> Bool {
        deferrals > 0
            && open.values.contains {
                $0.record.topic == .deferred && $0.record.partition == partition && !$0.wasRefused
            }
    }

    private mutating func deferralOpened(_ record: OutgoingRecord, _ draft: RecordDraft) {
        let share = shares.partition(of: record)
        open[record.ticket]!.partition = share
        shares.opened(
            record.ticket, bytes: open[record.ticket]!.bytes, announces: draft.announces != nil,
            in: share)
        // A rewrite by the owner says nothing of what this worker has deferred since.
        if draft.value != nil, draft.endedOffset == nil {
            latestDeferrals[draft.key] = record.ticket
        }
    }

    /// Closes a deferral that Kafka has refused, if a later one of its key says all that it says:
    /// produced again, the older record would come last. Its claims pass to the later one if that
    /// is still open, or else are returned with it.
    mutating func closeSuperseded(_ ticket: UInt64, _ tracker: inout OffsetTracker) -> Ticket? {
        guard let old = open[ticket], old.record.topic == .deferred, old.record.value != nil,
            old.record.endedOffset == nil, latestDeferrals[old.record.key] != ticket
        else { return nil }
        guard let latest = latestDeferrals[old.record.key] else { return close(ticket) }
        precondition(latest > ticket, "a deferral is superseded only by a later one")
        for claim in old.claims { pass(claim, to: latest, &tracker) }
        open[ticket]!.claims = []
        return close(ticket)
    }

    /// Passes a claim to an open ticket, which needs of each assignment only that on the oldest offset:
    /// else a key that is deferred again and again while Kafka takes nothing would gather claims without
    /// end. A row of `deferred` ends by itself, so each claim on one is kept.
    private mutating func pass(
        _ claim: OffsetClaim, to ticket: UInt64, _ tracker: inout OffsetTracker
    ) {
        let known = open[ticket]!.claims.firstIndex {
            $0.epoch == claim.epoch && !tracker.isOfTable(claim)
        }
        guard let known else {
            open[ticket]!.claims.append(claim)
            open[ticket]!.bytes += MemoryLayout<OffsetClaim>.stride
            usages[RecordTopic.deferred.rawValue].bytes += MemoryLayout<OffsetClaim>.stride
            return
        }
        let isOlder = tracker.isOlder(claim, than: open[ticket]!.claims[known])
        tracker.release(isOlder ? open[ticket]!.claims[known] : claim)
        if isOlder { open[ticket]!.claims[known] = claim }
    }

    mutating func close(_ ticket: UInt64) -> Ticket? {
        guard let closed = open.removeValue(forKey: ticket) else { return nil }
        if closed.wasRefused { refused -= 1 }
        let topic = closed.record.topic
        usages[topic.rawValue].count -= 1
        usages[topic.rawValue].bytes -= closed.bytes
        if topic == .deadLetters { letterBytesClosed += closed.bytes }
        guard topic == .deferred else { return closed }
        shares.closed(
            ticket, bytes: closed.bytes, announces: closed.announces != nil, in: closed.partition)
        if latestDeferrals[closed.record.key] == ticket {
            latestDeferrals[closed.record.key] = nil
        }
        return closed
    }

    /// Replaces the value of the ticket's record by its fallback, once; nil when there is none
    /// left.
    mutating func shrink(_ ticket: UInt64) -> OutgoingRecord? {
        guard let fallback = open[ticket]?.fallback else { return nil }
        open[ticket]!.record.value = fallback
        open[ticket]!.fallback = nil
        return open[ticket]!.record
    }

    func forEachClaim(_ body: (OffsetClaim) -> Void) {
        for ticket in open.values { ticket.claims.forEach(body) }
    }

    func checkInvariants() {
        for topic in RecordTopic.allCases {
            let tickets = open.values.filter { $0.record.topic == topic }
            let bytes = tickets.reduce(0) { $0 + $1.bytes }
            precondition(
                usage(of: topic) == Usage(count: tickets.count, bytes: bytes),
                "the count and bytes of \(topic) are those of its open tickets")
        }
        shares.checkInvariants(open: deferrals)
        precondition(
            open.values.count(where: \.wasRefused) == refused,
            "the count of refused tickets is that of the open ones so marked")
        for (key, ticket) in latestDeferrals {
            precondition(
                open[ticket]?.record.key == key,
                "the latest deferral of a key is open and has that key")
        }
    }
}
