// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

public import FlatMemory
public import PushModel

/// Coalescing: at most one push per token (or per token and key, with a payload) waits or is in
/// flight, whatever the number of events it answers for. A bounded table of slots; the slot number
/// names the push to delivery too.
///
/// Claims on offsets (`Hold`) come in with each request. A claim that the push does not need, or no
/// longer needs, is left in `released`; the owner gives those back to the ledger.
@usableFromInline
package struct PushTable: ~Copyable {
    package static var none: UInt32 { .max }

    @usableFromInline var pushes: Column<WaitingPush>
    /// What trails behind the push of the same row. Meaningful only while that is dirty, and there
    /// only up to the highest row that ever was.
    private var trailing: Column<PushContent>
    private var rows: FreeList
    private var queues: LaneQueues
    private var resting = WakeHeap()
    private var holds = HoldPool()
    private let byAddress = PassedByAddress()
    package var bodies = BodyStore()
    /// Claims to give back. Emptied by the owner after each call.
    package var released: [Hold] = []

    package enum Joined: Sendable, Equatable {
        /// A new push stands in its lane's queue, in this slot.
        case queued(UInt32)
        /// An existing push answers for the event too.
        case coalesced
        /// The push in flight does not answer for it; it is sent once more afterwards.
        case trailing
    }

    package init(slots: Int, routing: RoutingTable) {
        pushes = Column(capacity: slots)
        trailing = Column(capacity: slots)
        rows = FreeList(first: 0, capacity: slots)
        queues = LaneQueues(routing: routing)
        self.slots = slots
    }

    package let slots: Int
    package var freeSlots: Int { slots - rows.count }
    package var queuedCount: Int { queues.count }
    package var restingCount: Int { resting.count }
    package private(set) var inFlightCount = 0
    /// Slots taken of the deferred pushes' share.
    package private(set) var deferredShareCount = 0
    /// Where the watch over long holds goes on.
    private var watchPosition = 0

    // Inlined into the pipeline, which reads a push in place: where every push passes, copying it was
    // most of the 466 instructions of 2,899 that this and joining nothing to a new push have saved.
    @inlinable package subscript(slot: UInt32) -> WaitingPush {
        _read { yield pushes[Int(slot)] }
    }

    /// What is sent when the push in this slot has ended. Meaningful only while that is dirty.
    package func trailing(of slot: UInt32) -> PushContent { trailing[Int(slot)] }

    @inlinable package func token(of slot: UInt32) -> UInt32 { pushes[Int(slot)].token }
    @inlinable package func lane(of slot: UInt32) -> LaneID { pushes[Int(slot)].lane }
    @inlinable package func coalescingKey(of slot: UInt32) -> UInt64 {
        pushes[Int(slot)].coalescingKey
    }
    @inlinable package func isOrphaned(_ slot: UInt32) -> Bool { pushes[Int(slot)].isOrphaned }
    @inlinable package func expiresAt(of slot: UInt32) -> MonotonicTime {
        pushes[Int(slot)].content.expiresAt
    }

    package func queuedCount(of lane: LaneID) -> Int { queues.count(of: lane) }

    // MARK: Events come in

    /// A push for a token that has none, to be sent as soon as its time has come and its turn is
    /// there. There must be a free slot. It holds nothing until it is joined or claims are added.
    package mutating func queue(_ request: PushRequest, now: MonotonicTime) -> UInt32 {
        let push = WaitingPush(request, now: now)
        if push.isOfDeferredShare { deferredShareCount += 1 }
        precondition(rows.count < slots, "no free slot: ask freeSlots first")
        let slot = rows.take()
        if Int(slot) < pushes.count {
            pushes[Int(slot)] = push
        } else {
            pushes.append(push)
        }
        bodies.retain(request.body)
        restOrEnqueue(slot, until: request.notBefore, now: now)
        return slot
    }

    /// One more event for a token whose push is in `slot`. Never refused.
    package mutating func join(_ slot: UInt32, _ request: PushRequest, hold: Hold?) -> Joined {
        let row = Int(slot)
        precondition(pushes[row].state != .free, "joined a push that has ended")
        switch pushes[row].state {
        case .inFlight where !isAnswered(request, byPushIn: row):
            return trail(row, request, hold: hold)
        case .inFlight:
            // The body is on its way; a retry must not drop the push before the event expires.
            pushes[row].content.prolong(until: request.expiresAt, priority: request.priority)
            pushes[row].content.heldSince = min(pushes[row].content.heldSince, request.heldSince)
            if let hold { claim(hold, for: slot) }
        case .queued where mustWaitLonger(request, thanPushIn: row),
            .resting where mustWaitLonger(request, thanPushIn: row):
            return trail(row, request, hold: hold)
        default:
            Self.merge(request, into: &pushes[row].content, &bodies)
            if let hold { claim(hold, for: slot) }
            // A newer payload says what the trailing one was to say.
            if pushes[row].isDirty, request.coalescingKey != 0,
                age(of: trailing[row]) <= age(of: pushes[row].content)
            {
                absorbTrailing(row)
            }
        }
        return .coalesced
    }

    /// Its producer asked for a delay: the push that waits must neither go late nor answer for it too
    /// early. A payload that is older than the one that waits is no news.
    private func mustWaitLonger(_ request: PushRequest, thanPushIn row: Int) -> Bool {
        let content = pushes[row].content
        return request.notBefore > content.notBefore
            && (request.coalescingKey == 0 || age(of: request) > age(of: content))
    }

    /// A push without a payload that was handed over after the event was read says all there is to
    /// say. One with a payload says it only if its payload is not older than the event's.
    private func isAnswered(_ request: PushRequest, byPushIn row: Int) -> Bool {
        request.coalescingKey == 0
            ? request.readSequence <= pushes[row].handedSequence
            : age(of: request) <= age(of: pushes[row].content)
    }

    private func age(of content: PushContent) -> BodyAge {
        bodies.age(of: content.body, sequence: content.readSequence)
    }

    private func age(of request: PushRequest) -> BodyAge {
        bodies.age(of: request.body, sequence: request.readSequence)
    }

    /// A further claim for the push in `slot`, as another partition's event joins it.
    package mutating func claim(_ hold: Hold, for slot: UInt32) {
        if let surplus = holds.insert(hold, into: &pushes[Int(slot)].content.holds) {
            released.append(surplus)
        }
    }

    private mutating func trail(_ row: Int, _ request: PushRequest, hold: Hold?) -> Joined {
        if pushes[row].isDirty {
            Self.merge(request, into: &trailing[row], &bodies)
            trailing[row].notBefore = max(trailing[row].notBefore, request.notBefore)
        } else {
            pushes[row].isDirty = true
            trailing.extend(to: row + 1)
            trailing[row] = PushContent(request)
            bodies.retain(request.body)
        }
        if let hold, let surplus = holds.insert(hold, into: &trailing[row].holds) {
            released.append(surplus)
        }
        return .trailing
    }

    /// The latest expiry and the highest priority win; of payloads, the newest. The origin stays
    /// that of the oldest event, and with it `apns-id`.
    private static func merge(
        _ request: PushRequest, into content: inout PushContent, _ bodies: inout BodyStore
    ) {
        if bodies.age(of: request.body, sequence: request.readSequence)
            >= bodies.age(of: content.body, sequence: content.readSequence)
        {
            content.readSequence = request.readSequence
            if content.body != request.body {
                bodies.retain(request.body)
                bodies.release(content.body)
                content.body = request.body
                content.type = request.type
                content.expiration = request.expiration
            }
        }
        content.prolong(until: request.expiresAt, priority: request.priority)
        content.heldSince = min(content.heldSince, request.heldSince)
    }

    // MARK: Pushes go out

    /// The next push of this pool, lanes taking turns; it is in flight from here on. Lanes for which
    /// `isShut` is true are passed over.
    package mutating func take(
        from pool: PoolID, sequence: UInt64, now: MonotonicTime, isShut: (LaneID) -> Bool
    ) -> UInt32? {
        guard let lane = queues.nextLane(of: pool, isShut: isShut) else { return nil }
        let slot = queues.popFirst(of: lane, in: &pushes)
        if let next = queues.first(of: lane) { pushes.prefetch(Int(next)) }
        let row = Int(slot)
        pushes[row].state = .inFlight
        pushes[row].handedSequence = sequence
        if pushes[row].firstTriedAt.nanoseconds == 0 { pushes[row].firstTriedAt = now }
        inFlightCount += 1
        return slot
    }

    package func hasQueued(in pool: PoolID) -> Bool { queues.hasQueued(in: pool) }

    @inlinable
    package mutating func setRegisteredAt(_ time: WallTime, of slot: UInt32) {
        pushes[Int(slot)].registeredAt = time
    }

    // MARK: Outcomes come back

    /// The push in flight has ended; its claims go to `body`. If it was dirty its trailing content is
    /// queued in the same slot, and the result is true.
    package mutating func ended(
        _ slot: UInt32, now: MonotonicTime, _ body: (Hold) -> Void
    ) -> Bool {
        let row = Int(slot)
        landed(row)
        holds.drain(&pushes[row].content.holds, body)
        bodies.release(pushes[row].content.body)
        if pushes[row].isDirty, !pushes[row].isOrphaned {
            startTrailing(row)
            restOrEnqueue(slot, until: pushes[row].content.notBefore, now: now)
            return true
        }
        if pushes[row].isDirty { dropTrailing(row, body) }
        recycle(slot)
        return false
    }

    /// As `ended`, but what was trailing ends too: its token is not to be sent to.
    package mutating func endedForGood(_ slot: UInt32, _ body: (Hold) -> Void) {
        let row = Int(slot)
        if pushes[row].state == .inFlight { landed(row) } else { leaveWaiting(slot) }
        holds.drain(&pushes[row].content.holds, body)
        bodies.release(pushes[row].content.body)
        if pushes[row].isDirty { dropTrailing(row, body) }
        recycle(slot)
    }

    /// The push in flight is to be sent again, not before `time`. What was trailing joins it.
    package mutating func retry(
        _ slot: UInt32, at time: MonotonicTime, now: MonotonicTime, costsAttempt: Bool
    ) {
        let row = Int(slot)
        landed(row)
        if costsAttempt { pushes[row].attempts &+= 1 }
        if pushes[row].isDirty { absorbTrailing(row) }
        restOrEnqueue(slot, until: max(time, pushes[row].content.notBefore), now: now)
    }

    /// Pushes whose rest is over join their queues.
    package mutating func wake(now: MonotonicTime) {
        while let slot = resting.popDue(now: now) { enqueue(slot, now: now) }
    }

    package var nextWake: MonotonicTime { resting.nextDue }

    /// Until when a resting push rests; nil for one that does not.
    package func restsUntil(_ slot: UInt32) -> MonotonicTime? {
        pushes[Int(slot)].state == .resting ? resting.time(of: slot) : nil
    }

    /// The token of this push is gone. A waiting push ends at once, its claims going to `body`; one in
    /// flight is marked and ends with its outcome. True if it ended.
    package mutating func orphan(_ slot: UInt32, _ body: (Hold) -> Void) -> Bool {
        let row = Int(slot)
        if pushes[row].state == .inFlight {
            pushes[row].isOrphaned = true
            if pushes[row].isDirty { dropTrailing(row, body) }
            return false
        }
        endedForGood(slot, body)
        return true
    }

    // MARK: Pushes that wait too long

    /// The next waiting push that has held an offset since `time` or longer, looking at no more than
    /// `steps` slots, which it takes from them. Calls go round all slots in turn.
    package mutating func nextHeld(since time: MonotonicTime, steps: inout Int) -> UInt32? {
        while let slot = nextWaiting(steps: &steps) {
            if heldSince(Int(slot)) <= time { return slot }
        }
        return nil
    }

    /// The next push that waits, whatever for; goes round the slots as `nextHeld` does.
    package mutating func nextWaiting(steps: inout Int) -> UInt32? {
        while steps > 0, pushes.count > 0 {
            steps -= 1
            watchPosition = watchPosition + 1 < pushes.count ? watchPosition + 1 : 0
            if isWaiting(watchPosition) { return UInt32(watchPosition) }
        }
        return nil
    }

    private func isWaiting(_ row: Int) -> Bool {
        pushes[row].state == .queued || pushes[row].state == .resting
    }

    /// Since when the push, or what trails it, holds an offset.
    private func heldSince(_ row: Int) -> MonotonicTime {
        let since = pushes[row].content.heldSince
        return pushes[row].isDirty ? min(since, trailing[row].heldSince) : since
    }

    package func heldSince(of slot: UInt32) -> MonotonicTime { heldSince(Int(slot)) }

    /// The push that has stood longest in this lane's queue.
    package func firstQueued(of lane: LaneID) -> UInt32? { queues.first(of: lane) }

    // MARK: Inside

    private mutating func landed(_ row: Int) {
        precondition(pushes[row].state == .inFlight, "an outcome for a push not in flight")
        inFlightCount -= 1
    }

    private mutating func leaveWaiting(_ slot: UInt32) {
        switch pushes[Int(slot)].state {
        case .queued: queues.remove(slot, in: &pushes)
        case .resting: resting.remove(slot)
        case .free, .inFlight: preconditionFailure("push \(slot) does not wait")
        }
    }

    private mutating func restOrEnqueue(
        _ slot: UInt32, until time: MonotonicTime, now: MonotonicTime
    ) {
        if time <= now { return enqueue(slot, now: now) }
        pushes[Int(slot)].state = .resting
        resting.insert(slot, at: time)
    }

    private mutating func enqueue(_ slot: UInt32, now: MonotonicTime) {
        pushes[Int(slot)].state = .queued
        pushes[Int(slot)].queuedAt = now
        queues.append(slot, in: &pushes)
    }

    private mutating func startTrailing(_ row: Int) {
        pushes[row].content = trailing[row]
        pushes[row].isDirty = false
        pushes[row].attempts = 0
        pushes[row].firstTriedAt = MonotonicTime(nanoseconds: 0)
    }

    private mutating func dropTrailing(_ row: Int, _ body: (Hold) -> Void) {
        pushes[row].isDirty = false
        holds.drain(&trailing[row].holds, body)
        bodies.release(trailing[row].body)
    }

    private mutating func absorbTrailing(_ row: Int) {
        pushes[row].isDirty = false
        var trailing = trailing[row]
        var claims: [Hold] = []
        holds.drain(&trailing.holds) { claims.append($0) }
        for hold in claims { claim(hold, for: UInt32(row)) }
        pushes[row].content.prolong(until: trailing.expiresAt, priority: trailing.priority)
        pushes[row].content.heldSince = min(
            pushes[row].content.heldSince, trailing.heldSince)
        guard age(of: trailing) >= age(of: pushes[row].content) else {
            return bodies.release(trailing.body)
        }
        bodies.release(pushes[row].content.body)
        pushes[row].content.body = trailing.body
        pushes[row].content.type = trailing.type
        pushes[row].content.expiration = trailing.expiration
        pushes[row].content.readSequence = trailing.readSequence
        pushes[row].content.notBefore = max(pushes[row].content.notBefore, trailing.notBefore)
    }

    private mutating func recycle(_ slot: UInt32) {
        if pushes[Int(slot)].isOfDeferredShare { deferredShareCount -= 1 }
        pushes[Int(slot)].state = .free
        rows.give(slot)
    }
}

