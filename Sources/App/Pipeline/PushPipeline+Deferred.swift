// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Delivery
internal import Ledger
internal import Planning
package import PushModel
internal import RecordFormats

/// The owner's side of `deferred`: whoever is assigned a partition of it replays it as a table, lets
/// its pushes wait, sends them, and writes null.
///
/// Writers know nothing of each other, so a record may be written between the owner's reading and its
/// null. The null therefore names the offset up to which it speaks, and a record behind that which it
/// hides is written again, as is one whose successor promises less. Kafka must keep hidden records
/// until then: `min.compaction.lag.ms`.
extension PushPipeline {
    /// This partition of `deferred` is ours. None of its pushes is sent before `deferredReplayed`.
    package mutating func deferredAssigned(partition: Int32) -> TrackID {
        let track = ledger.openTable()
        deferredPartitions[track] = partition
        return track
    }

    /// The partition has been read to its end.
    package mutating func deferredReplayed(_ track: TrackID, now: Now) {
        replayed.insert(track)
        var hidden: [UInt32] = []
        deferred.activate(track) { hidden.append($0) }
        for row in hidden { rewrite(row, now: now) }
    }

    /// The partition is no longer ours. What it asked for and is under way is still sent.
    package mutating func deferredUnassigned(_ track: TrackID) {
        endRows()
        replayed.remove(track)
        deferredPartitions[track] = nil
        deferred.close(track) { ledger.release($0) }
        ledger.closeTrack(track)
    }

    /// A record of `deferred` was read.
    /// - Parameters:
    ///   - endedOffset: the header of that name.
    ///   - endedPayloadAt: the header of that name.
    /// - Returns: why it was skipped, if it was.
    package mutating func deferredRecord(
        track: TrackID, offset: Int64, key: UnsafeRawBufferPointer?,
        value: UnsafeRawBufferPointer?, endedOffset: Int64?, endedPayloadAt: WallTime? = nil,
        now: Now
    ) -> UnreadableRecord? {
        endRows()
        sequence += 1
        do throws(UnreadableRecord) {
            let push = try verdicts.deferred(key: key, value: value, into: &tokenKey)
            let row = tokenKey.token.withUnsafeBytes { token in
                deferred.row(
                    lane: tokenKey.lane, token: token, coalescingKey: tokenKey.coalescingKey,
                    track: track)
            }
            if let push {
                let word = Word(offset: offset, saidAt: endedOffset.map { min($0, offset) })
                try keep(push, in: row, track: track, word, now: now)
            } else {
                if let endedPayloadAt { acceptedElsewhere(readAt: endedPayloadAt, now: now) }
                if let row {
                    // Newer than what was accepted: still owed, like what a null hides.
                    let isNewer =
                        deferred.coalescingKey(of: row) != 0
                        && endedPayloadAt.map { deferred.payloadReadAt(of: row) > $0 } ?? false
                    ended(
                        row, upTo: isNewer ? -1 : endedOffset ?? offset, track: track, now: now)
                }
            }
        } catch {
            counters.deferredUnreadable += 1
            return error
        }
        counters.deferredRead += 1
        return nil
    }

    /// Where a record stands, and where what it says was first said, if it was written again.
    private struct Word {
        let offset: Int64
        let saidAt: Int64?
    }

    private mutating func keep(
        _ push: DeferredPush, in row: UInt32?, track: TrackID, _ word: Word, now: Now
    ) throws(UnreadableRecord) {
        var content = try content(of: push, now: now)
        if let payload = push.payload {
            content.body = deferred.keep(
                payload.body, collapseID: Array((push.collapseID ?? "").utf8),
                readAt: push.payloadAt ?? WallTime(milliseconds: 0), knownSince: sequence,
                origin: (push.payloadSource ?? push.source).flatMap { position($0) } ?? .unknown)
        }
        let isActive = replayed.contains(track)
        if let row {
            let replacement = deferred.replace(
                row, with: content, offset: word.saidAt ?? word.offset, isActive: isActive)
            if replacement.needsClaim { ledger.retain(deferred.hold(of: row)) }
            if replacement.needsRewrite, isActive { rewrite(row, now: now) }
            endIfSuperseded(row)
        } else {
            let hold = ledger.holdRow(track, offset: word.offset)
            let row = tokenKey.token.withUnsafeBytes { token in
                deferred.insert(
                    content, lane: tokenKey.lane, token: token,
                    coalescingKey: tokenKey.coalescingKey, hold: hold,
                    offset: word.saidAt ?? word.offset, isActive: isActive)
            }
            endIfSuperseded(row)
        }
    }

