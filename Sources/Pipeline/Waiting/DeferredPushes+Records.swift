// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Deferral
internal import Intake
internal import Ledger
internal import Planning
internal import PushModel
internal import RecordFormats

/// Writes what the owner of a partition writes to `deferred`, and decides what becomes of a record
/// that Kafka does not take.
extension DeferredPushes {
    mutating func rewrite(
        _ row: UInt32, _ state: inout PipelineState, now: Now
    ) {
        state.counters.deferredRewritten += 1
        write(row, &state, now: now)
    }

    /// Writes what the row says now. A row whose push is about to be sent goes on when Kafka has the
    /// last record that says so.
    mutating func write(
        _ row: UInt32, _ state: inout PipelineState, now: Now
    ) {
        let content = table.content(of: row)
        var push = state.record(
            content, route: table.route(of: row), payload: table.bodies.payload(content.push.body),
            now: now)
        let sentAt = table.lastSent(of: row)
        if sentAt.nanoseconds > .min { push.lastSentAt = now.wall(at: sentAt) }
        if content.isSent { push.owesNothing() }
        var draft = draft(of: row, value: DeferredEncoder.value(push), state)
        if table.isAnnouncing(row) { draft.announces = table.claim(of: row) }
        let ticket = state.outbox.write(draft)
        table.rewritten(row, ticket: ticket)
    }

    private func draft(
        of row: UInt32, value: [UInt8]?, _ state: borrowing PipelineState
    ) -> RecordDraft {
        var draft = RecordDraft(.deferred, key: key(of: row, state), value: value)
        draft.partition = table.partition(of: row)
        draft.endedOffset = table.offset(of: row)
        return draft
    }

    private func key(of row: UInt32, _ state: borrowing PipelineState) -> [UInt8] {
        table.tokenBytes(of: row).withMemoryRebound(to: UInt8.self) { token in
            RecordKey.deferred(
                route: state.routing[table.route(of: row)], token: token,
                coalescingKey: table.coalescingKey(of: row))
        }
    }

    /// Writes tombstones for the rows whose last claim was given back.
    mutating func endRows(_ state: inout PipelineState) {
        guard !state.tracker.endedRows.isEmpty else { return }
        for claim in state.tracker.takeEndedRows() {
            guard let row = table.row(of: claim) else { continue }
            if !table.isRevoked(row) {
                state.counters.deferredEnded += 1
                state.outbox.write(draft(of: row, value: nil, state))
                noteEnd(of: row)
            }
            table.remove(row)
        }
    }

    private mutating func noteEnd(of row: UInt32) {
        let hash = table.hash(
            table.route(of: row), table.tokenBytes(of: row), table.coalescingKey(of: row))
        guard let id = assignments.assignment(ofPartition: table.partition(of: row)) else { return }
        unreadRewrites.ended(hash, of: id, upTo: table.offset(of: row))
    }

    /// Reads a record of `deferred` that this worker has written.
    mutating func decode(_ record: OutgoingRecord) -> DeferredPush {
        let push = record.key.withUnsafeBytes { key in
            record.value!.withUnsafeBytes { value in
                try? decoder.deferred(key: key, value: value, into: &tokenKey)
            }
        }
        guard let push else {
            preconditionFailure("a deferred push that this worker has written can be read")
        }
        return push
    }

    /// Whether a record that Kafka has refused is no longer true, so that it must not become the
    /// last one of its key. Either a newer payload was accepted, whose tombstone may be in Kafka
    /// already. Or it is a rewrite of a row that has ended since, has changed, or is another
    /// worker's: behind the row's tombstone the record would cause the push to be sent once more.
    /// Or a later rewrite of the row says more than it.
    mutating func isObsolete(
        _ ticket: TicketTable.Ticket, _ state: borrowing PipelineState
    ) -> Bool {
        if let place = ticket.order, state.payloadOrder.isSuperseded(place.hash, age: place.age) {
            return true
        }
        guard ticket.record.value != nil, let offset = ticket.record.endedOffset else {
            return false
        }
        _ = decode(ticket.record)
        let id = ticket.record.partition.flatMap { assignments.assignment(ofPartition: $0) }
        guard let row = id.flatMap({ rowOfKey($0) }) else { return true }
        return table.offset(of: row) != offset || table.isRevoked(row)
            || !table.isLatest(ticket.record.ticket, of: row)
    }

    /// The record is too large to wait in Kafka, and the push must not hold its offsets for ever:
    /// it becomes a dead letter.
    mutating func tooLarge(
        _ ticket: TicketTable.Ticket, _ state: inout PipelineState
    ) {
        let push = decode(ticket.record)
        let route = state.routing[tokenKey.route]
        var letter = DeadLetter(
            reason: DeadLetter.OwnReason.deferralTooLarge.rawValue,
            source: push.source ?? state.source(nil),
            firstAt: push.firstAt ?? push.notBefore, lastAt: push.notBefore,
            attempts: push.attempts, subject: push.subject,
            targets: [
                DeadLetter.Target(
                    token: tokenKey.token, environment: route.environment,
                    apnsTopic: route.apnsTopic)
            ])
        letter.app = state.routing.name(of: route.app)
        if let position = push.source.flatMap({ state.position($0) }) {
            letter.correlation = state.correlations.correlation(of: position)
        }
        letter.collapseID = push.collapseID
        letter.payloadSource = push.payloadSource
        letter.payloadSubject = push.payloadSubject
        letter.installation = push.installation
        letter.original = push.payload.map { DeadLetter.Original(key: nil, value: $0.body) }
        letter.leaveOutOriginal()
        // A push without a payload is of its class's type; there would be no such push otherwise.
        let type = push.payload?.type ?? route.tokenClass.changeType!
        state.endUnqueued(.rejected, tokenKey.route, type, .deferralTooLarge)
        state.writeAtOnce(letter, claims: ticket.claims)
    }
}
