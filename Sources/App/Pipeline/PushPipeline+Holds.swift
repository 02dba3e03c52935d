// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Audience
internal import Delivery
internal import Ledger
internal import Planning
internal import PushModel
internal import RecordFormats

/// The bound on how long a push may hold an offset: one that must wait longer is written to
/// `deferred`, and its events are released when Kafka has it.
extension PushPipeline {
    /// Defers the waiting pushes that have nearly reached `holdMax`, and what is above a pool's share
    /// of the slots.
    mutating func deferWhatWaits(now: Now) {
        deferLongHeld(now: now)
        if let drain { deferWhatCannotEnd(in: drain, now: now) }
        guard spillAt <= now.monotonic, pushes.queuedCount > Self.probesKept else { return }
        spillAt = now.monotonic + Self.spillInterval
        for lane in lanes.indices where isShut(lane) {
            let kept = max(Self.probesKept, settings.slots / 16)
            spill(LaneID(rawValue: UInt16(lane)), to: kept, now: now)
        }
        relieveSlowestPool(now: now)
    }

    /// Goes round all slots within `watchLap`, a part of them each time.
    private mutating func deferLongHeld(now: Now) {
        guard pushes.freeSlots < pushes.slots, holdWatchAt <= now.monotonic else { return }
        let chunk = min(settings.slots, Self.watchChunk)
        holdWatchAt = now.monotonic + Self.watchLap * chunk / settings.slots
        let since = now.monotonic - (settings.holdMax - Self.acknowledgementReserve(of: settings))
        var steps = chunk
        while hasRoomForDeferrals, let slot = pushes.nextHeld(since: since, steps: &steps) {
            deferPush(slot, notBefore: whenSendable(slot, now: now), now: now)
        }
    }

    /// Defers what waits behind a shut gate, or rests for longer than the drain lasts: its offsets
    /// would hold back those of everything that was read after it. What `deferred` has no room for
    /// is left to the next owner of its partition.
    private mutating func deferWhatCannotEnd(in drain: Drain, now: Now) {
        guard pushes.queuedCount + pushes.restingCount > 0 else { return }
        var steps = max(Self.watchChunk, settings.slots / 16)
        var left = Self.spillMax
        while left > 0, hasRoomForDeferrals, let slot = pushes.nextWaiting(steps: &steps) {
            guard cannotEnd(slot, in: drain) else { continue }
            deferPush(slot, notBefore: whenSendable(slot, now: now), now: now)
            left -= 1
        }
    }

    private func cannotEnd(_ slot: UInt32, in drain: Drain) -> Bool {
        guard case .until(let end) = drain else { return true }
        if let wake = pushes.restsUntil(slot), wake > end { return true }
        return isShut(Int(pushes.lane(of: slot).rawValue))
    }

    /// Of `holdMax`, what is left for a lap of the watch and for Kafka's acknowledgement.
    private static func acknowledgementReserve(of settings: PipelineSettings) -> Duration {
        min(.seconds(2), settings.holdMax / 5)
    }

    /// Whether a wait until `time` would hold the push's offsets for too long.
    func holdsTooLong(_ slot: UInt32, until time: MonotonicTime) -> Bool {
        let since = pushes.heldSince(of: slot)
        guard since < .distantFuture else { return false }
        return time - since > settings.holdMax - Self.acknowledgementReserve(of: settings)
    }

    // MARK: Bulkheads

    private func isShut(_ lane: Int) -> Bool {
        let pool = pools[Int(lanes[lane].pool.rawValue)]
        return pool.gate.isShut || lanes[lane].gate.isShut
    }