    private mutating func content(
        of push: DeferredPush, now: Now
    ) throws(UnreadableRecord) -> DeferredContent {
        let lane = routing[tokenKey.lane]
        guard let type = push.payload?.type ?? lane.tokenClass.changeType,
            type.tokenClass == lane.tokenClass
        else {
            throw UnreadableRecord(
                code: "invalidPayload", message: "this class of token is not sent such a push")
        }
        let origin = push.source.flatMap { position($0) } ?? .unknown
        let subject = push.subject.withUnsafeBytes { bytes in
            audience.subject(lane.app, bytes).map { id in
                (id, audience.hash(lane.app, bytes, isKindWide: false))
            }
        }
        var content = DeferredContent(
            notBefore: now.monotonic(at: push.notBefore),
            expiresAt: now.monotonic(at: push.expiresAt), type: type,
            priority: push.priority ?? settings.wireDefaults.priority(type),
            expiration: push.expiration ?? settings.wireDefaults.expiration(type),
            attempts: UInt16(min(push.attempts, settings.attemptsMax)), origin: origin,
            subject: subject?.0.rawValue ?? 0,
            subjectTag: UInt32(truncatingIfNeeded: subject?.1 ?? 0), readSequence: sequence)
        if let firstAt = push.firstAt {
            content.firstTriedAt = now.monotonic(at: firstAt)
        }
        return content
    }

    /// Nil where there are too many topics that this worker does not read.
    private mutating func position(_ source: DeadLetter.Source) -> RecordPosition? {
        originTopics.number(of: source.topic).map { topic in
            RecordPosition(topic: topic, partition: source.partition, offset: source.offset)
        }
    }

    /// A null was read for this row's key.
    private mutating func ended(
        _ row: UInt32, upTo offset: Int64, track: TrackID, now: Now
    ) {
        if deferred.offset(of: row) > offset {
            // Written between the owner's reading and its null, which hides it from the next owner.
            deferred.hide(row)
            if replayed.contains(track) { rewrite(row, now: now) }
        } else if deferred.isTaken(row) {
            deferred.revoke(row)
        } else {
            let hold = deferred.hold(of: row)
            deferred.remove(row)
            ledger.release(hold)
            // Kafka has the null already.
            ledger.endedRows.removeAll()
        }
    }

    private mutating func rewrite(_ row: UInt32, now: Now) {
        counters.deferredRewritten += 1
        deferred.rewritten(row)
        let content = deferred.content(of: row)
        let push = record(
            content, lane: deferred.lane(of: row), payload: deferred.bodies.payload(content.body),
            now: now)
        records.append(
            tickets.issueDeferral(
                partition: partition(of: row), key: key(of: row),
                value: DeferredEncoder.value(push), endedOffset: deferred.offset(of: row),
                holds: []))
    }

    /// Where the row's record stands. Since the topic was given more partitions the key may lead to
    /// another one, and what ends the row there would leave the record to be sent by each replay.
    private func partition(of row: UInt32) -> Int32 {
        deferredPartitions[deferred.hold(of: row).track]!
    }

    private func key(of row: UInt32) -> [UInt8] {
        deferred.tokenBytes(of: row).withMemoryRebound(to: UInt8.self) { token in
            RecordKey.deferred(
                lane: routing[deferred.lane(of: row)], token: token,
                coalescingKey: deferred.coalescingKey(of: row))
        }
    }

    // MARK: Waiting ends

    /// Makes pushes of what is due, as far as their lanes may send and their share has room.
    mutating func sendDeferred(now: Now) {
        endRows()
        writePayloadEnds()
        guard drain == nil else { return }
        deferred.wake(now: now.monotonic, limit: Self.deferredPerTurn)
        sweepExpired(now: now)
        guard deferred.readyCount > 0 else { return }
        var left = Self.deferredPerTurn
        for turn in lanes.indices {
            // Another lane is first each time.
            let lane = (deferredTurn + turn) % lanes.count
            let id = LaneID(rawValue: UInt16(lane))
            while left > 0, hasRoomForDeferred, let row = deferred.firstReady(of: id),
                maySendDeferred(id, now: now)
            {
                send(row, now: now)
                left -= 1
            }
        }
        deferredTurn += 1
        endRows()
    }

    /// While a gate is shut a few must be there to probe with, and no more.
    private func maySendDeferred(_ lane: LaneID, now: Now) -> Bool {
        let state = lanes[Int(lane.rawValue)]
        let gates = [state.gate, pools[Int(state.pool.rawValue)].gate]
        if gates.contains(where: { $0.isClosed(now: now.monotonic) }) { return false }
        return !gates.contains(where: \.isShut) || pushes.queuedCount(of: lane) < Self.probesKept
    }

