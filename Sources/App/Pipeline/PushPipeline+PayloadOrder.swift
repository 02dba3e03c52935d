// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Delivery
internal import Intake
internal import Ledger
internal import Planning
internal import PushModel
internal import RecordFormats

/// Of payloads with one collapse ID the newest is the last one sent, also where an older one waits in
/// `deferred`. Whoever gets a payload accepted ends the older one of its key: the owner of the row
/// ends that, and the worker that has deferred it writes a null for its owner.
extension PushPipeline {
    /// Whether an older payload may still come to a token whose newer one has been accepted.
    private var mayBeOvertaken: Bool {
        replayed.count < deferredPartitions.count || fanOuts.payloadWalks > 0
    }

    /// Whether this push would bring a payload that is older than what its token has.
    @inline(never)
    func isOutdated(_ push: PushRequest) -> Bool {
        let token = audience.tokenBytes(of: TokenID(rawValue: push.token))
        let hash = deferred.hash(push.lane, token, push.coalescingKey)
        return payloadOrder.isOutdated(
            hash, age: pushes.bodies.age(of: push.body, sequence: push.readSequence))
    }

    /// Whether what a waiting push says is older than a payload of its key that was accepted since.
    @inline(never)
    func isSuperseded(_ slot: UInt32) -> Bool {
        let content = pushes[slot].content
        let token = audience.tokenBytes(of: TokenID(rawValue: pushes.token(of: slot)))
        let hash = deferred.hash(pushes.lane(of: slot), token, pushes.coalescingKey(of: slot))
        let age = pushes.bodies.age(of: content.body, sequence: content.readSequence)
        // One that comes from a row was not read here.
        return content.readSequence == 0
            ? payloadOrder.isSuperseded(hash, age: age) : payloadOrder.isOutdated(hash, age: age)
    }

    /// Another worker got a payload accepted that was read then, of the key of a null just read. An
    /// older one may be a push here by now: it is not tried again.
    mutating func acceptedElsewhere(readAt: WallTime, now: Now) {
        let (lane, key) = (tokenKey.lane, tokenKey.coalescingKey)
        guard key != 0 else { return }
        let (known, hash) = tokenKey.token.withUnsafeBytes { token in
            (audience.token(lane, token), deferred.hash(lane, token, key))
        }
        guard let known, existingPush(for: known, key: key) != nil else { return }
        _ = payloadOrder.accepted(
            hash, age: .elsewhere(readAt, knownSince: sequence),
            keptUntil: now.monotonic + settings.events.payloadTTL,
            now: now.monotonic)
    }

    /// A payload was accepted: what is older and waits in `deferred` ends.
    @inline(never)
    mutating func payloadAccepted(_ slot: UInt32, now: Now) {
        guard mayBeOvertaken || !payloadOrder.isEmpty || deferred.count > 0 else { return }
        let (lane, key) = (pushes.lane(of: slot), pushes.coalescingKey(of: slot))
        let content = pushes[slot].content
        let age = pushes.bodies.age(of: content.body, sequence: content.readSequence)
        // As it was sent: the audience may have forgotten the token.
        let token = UnsafeRawBufferPointer(slab.token(slot))
        // What cannot be ended now must be known as outdated when its turn comes.
        let hasRoom = hasRoomForTombstones
        let isKept =
            (mayBeOvertaken || !hasRoom) && pushes.bodies.isReplaceable(content.body)
        let hash = deferred.hash(lane, token, key)
        let endsOwn = payloadOrder.accepted(
            hash, age: age,
            keptUntil: isKept ? now.monotonic + settings.events.payloadTTL : nil,
            now: now.monotonic)
        var isOwned = false
        deferred.forEachRow(lane: lane, token: token, coalescingKey: key) { row in
            isOwned = true
            if hasRoom, !deferred.isTaken(row),
                payloadOrder.isOlder(deferred.payloadAge(of: row), than: age, hash)
            {
                supersededRows.append(row)
            }
        }
        endSupersededRows()
        guard endsOwn, !isOwned else { return }
        counters.deferredSuperseded += 1
        payloadEnds.append(
            PayloadEnds.End(
                key: token.withMemoryRebound(to: UInt8.self) { token in
                    RecordKey.deferred(lane: routing[lane], token: token, coalescingKey: key)
                },
                acceptedReadAt: age.readAt))
        writePayloadEnds()
    }

    /// Writes the tombstones that wait, as far as there is room for them.
    mutating func writePayloadEnds() {
        while hasRoomForTombstones, let end = payloadEnds.popFirst() {
            records.append(
                tickets.issueDeferral(
                    key: end.key, value: nil, endedPayloadAt: end.acceptedReadAt, holds: []))
        }
    }

    /// The row says what a record does that was just read, or its turn to be sent has come.
    /// - Returns: whether a newer payload was accepted, so that the row ends here.
    @discardableResult
    mutating func endIfSuperseded(_ row: UInt32) -> Bool {
        guard !payloadOrder.isEmpty, hasRoomForTombstones, !deferred.isTaken(row),
            deferred.coalescingKey(of: row) != 0
        else { return false }
        let hash = deferred.hash(
            deferred.lane(of: row), deferred.tokenBytes(of: row), deferred.coalescingKey(of: row))
        guard payloadOrder.isSuperseded(hash, age: deferred.payloadAge(of: row))
        else { return false }
        supersededRows.append(row)
        endSupersededRows()
        return true
    }

    private mutating func endSupersededRows() {
        for row in supersededRows {
            counters.deferredSuperseded += 1
            let hold = deferred.hold(of: row)
            deferred.take(row)
            ledger.release(hold)
        }
        supersededRows.removeAll(keepingCapacity: true)
        endRows()
    }
}