extension PushTable {
    /// Every claim that a push has, waiting or in flight; for tests and simulation.
    package func forEachHold(_ body: (Hold) -> Void) {
        for row in 0..<pushes.count where pushes[row].state != .free {
            holds.forEach(in: pushes[row].content.holds, body)
            if pushes[row].isDirty { holds.forEach(in: trailing[row].holds, body) }
        }
    }

    /// The waiting pushes that have held an offset since `time` or longer; for tests and simulation.
    package func waiting(heldSince time: MonotonicTime) -> [UInt32] {
        (0..<pushes.count).filter { isWaiting($0) && heldSince($0) <= time }.map(UInt32.init)
    }

    package func checkInvariants() {
        var counts: [WaitingPush.State: Int] = [:]
        for row in 0..<pushes.count { counts[pushes[row].state, default: 0] += 1 }
        precondition(
            counts[.free, default: 0] == pushes.count - rows.count,
            "a free slot is not on the list")
        precondition(counts[.queued, default: 0] == queues.count, "the queues miscount")
        precondition(counts[.resting, default: 0] == resting.count, "the resting miscount")
        precondition(counts[.inFlight, default: 0] == inFlightCount, "in flight miscounts")
        var deferredShare = 0
        for row in 0..<pushes.count {
            let push = pushes[row]
            if push.state != .free, push.isOfDeferredShare { deferredShare += 1 }
            guard push.isDirty else { continue }
            precondition(
                push.state == .inFlight || trailing[row].notBefore > push.content.notBefore,
                "a waiting push is dirty without need")
            precondition(push.state != .free, "a free slot is dirty")
        }
        precondition(deferredShare == deferredShareCount, "the deferred share miscounts")
        queues.checkInvariants(pushes)
        resting.checkInvariants()
        bodies.checkInvariants()
    }
}
