// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
internal import Intake
internal import Ledger
internal import PushModel
internal import RecordFormats

/// The records that the pipeline wants produced: suppressions, dead letters, deferred pushes and
/// shards. It keeps each until Kafka has acknowledged it, with the offsets that wait for that, and
/// has a refused one produced again.
struct Outbox: ~Copyable {
    /// The records to be produced, oldest first.
    fileprivate(set) var records: [OutgoingRecord] = []
    /// Whether events may be split now. The owner sets it before events are read.
    var shardBreaker = TopicBreakerState.closed
    var tickets = TicketTable()
    /// Letters that still gather tokens.
    var letters: DeadLetterDrafts
    /// Failures for which there was no room for a letter each.
    var merged = MergedLetters()
    /// Failures of which a letter has said the same.
    var repeated = RepeatedFailures()
    var watch = LetterWatch()
    /// How many letters were written, by what they are of.
    var written: [LetterKind: Int] = [:]
    /// What the letters were written for.
    var failures = FailureSamples()
    /// Suppressions that Kafka will never take: the index goes by them, and no topic has them.
    fileprivate(set) var suppressionsGivenUp = 0
    /// Tickets of shards that Kafka did not take, oldest first; those before `firstRefused` are
    /// gone.
    fileprivate var refusedShards: [UInt64] = []
    private var firstRefused = 0
    private let byAddress = PassedByAddress()

    init(settings: PipelineSettings) {
        letters = DeadLetterDrafts(
            tokensMax: settings.sizes.deadLetterTokensMax, delay: settings.sizes.deadLetterDelay)
    }

    var isEmpty: Bool { tickets.isEmpty && letters.isEmpty && merged.isEmpty }
    var hasRefusedShards: Bool { firstRefused < refusedShards.count }

    /// The bytes of letters that gather tokens and of those that Kafka has not acknowledged.
    var letterBytes: Int { tickets.usage(of: .deadLetters).bytes + letters.bytes }

    /// The number of unacknowledged records, of tokens in drafts of letters, and of merged letters.
    var unacknowledged: Int { tickets.count + letters.targets + merged.count }

    /// How many records or failures of one topic are unacknowledged, and about how many bytes they
    /// take up.
    func waiting(for topic: RecordTopic) -> (records: Int, bytes: Int) {
        let usage = tickets.usage(of: topic)
        guard topic == .deadLetters else { return (usage.count, usage.bytes) }
        return (usage.count + letters.targets + merged.failures, letterBytes)
    }

    /// The approximate memory of the records and letters.
    var bytes: Int {
        RecordTopic.allCases.reduce(0) { $0 + waiting(for: $1).bytes }
    }

    // MARK: Records are written

    /// Returns `records` and empties it.
    mutating func takeRecords() -> [OutgoingRecord] {
        let taken = records
        records = []
        return taken
    }

    /// Writes a record. The claims pass to it; its acknowledgement gives them back.
    /// - Returns: its ticket.
    @discardableResult
    mutating func write(_ draft: RecordDraft) -> UInt64 {
        let record = tickets.issue(draft)
        records.append(record)
        return record.ticket
    }

    /// Keeps what the last record says, which is a shard, for the case that Kafka does not take it.
    mutating func keep(_ shard: Event) { tickets.keepLast(shard) }

    // MARK: Kafka answers

    /// Kafka has the record, or it is given up: what waited for it is released.
    /// - Returns: the row of `deferred` whose push the record announces.
    @discardableResult
    mutating func acknowledged(
        _ ticket: UInt64, _ tracker: inout OffsetTracker
    ) -> OffsetClaim? {
        guard let ticket = tickets.close(ticket) else { return nil }
        for claim in ticket.claims { tracker.release(claim) }
        return ticket.announces
    }

    /// Kafka refused the record, did not take it in time, or takes none of its topic at the moment.
    /// - Returns: what is to be produced again; nil where a shard waits to be fanned out instead.
    mutating func refused(_ ticket: UInt64) -> TicketTable.Ticket? {
        tickets.noteRefusal(of: ticket)
        guard let open = tickets[ticket] else { return nil }
        guard open.record.topic == .events else { return open }
        refusedShards.append(ticket)
        return nil
    }

