// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Deferral
package import Delivery
internal import FlatMemory
package import Intake
internal import Ledger
internal import Planning
package import PushModel
internal import RecordFormats

/// The journey of a push, from record to storable offset: facts in, actions out. Owned by the one
/// planner thread; it performs nothing, reads no clock, and does the same again for the same facts,
/// so a simulation can drive it with virtual time.
///
/// Facts come in by the methods named for them (`assigned`, `eventRecord`, `outcome`, …). What is to
/// be done comes out of `takeReady` (pushes to hand to delivery), `takeRecords` (records to produce) and
/// `committableOffset` (offsets to store). Each fact is routed to the part that decides: what a part knows is
/// its own, and the pushes themselves are in the book that all of them work on.
package struct PushPipeline: ~Copyable {
    var book: PushBook
    var breakers: CircuitBreakers
    var fanOut: FanOut
    var late: LateRegistrations
    var outbox: Outbox
    var deferral: DeferredPushes
    private var handover: Handover
    private var index: IndexFeed
    private let byAddress = PassedByAddress()

    package init(
        routing: RoutingTable, bindings: [TopicBinding], settings: PipelineSettings, slab: PushSlab
    ) throws(TopicBindingError) {
        settings.check()
        book = PushBook(routing: routing, settings: settings, slab: slab)
        breakers = CircuitBreakers(
            routing: routing, backoff: settings.breakerBackoff,
            tokenBackoff: settings.retryBackoff, limits: settings.tokenGuard, seed: settings.seed)
        let decoder = try EventDecoder(
            bindings: bindings, routing: routing, settings: settings.events)
        fanOut = FanOut(bindings: bindings, decoder: decoder, settings: settings)
        late = LateRegistrations(settings: settings)
        outbox = Outbox(settings: settings)
        deferral = DeferredPushes(routing: routing, settings: settings)
        // Not the stream of the breakers, or both would draw the same delays.
        handover = Handover(seed: settings.seed &+ 1)
        index = IndexFeed(routing: routing)
    }

    /// Takes over what may change while pushes are under way: rules that are asked each time. What
    /// tables, rings and slots were made for stays as it is, whatever `other` says of it. A push that
    /// was made before keeps its life and its headers.
    ///
    /// - Parameter bindings: of the same topics as before, in the same order.
    package mutating func adopt(
        _ other: PipelineSettings, bindings: [TopicBinding]
    ) throws(TopicBindingError) {
        let settings = book.settings.adopting(other)
        settings.check()
        fanOut.decoder = try EventDecoder(
            bindings: bindings, routing: book.routing, settings: settings.events)
        book.settings = settings
        breakers.adopt(
            backoff: settings.breakerBackoff, tokenBackoff: settings.retryBackoff,
            limits: settings.tokenGuard)
    }

    // MARK: Partitions

    /// The assignments of events topics that are ours: those whose offsets are stored. The owner has a
    /// list of its own, which must say the same.
    var eventAssignments: [AssignmentID] { book.tracker.open }
    /// The assignments of `deferred` that are ours.
    var deferredAssignments: [AssignmentID] { deferral.assignments.open }

    /// A partition is ours from this offset on.
    package mutating func assigned(
        _ id: AssignmentID, topic: UInt16, partition: Int32, startOffset: Int64
    ) {
        book.tracker.open(id, topic: topic, partition: partition, startOffset: startOffset)
    }

    /// This partition of `deferred` is ours. None of its pushes is sent before `deferredReplayed`.
    package mutating func deferredAssigned(_ id: AssignmentID, partition: Int32) {
        deferral.assigned(id, partition: partition, &book.tracker)
    }

    /// The partition has been read to its end. Without effect for one that is not ours, or none of
    /// `deferred`.
    package mutating func deferredReplayed(_ id: AssignmentID, now: Now) {
        guard deferral.assignments.isOpen(id) else { return }
        deferral.replayed(id, &book, &outbox, now: now)
    }

    /// A partition, of whichever topic, is no longer ours. What it asked for is still sent; it holds
    /// nothing any more. Without effect for one that was given up before.
    package mutating func unassigned(_ id: AssignmentID) {
        if deferral.assignments.isOpen(id) {
            deferral.unassigned(id, &book, &outbox)
        } else if book.tracker.isOpen(id) {
            book.tracker.close(id)
        }
    }

    /// The offset to store for this partition: everything below it has ended. Nil where there is
    /// none to store: the partition is not ours any more, or is of `deferred`.
    package mutating func committableOffset(_ id: AssignmentID, now: Now) -> Int64? {
        isOfEvents(id) ? book.tracker.committableOffset(id, now: now.monotonic) : nil
    }

    /// Whether everything read from this partition has ended. True where no offset is stored.
    package mutating func isDrained(_ id: AssignmentID, now: Now) -> Bool {
        !isOfEvents(id) || book.tracker.isDrained(id, now: now.monotonic)
    }

    /// Whether no token that registers now is owed anything by this partition's events. True where
    /// no offset is stored.
    package mutating func isPastGrace(_ id: AssignmentID, now: Now) -> Bool {
        !isOfEvents(id) || book.tracker.isPastGrace(id, now: now.monotonic)
    }

    private func isOfEvents(_ id: AssignmentID) -> Bool {
        book.tracker.isOpen(id) && !deferral.assignments.isOpen(id)
    }

    // MARK: Records are read

    /// A record with this key is about to be read: the processor may fetch what it will look up. Only
    /// a hint, which costs a hash and spares the misses of the index one after the other; what is
    /// prefetched is fetched when the first of them is read, so say it of several.
    package mutating func prefetch(key: UnsafeRawBufferPointer, binding: Int) {
        fanOut.prefetch(key: key, binding: binding, book)
    }

    /// A record of an events topic was read. Whatever it holds, it ends: fanned out, counted, or as a
    /// dead letter; its offset is held until then.
    ///
    /// - Parameters:
    ///   - header: looks up a header of the record; called only where a binding needs it.
    ///   - headers: all of them; called only for the dead letter of a record that cannot be read.
    package mutating func eventRecord(
        _ record: EventRecord, of id: AssignmentID, offset: Int64, now: Now,
        header: EventRecord.HeaderLookup,
        headers: () -> [(name: String, value: [UInt8])] = { [] }
    ) {
        fanOut.read(
            record, of: id, offset: offset, now: now, header: header, headers: headers,
            &book, &late, &outbox, deferral)
    }

    /// The operator asked for this record not to be read (`kafka.skip`).
    package mutating func skippedRecord(of id: AssignmentID, offset: Int64, now: Now) {
        book.counters.eventsSkipped += 1
        book.tracker.received(id, offset: offset, now: now.monotonic)
    }

    /// A record of the registrations topic was read.
    /// - Returns: why it was skipped, if it was.
    package mutating func registrationRecord(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, timestamp: WallTime, now: Now
    ) -> UnreadableRecord? {
        let problem = index.registration(key: key, value: value, timestamp: timestamp, &book)
        if problem != nil { return problem }
        if !book.audience.changes.isEmpty {
            late.registrationApplied(&fanOut, &book, deferral, now: now)
        }
        // Walks and late requests name kinds by number; what is remembered of events, by name.
        if book.audience.hasUnusedKinds, fanOut.walks.isEmpty, late.isEmpty {
            book.audience.reclaimKinds()
        }
        return nil
    }

    /// A record of the suppressions topic was read.
    /// - Returns: why it was skipped, if it was.
    package mutating func suppressionRecord(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?
    ) -> UnreadableRecord? {
        index.suppression(key: key, value: value, &book)
    }

    /// A record of `deferred` was read.
    /// - Returns: why it was skipped, if it was.
    package mutating func deferredRecord(
        _ record: DeferredRecord, of id: AssignmentID, now: Now
    ) -> UnreadableRecord? {
        do throws(UnreadableRecord) {
            try deferral.read(record, of: id, &book, &outbox, now: now)
        } catch {
            book.counters.deferredUnreadable += 1
            return error
        }
        book.counters.deferredRead += 1
        return nil
    }

    // MARK: Pushes go out

    /// Moves the events that are under way by up to `steps` tokens, or until there is no room.
    /// - Returns: the steps made; fewer than `steps` means that nothing can move now.
    package mutating func advanceFanOuts(steps: Int, now: Now) -> Int {
        fanOut.advance(steps: steps, now: now, &book, deferral)
    }

    /// Fills `batch` with pushes of one pool that are to be handed to delivery now, at most as many
    /// as fit and the pool's breaker allows. Each is complete in the slab.
    package mutating func takeReady(
        _ pool: PoolID, into batch: UnsafeMutableBufferPointer<PushSlot>, now: Now
    ) -> Int {
        handover.take(pool, into: batch, &book, &breakers, &deferral, &outbox, now: now)
    }

    /// What became of a push that was handed over.
    /// - Returns: the pool that carried it.
    @discardableResult
    package mutating func outcome(_ outcome: PushOutcome, now: Now) -> PoolID {
        handover.landed(
            outcome, areWalking: fanOut.walks.payloadWalks > 0, &book, &breakers, &deferral,
            &outbox, now: now)
    }

    /// The pool signs with another key. Where its key had been refused it is asked again at once.
    package mutating func keyChanged(of pool: PoolID, now: Now) {
        breakers.keyChanged(of: pool, now: now.monotonic)
    }

    // MARK: Records are produced

    /// The records to be produced now, oldest first.
    package mutating func takeRecords() -> [OutgoingRecord] { outbox.takeRecords() }

    /// Kafka has the record: what waited for it is released.
    package mutating func acknowledged(_ ticket: UInt64) {
        outbox.acknowledged(ticket, &book.tracker)
    }

    /// Kafka refused the record, did not take it in time, or takes none of its topic at the moment.
    /// It is produced again, and its offsets wait; but a shard is fanned out here, and what is no
    /// longer true is given up, a suppression or a record of `deferred`: the topic must not end with it.
    package mutating func refused(_ ticket: UInt64) {
        book.counters.recordsRefused += 1
        guard let refused = outbox.refused(ticket) else { return }
        if refused.suppression.map({ !book.isLatest($0) }) ?? deferral.isObsolete(refused) {
            outbox.acknowledged(ticket, &book.tracker)
        } else {
            outbox.produceAgain(refused, &book.tracker)
        }
    }

    /// Kafka will never take the record as it is. A dead letter is produced once more with nothing but
    /// its reason and its source; if that is too large, or it is a suppression, the record is given up.
    package mutating func tooLarge(_ ticket: UInt64) {
        book.counters.recordsRefused += 1
        guard let deferred = outbox.tooLarge(ticket, &book) else { return }
        deferral.tooLarge(deferred, &book, &outbox)
    }

    /// Writes the letters whose time has come; all of them when the worker is about to stop.
    package mutating func flushDeadLetters(now: Now, all: Bool) {
        outbox.flushLetters(&book, now: now, all: all)
    }

    // MARK: Time

    /// Does what is due: pushes whose rest is over, dead letters whose time has come, pools that have
    /// gone silent. Called once a turn.
    package mutating func advance(now: Now) {
        book.pushes.wake(now: now.monotonic)
        breakers.lookForSilence(now: now.monotonic)
        breakers.sweep(now: now.monotonic)
        late.forget(&book, now: now)
        deferral.order.forget(now: now.monotonic)
        late.sendOwed(&fanOut, &book, deferral, now: now)
        fanOut.fanOutRefusedShards(&book, &outbox, now: now)
        outbox.watchLetters(&book, now: now)
        outbox.flushLetters(&book, now: now, all: false)
        deferral.deferWhatWaits(&book, &outbox, breakers, now: now)
        deferral.sendDue(&book, &outbox, breakers, now: now)
    }

    /// When `advance` or `takeReady` has something to do by itself. A breaker whose time has come is
    /// left out: it waits for delivery to have room, which is an event.
    package func nextDue(now: Now) -> MonotonicTime {
        if outbox.hasRefusedShards, !fanOut.walks.isFull { return now.monotonic }
        return min(
            min(book.pushes.nextWake, outbox.letters.nextDue),
            min(deferral.table.nextDue, breakers.nextDue(now: now.monotonic)))
    }
}