    /// Slots that nobody else wants are for whoever has pushes. When they run short while others send
    /// too, a pool whose queue hardly moves goes back to its fair share.
    private mutating func relieveSlowestPool(now: Now) {
        guard pools.count > 1, freeEventSlots * 4 < settings.slots else { return }
        let slow = pools.indices.max { queued(in: $0) < queued(in: $1) }!
        guard pools.indices.contains(where: { $0 != slow && isBusy($0, now: now) }) else { return }
        let stuckSince = now.monotonic - settings.holdMax / 4
        let share = settings.slots / pools.count
        for lane in lanes.indices where Int(lanes[lane].pool.rawValue) == slow {
            let id = LaneID(rawValue: UInt16(lane))
            guard let head = pushes.firstQueued(of: id), pushes[head].queuedAt <= stuckSince else {
                continue
            }
            let surplus = max(0, queued(in: slow) - share)
            spill(id, to: max(0, pushes.queuedCount(of: id) - surplus), now: now)
        }
    }

    private func queued(in pool: Int) -> Int {
        lanes.indices.reduce(0) { sum, lane in
            Int(lanes[lane].pool.rawValue) == pool
                ? sum + pushes.queuedCount(of: LaneID(rawValue: UInt16(lane))) : sum
        }
    }

    private func isBusy(_ pool: Int, now: Now) -> Bool {
        pushes.hasQueued(in: PoolID(rawValue: UInt16(pool)))
            || pools[pool].lastHandedOverAt > now.monotonic - settings.holdMax
    }

    /// Defers the pushes that have waited longest in this lane, until `kept` are left.
    private mutating func spill(_ lane: LaneID, to kept: Int, now: Now) {
        var left = Self.spillMax
        while left > 0, pushes.queuedCount(of: lane) > kept, hasRoomForDeferrals,
            let slot = pushes.firstQueued(of: lane)
        {
            deferPush(slot, notBefore: whenSendable(slot, now: now), now: now)
            left -= 1
        }
    }

    private static var watchLap: Duration { .milliseconds(500) }
    /// Slots looked at in one go: some hundred microseconds.
    private static var watchChunk: Int { 8192 }
    /// Probes need something to send.
    static var probesKept: Int { 4 }
    /// Not each turn: with many apps there are thousands of lanes to look at.
    private static var spillInterval: Duration { .milliseconds(5) }
    /// Pushes deferred in one go, for one lane.
    private static var spillMax: Int { 1024 }

    // MARK: One push

    /// A row whose push is under way keeps a place for its tombstone.
    var hasRoomForDeferrals: Bool {
        hasRoomForTombstones && payloadEnds.isEmpty
            && tickets.deferrals + ledger.endedRows.count + deferred.takenCount
                < settings.unacknowledgedMax
    }

    var hasRoomForTombstones: Bool {
        let waiting = tickets.usage(of: .deferred)
        return waiting.count + ledger.endedRows.count < settings.unacknowledgedMax
            && waiting.bytes < settings.deferralBytesMax
    }

    /// The earliest time at which delivery may have this waiting push.
    private func whenSendable(_ slot: UInt32, now: Now) -> MonotonicTime {
        let lane = lanes[Int(pushes.lane(of: slot).rawValue)]
        var time = max(pushes.restsUntil(slot) ?? now.monotonic, now.monotonic)
        for gate in [lane.gate, pools[Int(lane.pool.rawValue)].gate] where gate.isShut {
            let change = gate.nextChange
            if change < .distantFuture { time = max(time, change) }
        }
        return time
    }

