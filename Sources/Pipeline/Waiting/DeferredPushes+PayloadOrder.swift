// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Deferral
internal import Delivery
internal import Intake
internal import Planning
internal import PushModel
internal import RecordFormats

/// Keeps the order of payloads with one collapse ID: the newest is sent last, even if an older one
/// waits in `deferred`. The worker that gets a payload accepted ends the older one of its key: it
/// ends the row if it owns it, or writes a tombstone for the owner if it has deferred the older
/// payload.
extension DeferredPushes {
    /// Another worker got a payload accepted that was read at `readAt`: so says the tombstone just
    /// read, whose key this is. An older payload may be a push here by now; it is not tried again.
    mutating func acceptedElsewhere(
        readAt: WallTime, _ state: inout PipelineState, now: Now
    ) {
        let (route, key) = (tokenKey.route, tokenKey.coalescingKey)
        guard key != 0 else { return }
        let (known, hash) = tokenKey.token.withUnsafeBytes { token in
            (state.audience.token(route, token), state.payloadOrder.hash(route, token, key))
        }
        guard let known, state.existingPush(for: known, key: key) != nil else { return }
        _ = state.payloadOrder.accepted(
            hash, age: .elsewhere(readAt, knownSince: state.sequence),
            keptUntil: now.monotonic + state.settings.live.events.payloadTTL, now: now.monotonic)
    }

    /// A payload was accepted: older ones of its key that wait in `deferred` end.
    /// - Parameter isFanningOut: whether an event with a payload is being fanned out, so that
    ///   an older payload may still come.
    @inline(never)
    mutating func payloadAccepted(
        _ slot: UInt32, isFanningOut: Bool, _ state: inout PipelineState,
        now: Now
    ) {
        // Whether an older payload may still come to a token whose newer one has been accepted.
        let mayBeOvertaken = assignments.isReplaying || isFanningOut || !forgotten.isEmpty
        guard mayBeOvertaken || !state.payloadOrder.isEmpty || table.count > 0 else { return }
        let (route, key) = (state.pushes.route(of: slot), state.pushes.coalescingKey(of: slot))
        let content = state.pushes[slot].content
        let age = state.pushes.age(of: content)
        // The token as it was sent: the audience may have forgotten it.
        let token = UnsafeRawBufferPointer(state.slab.token(slot))
        // If the older payload cannot be ended now, it must be recognised as superseded when its
        // turn comes.
        let hasRoom = hasRoomForTombstones(state)
        let isKept =
            (mayBeOvertaken || !hasRoom) && state.pushes.bodies.isReplaceable(content.body)
        let hash = state.payloadOrder.hash(route, token, key)
        let endsOwn = state.payloadOrder.accepted(
            hash, age: age,
            keptUntil: isKept ? now.monotonic + state.settings.live.events.payloadTTL : nil,
            now: now.monotonic)
        var isOwned = false
        var superseded: [UInt32] = []
        table.forEachRow(route: route, token: token, coalescingKey: key) { row in
            isOwned = true
            if hasRoom, !table.isTaken(row),
                state.payloadOrder.isOlder(table.payloadAge(of: row), than: age, hash)
            {
                superseded.append(row)
            }
        }
        for row in superseded { endSuperseded(row, &state) }
        endRows(&state)
        guard endsOwn, !isOwned else { return }
        // The older payload's type is not known here; it is nearly always this one's.
        state.endUnqueued(.superseded, route, content.type)
        ends.append(
            PayloadEnds.End(
                key: token.withMemoryRebound(to: UInt8.self) { token in
                    RecordKey.deferred(
                        route: state.routing[route], token: token, coalescingKey: key)
                },
                acceptedReadAt: age.readAt))
        writePayloadEnds(&state)
    }

    /// Writes the tombstones that wait, as far as there is room for them.
    mutating func writePayloadEnds(_ state: inout PipelineState) {
        while hasRoomForTombstones(state), let end = ends.popFirst() {
            var draft = RecordDraft(.deferred, key: end.key, value: nil)
            draft.endedPayloadAt = end.acceptedReadAt
            state.outbox.write(draft)
        }
    }

    /// Called when a record of the row was read, or when its turn to be sent has come.
    /// - Returns: whether a newer payload was accepted, so that the row ends here.
    @discardableResult
    mutating func endIfSuperseded(
        _ row: UInt32, _ state: inout PipelineState
    ) -> Bool {
        guard !state.payloadOrder.isEmpty, hasRoomForTombstones(state), !table.isTaken(row),
            table.coalescingKey(of: row) != 0
        else { return false }
        let hash = state.payloadOrder.hash(
            table.route(of: row), table.tokenBytes(of: row), table.coalescingKey(of: row))
        guard state.payloadOrder.isSuperseded(hash, age: table.payloadAge(of: row)) else {
            return false
        }
        endSuperseded(row, &state)
        endRows(&state)
        return true
    }

    private mutating func endSuperseded(_ row: UInt32, _ state: inout PipelineState) {
        state.endUnqueued(.superseded, table.route(of: row), table.content(of: row).push.type)
        table.drop(row, &state.tracker)
    }
}