    private var hasRoomForDeferred: Bool {
        pushes.deferredShareCount < settings.deferredSlots && pushes.freeSlots > 0
            && hasRoomForDeferrals && pushes.bodies.bytes < settings.payloadBytesMax * 3 / 4
    }

    private mutating func send(_ row: UInt32, now: Now) {
        let content = deferred.content(of: row)
        let hold = deferred.hold(of: row)
        let lane = deferred.lane(of: row)
        if content.expiresAt <= now.monotonic {
            counters.expired += 1
            deferred.take(row)
            return ledger.release(hold)
        }
        if endIfSuperseded(row) { return }
        if let until = heldUntil(row, now: now) { return deferred.postpone(row, until: until) }
        let known = audience.token(lane, deferred.tokenBytes(of: row))
        guard let token = known, audience.isRegistered(token) else {
            // Its registration may be on its way: another worker knew the token.
            if deferred.miss(row, until: now.monotonic + Self.indexPatience) { return }
            counters.unregistered += 1
            deferred.take(row)
            return ledger.release(hold)
        }
        deferred.take(row)
        if audience.isSuppressed(token) {
            counters.suppressed += 1
            return ledger.release(hold)
        }
        counters.deferredSent += 1
        request(row, content, token: token, lane: lane, hold: hold, now: now)
    }

    /// Until when pushes to the row's token wait, if they do: the next row goes instead.
    private func heldUntil(_ row: UInt32, now: Now) -> MonotonicTime? {
        let lane = deferred.lane(of: row)
        let pool = Int(lanes[Int(lane.rawValue)].pool.rawValue)
        guard !pools[pool].tokenHealth.isEmpty else { return nil }
        return pools[pool].tokenHealth.held(
            tokenHash(deferred.tokenBytes(of: row), lane: lane), now: now.monotonic)
    }

    private mutating func request(
        _ row: UInt32, _ content: DeferredContent, token: TokenID, lane: LaneID, hold: Hold,
        now: Now
    ) {
        var push = PushRequest(
            token: token.rawValue, lane: lane, type: content.type, priority: content.priority,
            expiration: content.expiration, expiresAt: content.expiresAt, origin: content.origin,
            readSequence: content.readSequence, subject: content.subject,
            subjectTag: content.subjectTag, heldSince: .distantFuture)
        push.coalescingKey = deferred.coalescingKey(of: row)
        push.past = PushRequest.Past(
            attempts: content.attempts, firstTriedAt: content.firstTriedAt)
        if content.body != .none {
            let readAt = deferred.bodies.readAt(content.body)
            push.body = pushes.bodies.insert(
                Array(deferred.bodies.body(content.body)),
                collapseID: Array(deferred.bodies.collapseID(content.body)), readAt: readAt,
                knownSince: deferred.bodies.knownSince(content.body),
                origin: deferred.bodies.origin(content.body))
            // Older than whatever was read here at the same time.
            push.readSequence = 0
        }
        let slot = place(push, claims: .held([hold]), now: now)
        precondition(slot, "there was a free slot")
        pushes.bodies.release(push.body)
    }

    private mutating func sweepExpired(now: Now) {
        guard deferredSweepAt <= now.monotonic, deferred.readyCount > 0 else { return }
        deferredSweepAt = now.monotonic + .milliseconds(10)
        var steps = 1024
        while hasRoomForDeferrals,
            let row = deferred.nextExpired(now: now.monotonic, steps: &steps)
        {
            counters.expired += 1
            let hold = deferred.hold(of: row)
            deferred.take(row)
            ledger.release(hold)
        }
        endRows()
    }

    private static var deferredPerTurn: Int { 512 }
    /// A worker whose index is further behind than this is not ready.
    private static var indexPatience: Duration { .seconds(30) }

    // MARK: Rows end

    /// A push gives its claim back to the row it was made of: it waits again.
    mutating func putBack(_ hold: Hold, notBefore: MonotonicTime, attempts: UInt16) {
        guard let row = deferred.row(of: hold), deferred.isTaken(row), !deferred.isRevoked(row)
        else { return ledger.release(hold) }
        deferred.putBack(row, notBefore: notBefore, attempts: attempts)
    }

    /// Writes null for the rows whose last claim is back.
    mutating func endRows() {
        guard !ledger.endedRows.isEmpty else { return }
        for hold in ledger.endedRows {
            guard let row = deferred.row(of: hold) else { continue }
            if !deferred.isRevoked(row) {
                counters.deferredEnded += 1
                records.append(
                    tickets.issueDeferral(
                        partition: partition(of: row), key: key(of: row), value: nil,
                        endedOffset: deferred.offset(of: row), holds: []))
            }
            deferred.remove(row)
        }
        ledger.endedRows.removeAll(keepingCapacity: true)
    }
}