    /// Ends the waiting push here. What it holds of events waits for the record; what it has of
    /// deferred rows goes back to them.
    mutating func deferPush(_ slot: UInt32, notBefore: MonotonicTime, now: Now) {
        let push = pushes[slot]
        var record = deferred(slot, notBefore: notBefore, now: now)
        let key = audience.tokenBytes(of: TokenID(rawValue: push.token))
            .withMemoryRebound(to: UInt8.self) { token in
                RecordKey.deferred(
                    lane: routing[push.lane], token: token, coalescingKey: push.coalescingKey)
            }
        var order = order(of: slot)
        var holds: [Hold] = []
        endQuietly(slot, withTrailing: true, now: now) { holds.append($0) }
        counters.deferred += 1
        let ofEvents = holds.filter { !ledger.isTable($0.track) }
        for hold in holds where ledger.isTable(hold.track) {
            putBack(hold, notBefore: notBefore, attempts: push.attempts)
        }
        if ofEvents.isEmpty, ofEvents.count < holds.count { return }
        if let open = tickets.openDeferral(of: key) {
            record.include(deferral(in: open.record))
            // That may have the newer payload.
            if let own = order, let said = open.order { order!.age = max(own.age, said.age) }
        }
        let written = tickets.issueDeferral(
            key: key, value: DeferredEncoder.value(record), holds: ofEvents, order: order)
        if let order {
            payloadOrder.deferred(
                order.hash, age: order.age, expiresAt: now.monotonic(at: record.expiresAt),
                now: now.monotonic)
        }
        records.append(written)
    }

    /// By what the payload of a push that is deferred is known from then on; nil where no other event
    /// can bring a newer one.
    private func order(of slot: UInt32) -> TicketTable.PayloadPlace? {
        let push = pushes[slot]
        let said = push.isDirty ? pushes.trailing(of: slot) : push.content
        guard push.coalescingKey != 0, pushes.bodies.isReplaceable(said.body) else { return nil }
        let token = audience.tokenBytes(of: TokenID(rawValue: push.token))
        return TicketTable.PayloadPlace(
            hash: deferred.hash(push.lane, token, push.coalescingKey),
            age: pushes.bodies.age(of: said.body, sequence: said.readSequence))
    }

    /// Reads a record of `deferred` that this worker has written.
    mutating func deferral(in record: OutgoingRecord) -> DeferredPush {
        let push = record.key.withUnsafeBytes { key in
            record.value!.withUnsafeBytes { value in
                try? verdicts.deferred(key: key, value: value, into: &tokenKey)
            }
        }
        guard let push else { preconditionFailure("a deferred push of ours cannot be read") }
        return push
    }

    private func deferred(
        _ slot: UInt32, notBefore: MonotonicTime, now: Now
    ) -> DeferredPush {
        let push = pushes[slot]
        // What trails a waiting push says the same later, or has the newer payload.
        var said = push.isDirty ? pushes.trailing(of: slot) : push.content
        said.prolong(until: push.content.expiresAt, priority: push.content.priority)
        var content = DeferredContent(
            notBefore: max(notBefore, said.notBefore), expiresAt: said.expiresAt,
            type: said.type, priority: said.priority, expiration: said.expiration,
            attempts: push.attempts, origin: push.content.origin, subject: said.subject,
            subjectTag: said.subjectTag, readSequence: said.readSequence)
        if push.firstTriedAt.nanoseconds != 0 { content.firstTriedAt = push.firstTriedAt }
        return record(
            content, lane: push.lane, payload: pushes.bodies.payload(said.body), now: now)
    }

    /// What a record of `deferred` says of such a push.
    func record(
        _ content: DeferredContent, lane: LaneID, payload: StoredPayload?, now: Now
    ) -> DeferredPush {
        func wall(_ time: MonotonicTime) -> WallTime { now.wall(at: time) }
        let lane = routing[lane]
        var record = DeferredPush(
            notBefore: wall(content.notBefore), expiresAt: wall(content.expiresAt),
            tokenClass: lane.tokenClass, attempts: Int(content.attempts))
        record.priority = content.priority
        record.expiration = content.expiration
        record.source = source(content.origin)
        record.subject = subject(
            number: content.subject, tag: content.subjectTag, app: lane.app)
        record.firstAt = content.firstTriedAt.map(wall)
        if let payload {
            record.payload = EventPayload(body: payload.body, type: content.type)
            record.payloadAt = payload.readAt
            if payload.origin != content.origin { record.payloadSource = source(payload.origin) }
            record.collapseID = payload.collapseID
        }
        return record
    }
}