    /// Produces a refused record again, and its offsets wait. A deferral is dropped instead if a
    /// later one of its key says all that it says.
    mutating func produceAgain(_ ticket: TicketTable.Ticket, _ tracker: inout OffsetTracker) {
        if let superseded = tickets.closeSuperseded(ticket.record.ticket, &tracker) {
            for claim in superseded.claims { tracker.release(claim) }
        } else {
            records.append(ticket.record)
        }
    }

    /// Takes the oldest shard that Kafka did not take. Its claim passes to the caller.
    mutating func popRefusedShard() -> TicketTable.Ticket? {
        while firstRefused < refusedShards.count {
            firstRefused += 1
            if let shard = tickets.close(refusedShards[firstRefused - 1]) { return shard }
        }
        refusedShards.removeAll(keepingCapacity: true)
        firstRefused = 0
        return nil
    }
}

extension Outbox {
    /// Every claim that a record or letter has; for tests and simulation.
    func forEachClaim(_ body: (OffsetClaim) -> Void) {
        merged.forEachClaim(body)
        letters.forEachClaim(body)
        tickets.forEachClaim(body)
    }

    func checkInvariants() {
        tickets.checkInvariants()
        letters.checkInvariants()
        merged.checkInvariants()
        repeated.checkInvariants()
        for ticket in refusedShards[firstRefused...] {
            precondition(
                tickets[ticket].map { $0.record.topic == .events } ?? true,
                "a refused ticket that is open is of a shard")
        }
    }
}

/// What needs the routing, the settings or the counters beside the outbox.
extension PipelineState {
    /// Writes the record of a suppression. The claims pass to it.
    mutating func write(
        _ suppression: Suppression, route: RouteID, token: [UInt8], claims: [OffsetClaim]
    ) {
        counters.suppressionsWritten += 1
        let route = (id: route, route: routing[route])
        let key = token.withUnsafeBufferPointer { RecordKey.token(route: route.route, token: $0) }
        var draft = RecordDraft(
            .suppressions, key: key, value: SuppressionEncoder.value(suppression), claims: claims)
        draft.suppression = TicketTable.IssuedSuppression(
            route: route.id, token: token, registeredAt: suppression.registeredAt)
        outbox.write(draft)
    }

    /// Whether one more suppression may wait to be acknowledged.
    func hasRoomForSuppressions() -> Bool {
        outbox.tickets.usage(of: .suppressions).count < settings.sizes.unacknowledgedMax
    }

    /// Whether an event may be split into `count` shards now.
    func hasRoomForShards(_ count: Int) -> Bool {
        let usage = outbox.tickets.usage(of: .events)
        return outbox.shardBreaker != .open
            && usage.count + count <= settings.sizes.unacknowledgedMax
            && usage.bytes <= settings.sizes.shardBytesMax
    }

    /// Kafka will never take the record as it is. A dead letter is produced once more with nothing
    /// but its reason and its source; if that is too large, or it is a suppression, the record is
    /// given up, counted, and its offsets are released: it must not block a partition.
    /// - Returns: a deferral that was given up; its claims pass to the caller.
    mutating func tooLarge(_ ticket: UInt64) -> TicketTable.Ticket? {
        let topic = outbox.tickets[ticket]?.record.topic
        if topic == .events {
            outbox.refusedShards.append(ticket)
        } else if topic == .deferred {
            let deferral = outbox.tickets.close(ticket)
            if let deferral, !deferral.claims.isEmpty || deferral.announces != nil {
                return deferral
            }
            counters.recordsAbandoned += 1
        } else if let record = outbox.tickets.shrink(ticket) {
            outbox.records.append(record)
        } else {
            counters.recordsAbandoned += 1
            if topic == .suppressions { outbox.suppressionsGivenUp += 1 }
            outbox.acknowledged(ticket, &tracker)
        }
        return nil
    }
}
