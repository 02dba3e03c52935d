// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

public import FlatMemory
package import Ledger
public import PushModel

/// Coalescing: at most one push per token (or per token and key, with a payload) waits or is in
/// flight, whatever the number of events it answers for. A bounded table of slots; the slot number
/// names the push to delivery too.
///
/// Claims on offsets (`OffsetClaim`) come in with each request. A claim that the push does not need, or no
/// longer needs, is given back to the tracker.
@usableFromInline
package struct PushTable: ~Copyable {
    package static var none: UInt32 { .max }

    @usableFromInline var pushes: Column<Push>
    /// The follow-up of the push in the same row. Meaningful only where that push `hasFollowUp`.
    /// The column ends at the highest row that ever had one.
    var followUp: Column<HeldContent>
    var rows: FreeList
    var queues: RouteQueues
    var resting = WakeHeap()
    var claimPool = ClaimPool()
    private let byAddress = PassedByAddress()
    package var bodies = BodyStore()

    package enum Joined: Sendable, Equatable {
        /// An existing push answers for the event too.
        case coalesced
        /// The push in flight does not answer for it; it is sent once more afterwards.
        case followUp
    }

    package init(slots: Int, routing: RoutingTable) {
        pushes = Column(capacity: slots)
        followUp = Column(capacity: slots)
        rows = FreeList(first: 0, capacity: slots)
        queues = RouteQueues(routing: routing)
        deferredShares = Array(repeating: 0, count: routing.pools.count)
        pools = routing.routes.map(\.pool)
        self.slots = slots
    }

    package let slots: Int
    /// The memory of the pushes, without their bodies.
    package var bytes: Int { pushes.bytes + followUp.bytes }
    package var freeSlots: Int { slots - rows.count }
    package var queuedCount: Int { queues.count }
    package var restingCount: Int { resting.count }
    package private(set) var inFlightCount = 0
    /// How many slots of the deferred pushes' share are taken.
    package private(set) var deferredShareCount = 0
    /// The same, by pool.
    var deferredShares: [Int]
    /// How many pools have taken any of it.
    package private(set) var poolsWithDeferredShare = 0
    /// By route.
    private let pools: [PoolID]
    /// The slot at which the watch over long holds continues.
    var watchPosition = 0
    var waitingSince = OldestWaiting()

    // Inlinable, so that the pipeline reads a push in place. Together with joining nothing to a new
    // push this saved 466 of 2,899 instructions per push, most of them for copying.
    @inlinable package subscript(slot: UInt32) -> Push {
        _read { yield pushes[Int(slot)] }
    }

    /// What is sent when the push in this slot has ended. Meaningful only where it `hasFollowUp`.
    package func followUp(of slot: UInt32) -> PushContent { followUp[Int(slot)].content }

    @inlinable package func token(of slot: UInt32) -> TokenID { pushes[Int(slot)].token }
    @inlinable package func route(of slot: UInt32) -> RouteID { pushes[Int(slot)].route }
    @inlinable package func coalescingKey(of slot: UInt32) -> UInt64 {
        pushes[Int(slot)].coalescingKey
    }
    @inlinable package func pushType(of slot: UInt32) -> PushType {
        pushes[Int(slot)].held.content.type
    }
    @inlinable package func isOrphaned(_ slot: UInt32) -> Bool { pushes[Int(slot)].isOrphaned }
    @inlinable package func expiresAt(of slot: UInt32) -> MonotonicTime {
        pushes[Int(slot)].content.expiresAt
    }

    package func queuedCount(of route: RouteID) -> Int { queues.count(of: route) }

    /// How many slots of the deferred pushes' share this pool has taken.
    package func deferredShareCount(of pool: PoolID) -> Int { deferredShares[Int(pool.rawValue)] }

    /// What becomes of a push that was accepted depends on these. They are read with one look.
    @usableFromInline
    package struct AcceptedPush {
        @usableFromInline package let slot: UInt32
        @usableFromInline package let route: RouteID
        @usableFromInline package let token: TokenID
        @usableFromInline package let coalescingKey: UInt64
        @usableFromInline package let type: PushType
        @usableFromInline package let writtenAt: WallTime

        @inlinable
        init(_ push: borrowing Push, slot: UInt32) {
            self.slot = slot
            route = push.route
            token = push.token
            coalescingKey = push.coalescingKey
            type = push.held.content.type
            writtenAt = push.held.content.writtenAt
        }
    }

    @inlinable package func accepted(_ slot: UInt32) -> AcceptedPush {
        AcceptedPush(pushes[Int(slot)], slot: slot)
    }

    // MARK: Events come in

    /// A push for a token that has none, to be sent as soon as its time has come and its turn is
    /// there. There must be a free slot. It holds nothing until it is joined or claims are added.
    package mutating func queue(_ request: PushRequest, now: MonotonicTime) -> UInt32 {
        let push = Push(request, now: now)
        if push.isOfDeferredShare { countDeferredShare(1, of: push.route) }
        precondition(
            rows.count < slots, "a push is queued only while a slot is free: ask freeSlots first")
        let slot = rows.take()
        if Int(slot) < pushes.count {
            pushes[Int(slot)] = push
        } else {
            pushes.append(push)
        }
        bodies.retain(request.content.body)
        restOrEnqueue(slot, until: request.content.notBefore, now: now)
        return slot
    }

    /// One more event for a token whose push is in `slot`. Never refused.
    /// - Parameter hold: passes to the push.
    package mutating func join(
        _ slot: UInt32, _ request: PushRequest, claim: OffsetClaim?, _ tracker: inout OffsetTracker
    ) -> Joined {
        let row = Int(slot)
        precondition(pushes[row].state != .free, "an event joins only a push that has not ended")
        switch pushes[row].state {
        case .inFlight where !isAnswered(request, byPushIn: row):
            return addFollowUp(row, request, claim: claim, &tracker)
        case .inFlight:
            // The body is on its way; a retry must not drop the push before the event expires.
            if !request.content.isBulk { pushes[row].held.content.isBulk = false }
            pushes[row].held.content.prolong(
                until: request.content.expiresAt, priority: request.content.priority)
            pushes[row].held.heldSince = min(pushes[row].held.heldSince, request.heldSince)
            if let claim { self.claim(claim, for: slot, &tracker) }
        case .queued where mustWaitLonger(request, thanPushIn: row),
            .resting where mustWaitLonger(request, thanPushIn: row):
            return addFollowUp(row, request, claim: claim, &tracker)
        default:
            if pushes[row].held.content.isBulk, !request.content.isBulk { leaveBulk(slot) }
            Self.merge(request, into: &pushes[row].held, &bodies)
            if request.past != nil { pushes[row].isAnnounced = true }
            if request.coalescingKey != 0 { becomeAsUrgentAsItsType(slot) }
            if let claim { self.claim(claim, for: slot, &tracker) }
            // A newer payload replaces that of the follow-up.
            if pushes[row].hasFollowUp, request.coalescingKey != 0,
                age(of: followUp[row].content) <= age(of: pushes[row].content)
            {
                absorbFollowUp(row, &tracker)
            }
        }
        return .coalesced
    }

    /// How new the payload of this content is.
    package func age(of content: PushContent) -> BodyAge {
        bodies.age(of: content.body, sequence: content.readSequence)
    }

    /// A further claim for the push in `slot`, as another partition's event joins it.
    package mutating func claim(
        _ claim: OffsetClaim, for slot: UInt32, _ tracker: inout OffsetTracker
    ) {
        if let surplus = claimPool.insert(claim, into: &pushes[Int(slot)].held.claims) {
            Self.giveBack(surplus, to: &pushes[Int(slot)].held.claims, of: &claimPool, &tracker)
        }
    }

    /// The claims of the push in this slot, without those of its follow-up.
    package func forEachClaim(of slot: UInt32, _ body: (OffsetClaim) -> Void) {
        claimPool.forEach(in: pushes[Int(slot)].held.claims, body)
    }

    /// The latest expiry and the highest priority win; of payloads, the newest. The origin stays
    /// that of the oldest event, and with it `apns-id`.
    static func merge(
        _ request: PushRequest, into held: inout HeldContent, _ bodies: inout BodyStore
    ) {
        let newer = request.content
        if bodies.age(of: newer.body, sequence: newer.readSequence)
            >= bodies.age(of: held.content.body, sequence: held.content.readSequence)
        {
            held.content.readSequence = newer.readSequence
            if held.content.body != newer.body {
                bodies.retain(newer.body)
                bodies.release(held.content.body)
                held.content.body = newer.body
                held.content.type = newer.type
                held.content.expiration = newer.expiration
            }
        }
        held.content.prolong(until: newer.expiresAt, priority: newer.priority)
        held.heldSince = min(held.heldSince, request.heldSince)
    }

    // MARK: Pushes go out

    /// The next push of this line, the most urgent first and routes taking turns; it is in flight from
    /// here on. Routes for which `isBlocked` is true are passed over.
    package mutating func take(
        from line: PoolLine, sequence: UInt64, now: MonotonicTime, isBlocked: (RouteID) -> Bool
    ) -> UInt32? {
        guard let slot = queues.popNext(of: line, in: &pushes, isBlocked: isBlocked) else {
            return nil
        }
        let row = Int(slot)
        pushes[row].state = .inFlight
        pushes[row].handedSequence = sequence
        if pushes[row].firstTriedAt.nanoseconds == 0 { pushes[row].firstTriedAt = now }
        inFlightCount += 1
        return slot
    }

    package func hasQueued(in line: PoolLine) -> Bool { queues.hasQueued(in: line) }

    package func hasQueued(in pool: PoolID) -> Bool {
        queues.hasQueued(in: PoolLine(pool, isPatient: false))
            || queues.hasQueued(in: PoolLine(pool, isPatient: true))
    }

    @inlinable
    package mutating func setRegisteredAt(_ time: WallTime, of slot: UInt32) {
        pushes[Int(slot)].registeredAt = time
    }

    // MARK: Outcomes come back

    /// The push in flight has ended, and gives its claims back. Its follow-up, if it has one, is
    /// queued in the same slot.
    /// - Returns: whether a follow-up was queued.
    package mutating func ended(
        _ slot: UInt32, now: MonotonicTime, _ tracker: inout OffsetTracker
    ) -> Bool {
        ended(slot, now: now) { tracker.release($0) }
    }

    /// Ends the push in flight as the other `ended` does, but gives its claims to `body`.
    package mutating func ended(
        _ slot: UInt32, now: MonotonicTime, _ body: (OffsetClaim) -> Void
    ) -> Bool {
        let row = Int(slot)
        landed(row)
        claimPool.drain(&pushes[row].held.claims, body)
        bodies.release(pushes[row].held.content.body)
        if pushes[row].hasFollowUp, !pushes[row].isOrphaned {
            startFollowUp(row)
            restOrEnqueue(slot, until: pushes[row].held.content.notBefore, now: now)
            return true
        }
        if pushes[row].hasFollowUp { dropFollowUp(row, body) }
        recycle(slot)
        return false
    }

    /// The push ends, waiting or in flight, and so does its follow-up: nothing is to be sent to its
    /// token. The claims of both go to `body`.
    package mutating func endedForGood(_ slot: UInt32, _ body: (OffsetClaim) -> Void) {
        let row = Int(slot)
        if pushes[row].state == .inFlight { landed(row) } else { leaveWaiting(slot) }
        claimPool.drain(&pushes[row].held.claims, body)
        bodies.release(pushes[row].held.content.body)
        if pushes[row].hasFollowUp { dropFollowUp(row, body) }
        recycle(slot)
    }

    /// The push in flight is to be sent again, not before `time`. Its follow-up joins it.
    package mutating func retry(
        _ slot: UInt32, at time: MonotonicTime, now: MonotonicTime, costsAttempt: Bool,
        _ tracker: inout OffsetTracker
    ) {
        let row = Int(slot)
        landed(row)
        if costsAttempt { pushes[row].attempts &+= 1 }
        if pushes[row].hasFollowUp { absorbFollowUp(row, &tracker) }
        waitAgain(slot, until: time, now: now)
    }

    /// The push that was taken goes back to its queue, or rests until `time`: it was not sent. A
    /// follow-up that must wait for longer does so alone, as before.
    package mutating func putBack(
        _ slot: UInt32, until time: MonotonicTime, now: MonotonicTime,
        _ tracker: inout OffsetTracker
    ) {
        let row = Int(slot)
        if pushes[row].attempts == 0 { pushes[row].firstTriedAt = MonotonicTime(nanoseconds: 0) }
        landed(row)
        if pushes[row].hasFollowUp, followUp[row].content.notBefore <= max(time, now) {
            absorbFollowUp(row, &tracker)
        }
        waitAgain(slot, until: time, now: now)
    }

    /// The push that waits in its queue rests until `time`.
    package mutating func rest(_ slot: UInt32, until time: MonotonicTime) {
        leaveWaiting(slot)
        pushes[Int(slot)].state = .resting
        resting.insert(slot, at: time)
    }

    /// The push is sent without an announcement, whatever it had.
    package mutating func withdrawAnnouncement(of slot: UInt32) {
        pushes[Int(slot)].isAnnounced = false
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

    /// The token of this push is gone. A waiting push ends at once and gives its claims back; one
    /// in flight is marked and ends with its outcome. True if it ended.
    package mutating func orphan(_ slot: UInt32, _ tracker: inout OffsetTracker) -> Bool {
        let row = Int(slot)
        if pushes[row].state == .inFlight {
            pushes[row].isOrphaned = true
            if pushes[row].hasFollowUp { dropFollowUp(row) { tracker.release($0) } }
            return false
        }
        endedForGood(slot) { tracker.release($0) }
        return true
    }

    // MARK: Inside

    private mutating func landed(_ row: Int) {
        precondition(pushes[row].state == .inFlight, "only a push in flight has an outcome")
        inFlightCount -= 1
    }

    mutating func leaveWaiting(_ slot: UInt32) {
        switch pushes[Int(slot)].state {
        case .queued: queues.remove(slot, in: &pushes)
        case .resting: resting.remove(slot)
        case .free, .inFlight:
            preconditionFailure("only a push that waits leaves its queue or rest: push \(slot)")
        }
    }

    /// The push that has landed waits until `time`, and for as long as it was asked to.
    private mutating func waitAgain(_ slot: UInt32, until time: MonotonicTime, now: MonotonicTime) {
        let notBefore = pushes[Int(slot)].held.content.notBefore
        restOrEnqueue(slot, until: max(time, notBefore), now: now)
    }

    mutating func restOrEnqueue(
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

    /// A newer payload may have made a background push of an alert, or the other way round.
    private mutating func becomeAsUrgentAsItsType(_ slot: UInt32) {
        let push = pushes[Int(slot)]
        if push.state == .queued, push.queue != queues.queue(of: push) { requeue(slot) }
    }

    /// A small event waits for the push, too.
    // Not inlined, since every push would otherwise pay for its size.
    @inline(never)
    mutating func leaveBulk(_ slot: UInt32) {
        pushes[Int(slot)].held.content.isBulk = false
        if pushes[Int(slot)].state == .queued { requeue(slot) }
    }

    private mutating func requeue(_ slot: UInt32) {
        queues.remove(slot, in: &pushes)
        queues.append(slot, in: &pushes)
    }

    // Not inlined, since every push would otherwise pay for its size.
    @inline(never)
    private mutating func countDeferredShare(_ count: Int, of route: RouteID) {
        let pool = Int(pools[Int(route.rawValue)].rawValue)
        if deferredShares[pool] == 0 { poolsWithDeferredShare += 1 }
        deferredShares[pool] += count
        deferredShareCount += count
        if deferredShares[pool] == 0 { poolsWithDeferredShare -= 1 }
    }

    mutating func recycle(_ slot: UInt32) {
        if pushes[Int(slot)].isOfDeferredShare {
            countDeferredShare(-1, of: pushes[Int(slot)].route)
        }
        pushes[Int(slot)].state = .free
        rows.give(slot)
    }
}
