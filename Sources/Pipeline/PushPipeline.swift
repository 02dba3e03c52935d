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
package import SchemaCodecs

/// The journey of a push, from record to committable offset: facts in, actions out. The planner
/// thread owns it. It performs nothing, reads no clock, and always does the same for the same
/// facts, so a simulation can drive it in virtual time.
///
/// Facts come in by the methods named for them (`assigned`, `eventRecord`, `outcome`, …). What is
/// to be done comes out of `handOver` (pushes to hand to delivery), `takeRecords` (records to
/// produce) and `committableOffset` (offsets to commit). Each fact is routed to the part that
/// decides. A part owns its state; the pushes themselves are in the `PipelineState`, which all parts
/// work on.
package struct PushPipeline: ~Copyable {
    var state: PipelineState
    var fanOut: FanOut
    var late: LateRegistrations
    var deferral: DeferredPushes
    var handover: Handover
    /// How the lines of each pool share the room for pushes.
    var shares: [PatientShare]
    var index: AudienceFeed
    /// What operators have paused, dropped and limited.
    package private(set) var restrictions: Restrictions
    private let byAddress = PassedByAddress()

    /// - Parameter schemas: tells what is known of a schema; needed where a binding has some.
    package init(
        routing: RoutingTable, bindings: [TopicBinding], settings: PipelineSettings, slab: PushSlab,
        schemas: SchemaLookup? = nil
    ) throws(TopicBindingError) {
        settings.check()
        state = PipelineState(routing: routing, settings: settings, slab: slab)
        let decoder = try EventDecoder(
            bindings: bindings, routing: routing, settings: settings.live.events, schemas: schemas)
        fanOut = FanOut(bindings: bindings, decoder: decoder, settings: settings)
        late = LateRegistrations(settings: settings)
        deferral = DeferredPushes(routing: routing, settings: settings)
        // Another seed than that of the breakers, or both would draw the same delays.
        handover = Handover(seed: settings.seed &+ 1)
        index = AudienceFeed(routing: routing)
        shares = routing.pools.map { _ in PatientShare() }
        restrictions = Restrictions(
            topics: bindings.count, configured: settings.live.restrictions)
    }

    /// Adopts the settings that may change while pushes are under way. A push that was made before keeps
    /// its expiry and its headers.
    ///
    /// - Parameter bindings: of the same topics as before, in the same order.
    package mutating func adopt(
        _ live: PipelineSettings.Live, bindings: [TopicBinding]
    ) throws(TopicBindingError) {
        fanOut.decoder = try EventDecoder(
            bindings: bindings, routing: state.routing, settings: live.events,
            schemas: fanOut.decoder.lookup)
        let former = state.settings.live
        state.settings.live = live
        state.settings.check()
        if live.deadLetterRepeatAfter != former.deadLetterRepeatAfter {
            // Periods are in the order of their ends only as long as all are equally long.
            state.tellRepeated(now: .distantFuture, all: true)
        }
        if live.budgets != former.budgets { state.budgets.adopt(live.budgets) }
        restrictions.adopt(live.restrictions)
        // Nothing is withheld then, and nobody looks whether an event was released.
        if live.fanOutMax == .max { fanOut.withheld = [] }
        if live.minimumGaps != former.minimumGaps {
            state.tokenGaps.adopt(live.minimumGaps, state.routing)
            let gaps = state.tokenGaps.longGaps
            deferral.table.gapsChanged { gaps[Int($0.rawValue)] }
        }
        state.breakers.adopt(
            backoff: live.breakerBackoff, tokenBackoff: live.retryBackoff,
            limits: live.tokenGuard)
    }

    // MARK: Partitions

    /// The assignments of events topics that are ours: those whose offsets are committed. Must
    /// equal `WorkerLifecycle.open`.
    var eventAssignments: [AssignmentID] { state.tracker.open }
    /// The assignments of `deferred` that are ours.
    var deferredAssignments: [AssignmentID] { deferral.assignments.open }

    /// A partition is ours from this offset on.
    ///
    /// - Parameter note: of the owner before, if it belongs to this offset and to this log.
    package mutating func assigned(
        _ id: AssignmentID, topic: UInt16, partition: Int32, startOffset: Int64,
        note: CommitNote? = nil
    ) {
        state.tracker.open(id, topic: topic, partition: partition, startOffset: startOffset)
        if let note { late.inherited.assigned(id, note, startOffset: startOffset) }
    }

    /// This partition of `deferred` is ours. None of its pushes is sent before `deferredReplayed`.
    package mutating func deferredAssigned(_ id: AssignmentID, partition: Int32) {
        if deferral.table.count == 0 { state.witness.beginAnew() }
        deferral.assigned(id, partition: partition, &state.tracker)
    }

    /// The partition has been read to its end. Without effect for one that is not ours, or none of
    /// `deferred`.
    package mutating func deferredReplayed(_ id: AssignmentID, now: Now) {
        guard deferral.assignments.isOpen(id) else { return }
        deferral.replayed(id, &state, now: now)
    }

    /// Partitions, of whichever topics, are no longer ours. Pushes for their events are still sent,
    /// but hold none of their offsets any more; a fan-out that is spread over time ends. Has no effect
    /// for a partition that was given up before.
    package mutating func unassigned(_ ids: [AssignmentID]) {
        let ofDeferred = ids.filter { deferral.assignments.isOpen($0) }
        if !ofDeferred.isEmpty { deferral.unassigned(ofDeferred, &state) }
        for id in ids where state.tracker.isOpen(id) {
            fanOut.forgetWithheld(of: state.source(state.tracker.nextPosition(id)))
            state.tracker.close(id)
            late.inherited.unassigned(id)
        }
        fanOut.abandonFanOuts(state)
    }

    /// The offset to commit for this partition: everything below it has ended. Nil where there is
    /// none to commit: the partition is not ours any more, or is of `deferred`.
    package mutating func committableOffset(_ id: AssignmentID, now: Now) -> Int64? {
        isOfEvents(id) ? state.tracker.committableOffset(id, now: now.monotonic) : nil
    }

    /// What to tell the next owner of this partition beside the committable offset; nil where that
    /// says as much.
    package mutating func commitNote(_ id: AssignmentID, now: Now) -> CommitNote? {
        guard let committableOffset = committableOffset(id, now: now) else { return nil }
        var note = CommitNote(
            endedOffset: state.tracker.endedOffset(id), registrations: late.registrations.cursor)
        let nextOffset = state.tracker.nextOffset(id)
        // While a late entry waits for a slot, what it is owed has no claim yet.
        var spread =
            late.isEmpty
            ? fanOut.underWay.progress.events(of: id, state.tracker).map {
                CommitNote.SpreadEvent(offset: $0.offset, progress: $0.progress)
            } : []
        // What the owner before has said is true for ever, and this worker may not have come as far.
        if let inherited = late.inherited.note(of: id) {
            let unread = inherited.spread.filter { $0.offset >= nextOffset }
            let isBehind = inherited.endedOffset > note.endedOffset
            if isBehind { note.endedOffset = inherited.endedOffset }
            spread.removeAll { $0.offset < note.endedOffset }
            if isBehind && spread.isEmpty {
                note.registrations = inherited.registrations
            } else if isBehind || !unread.isEmpty {
                note.registrations = CommitNote.common(
                    note.registrations, inherited.registrations)
            }
            spread += unread
        }
        note.spread = spread
        return note.endedOffset > committableOffset || !spread.isEmpty ? note : nil
    }

    /// Whether nothing of this partition is left to be done before another worker has it: everything
    /// that was read of it has ended, or, of `deferred`, Kafka knows what became of each announced
    /// push.
    package func isDrained(_ id: AssignmentID) -> Bool {
        if deferral.assignments.isOpen(id) { return deferral.isDrained(id, state) }
        return !state.tracker.isOpen(id) || state.tracker.isDrained(id)
    }

    private func isOfEvents(_ id: AssignmentID) -> Bool {
        state.tracker.isOpen(id) && !deferral.assignments.isOpen(id)
    }

    // MARK: Records are read

    /// Says that a record with this key is about to be read, so that the processor may fetch what
    /// it will look up. It is a hint that costs a hash and saves waiting for one cache miss after
    /// the other. Everything that was noted is fetched when the first record is read, so note
    /// several.
    package mutating func prefetch(key: UnsafeRawBufferPointer, binding: Int) {
        fanOut.prefetch(key: key, binding: binding, state)
    }

    /// The schema that must be known before the record can be read; nil if there is none. Otherwise
    /// the record must not be passed to `eventRecord` yet, nor any that follows it in its partition.
    package mutating func awaitedSchema(of record: EventRecord) -> AwaitedSchema? {
        fanOut.decoder.awaitedSchema(of: record)
    }

    /// Reads a record of an events topic. Whatever it contains, it is fanned out, counted, or
    /// becomes a dead letter; its offset is held until that has ended.
    ///
    /// - Parameters:
    ///   - header: looks up a header of the record; called only where a binding needs it.
    ///   - headers: all of them; called only for the dead letter of a record that cannot be read.
    package mutating func eventRecord(
        _ record: EventRecord, of id: AssignmentID, now: Now, header: EventRecord.HeaderLookup,
        headers: () -> [(name: String, value: [UInt8])] = { [] }
    ) {
        if !fanOut.prefetched.isEmpty { fanOut.prefetchSubjects(&state) }
        state.countRead()
        let position = state.tracker.received(id, offset: record.offset, now: now.monotonic)
        let read = RecordRead(id: id, position: position, now: now)
        do throws(UnreadableRecord) {
            try fanOut.read(record, read, header: header, &state, &late)
        } catch {
            if error.isLeftOut { return fanOut.tally.ended(.filtered, topic: record.binding) }
            let event = fanOut.unreadable(record, error, header: header, headers: headers)
            fanOut.becomeLetter(event, read, &state)
        }
    }

    // MARK: Canaries

    /// The operator's own events, for the status.
    package var canary: Canary { state.canary }

    /// When `nextCanary` wants to be asked again.
    package var canaryLooksAt: MonotonicTime { state.canary.looksAt }

    /// The next canary, if it is due: see `Canary.next`.
    package mutating func nextCanary(partitions: [Int32]?, now: Now) -> Canary.Record? {
        state.canary.next(partitions: partitions, now: now)
    }

    /// Kafka has acknowledged a canary; or has not, for this reason.
    package mutating func canaryAcknowledged(_ number: UInt64, refusal: String?) {
        state.canary.acknowledged(number, refusal: refusal)
    }

    /// The operator asked for this record not to be read (`kafka.skip`).
    package mutating func skippedRecord(of id: AssignmentID, offset: Int64, now: Now) {
        let position = state.tracker.received(id, offset: offset, now: now.monotonic)
        fanOut.tally.ended(.skipped, topic: Int(position.topic))
    }

    /// A record of the registrations topic was read. Offsets of a partition grow.
    /// - Returns: why it was skipped, if it was.
    package mutating func registrationRecord(
        _ record: TableRecord, now: Now
    ) -> UnreadableRecord? {
        let problem = index.registration(
            key: record.key, value: record.value, timestamp: record.timestamp, &state)
        state.witness.read(record.timestamp, now: now)
        late.registrationRead(
            problem == nil ? index.changes.registration : nil, partition: record.partition,
            offset: record.offset)
        if let problem { return problem.isLeftOut ? nil : problem }
        if !index.changes.isEmpty {
            late.registrationApplied(index.changes, &fanOut, &state, now: now)
        }
        // Fan-outs and late requests name kinds by number; what is remembered of events, by name.
        if state.audience.hasUnusedKinds, fanOut.underWay.isEmpty, late.isEmpty {
            state.audience.reclaimKinds()
        }
        return nil
    }

    /// A record of the suppressions topic was read.
    /// - Returns: why it was skipped, if it was.
    package mutating func suppressionRecord(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?, timestamp: WallTime
    ) -> UnreadableRecord? {
        index.suppression(key: key, value: value, timestamp: timestamp, &state)
    }

    /// A record of the restrictions topic was read.
    /// - Returns: why it was skipped, if it was.
    package mutating func restrictionRecord(
        key: UnsafeRawBufferPointer?, value: UnsafeRawBufferPointer?
    ) -> UnreadableRecord? {
        do throws(UnreadableRecord) {
            try restrictions.read(key: key, value: value)
        } catch {
            if error.isLeftOut { return nil }
            state.setAside.add(.restrictions, error.code)
            return error
        }
        return nil
    }

    /// The last events that were withheld because of their many tokens and have not been released,
    /// the newest last.
    package var withheldEvents: [WithheldEvent] { fanOut.withheld }

    /// This worker's share of what limits allow the fleet, from 0 to 1.
    package mutating func adopt(shareOfLimits share: Double) { restrictions.share = share }

    /// `deferred` has so many partitions. Until that is known they have one share of its room.
    package mutating func adopt(deferredPartitions partitions: Int) {
        state.outbox.tickets.shares.adopt(partitions: partitions)
    }

    /// A record of `deferred` was read.
    /// - Returns: why it was skipped, if it was.
    package mutating func deferredRecord(
        _ record: DeferredRecord, of id: AssignmentID, now: Now
    ) -> UnreadableRecord? {
        do throws(UnreadableRecord) {
            try deferral.read(record, of: id, &state, now: now)
        } catch {
            if error.isLeftOut { return nil }
            state.setAside.add(.deferred, error.code)
            return error
        }
        state.counters.deferredRead += 1
        return nil
    }

    /// The partition of `deferred` that is to be read once more from an offset on, beside the group;
    /// nil while none is. Another number means another reading, and that the one before is over.
    package var deferredReading: DeferredReading? { deferral.reading?.reread }

    /// A record of the partition of `deferredReading`. One that cannot be read was told of when it was
    /// read for the first time.
    package mutating func deferredReadAgain(_ record: DeferredRecord, now: Now) {
        try? deferral.readAgain(record, &state, now: now)
    }

    /// The partition of `deferredReading` has no record between the last one and this offset.
    package mutating func deferredReadAgain(upTo offset: Int64, now: Now) {
        deferral.readAgain(upTo: offset, &state, now: now)
    }

    // MARK: Pushes go out

    /// Moves the fan-outs that are under way by up to `steps` tokens, or until there is no room.
    /// - Returns: the steps made; fewer than `steps` means that nothing can move now.
    package mutating func advanceFanOuts(steps: Int, now: Now) -> Int {
        fanOut.advance(steps: steps, now: now, &state)
    }

    /// What became of a push that was handed over.
    /// - Returns: the pool that carried it.
    @discardableResult
    package mutating func outcome(_ outcome: PushOutcome, now: Now) -> PoolID {
        handover.outcomeArrived(
            outcome, isFanningOut: fanOut.underWay.payloadFanOuts > 0, &state, &deferral, now: now)
    }

    /// The pool signs with another key. If the old key had been refused, a probe is sent at once.
    package mutating func keyChanged(of pool: PoolID, now: Now) {
        state.breakers.keyChanged(of: pool, now: now.monotonic)
    }

    // MARK: Records are produced

    /// The records to be produced now, oldest first.
    package mutating func takeRecords() -> [OutgoingRecord] { state.outbox.takeRecords() }

    /// Kafka has the record: what waited for it is released.
    package mutating func acknowledged(_ ticket: UInt64) {
        let announced = state.outbox.acknowledged(ticket, &state.tracker)
        if let announced { deferral.announced(announced, ticket: ticket) }
    }

    /// Kafka refused the record, did not take it in time, or takes none of its topic at the moment.
    /// It is produced again, and its offsets wait. But a shard is fanned out here, and a
    /// suppression or a record of `deferred` that is no longer true is given up: it must not become
    /// the last record of its key.
    package mutating func refused(_ ticket: UInt64) {
        state.counters.recordsRefused += 1
        guard let refused = state.outbox.refused(ticket) else { return }
        if refused.suppression.map({ !state.isLatest($0) }) ?? deferral.isObsolete(refused, state) {
            let withdrawn = state.outbox.acknowledged(ticket, &state.tracker)
            if let withdrawn { deferral.notAnnounced(withdrawn, ticket: ticket) }
        } else {
            state.outbox.produceAgain(refused, &state.tracker)
        }
    }

    /// Kafka will never take the record as it is. A dead letter is produced once more with nothing
    /// but its reason and its source; if that is too large, or it is a suppression, the record is
    /// given up.
    package mutating func tooLarge(_ ticket: UInt64) {
        state.counters.recordsRefused += 1
        guard let deferred = state.tooLarge(ticket) else { return }
        if let announced = deferred.announces {
            // The record that it is made of was not too large, so this one hardly is.
            state.counters.recordsAbandoned += 1
            return deferral.announced(announced, ticket: ticket)
        }
        deferral.tooLarge(deferred, &state)
    }

    /// Writes the letters whose time has come; all of them when the worker is about to stop.
    package mutating func flushDeadLetters(now: Now, all: Bool) {
        state.flushLetters(now: now, all: all)
    }

    // MARK: Time

    /// Does what is due: pushes whose rest is over, dead letters whose time has come, pools that
    /// have gone silent. Called once a turn.
    package mutating func advance(now: Now) {
        handover.beginTurn()
        state.witness.look(now: now)
        restrictions.advance(&state, &fanOut, now: now)
        state.breakers.earnQuotas(now: now.monotonic)
        state.pushes.wake(now: now.monotonic)
        state.breakers.lookForSilence(now: now.monotonic)
        state.breakers.sweep(now: now.monotonic)
        late.forget(&state, now: now)
        state.payloadOrder.forget(now: now.monotonic)
        state.outbox.tickets.shares.look(now: now.monotonic)
        late.sendOwed(&fanOut, &state, now: now)
        fanOut.fanOutRefusedShards(&state, now: now)
        state.watchLetters(now: now)
        state.flushLetters(now: now, all: false)
        deferral.deferWhatWaits(&state, now: now)
        deferral.sendDue(&state, now: now)
        if state.traces.isFollowing {
            state.traces.sweep(now: now.monotonic, state.tracker, fanOut.underWay)
        }
    }

    /// When `advance` or `handOver` next has something to do without a further fact. A breaker
    /// whose time has come is left out: it waits for delivery to have room, which is a fact.
    package func nextDue(now: Now) -> MonotonicTime {
        if handover.isCutShort { return now.monotonic }
        if state.outbox.hasRefusedShards, !fanOut.underWay.isFull { return now.monotonic }
        var due = min(
            min(state.pushes.nextWake, state.outbox.letters.nextDue, state.outbox.repeated.nextDue),
            min(
                deferral.table.nextDue, state.breakers.nextDue(now: now.monotonic),
                fanOut.nextSpread(state)))
        due = deferral.nextReading(now: now.monotonic).map { min(due, $0) } ?? due
        // What waits for a limit waits in a queue, or as a row whose time has come.
        guard state.pushes.queuedCount > 0 || deferral.table.readyCount > 0 else { return due }
        return min(due, state.breakers.nextQuota)
    }
}
