// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Planning
internal import PushModel

/// Bulkheads: when slots run short, pushes that have more than their share of them go to `deferred`,
/// those of a slow pool and the less urgent ones.
extension DeferredPushes {
    /// Any pool may use slots that no other one wants. When slots run short while other pools send
    /// too, a pool whose queue hardly moves goes back to its fair share.
    mutating func relieveSlowestPool(
        _ state: inout PipelineState,
        now: Now
    ) {
        let slots = state.settings.sizes.slots
        guard state.breakers.poolCount > 1, state.freeEventSlots * 4 < slots else { return }
        let queued = state.queuedPerPool(state.breakers.poolCount)
        let slow = queued.indices.max { queued[$0] < queued[$1] }!
        let busySince = now.monotonic - state.settings.sizes.holdMax
        let hasOthers = queued.indices.contains { index in
            let pool = PoolID(rawValue: UInt16(index))
            return index != slow
                && (state.pushes.hasQueued(in: pool)
                    || state.breakers.wasUsed(pool, since: busySince))
        }
        guard hasOthers else { return }
        let stuckSince = now.monotonic - state.settings.sizes.holdMax / 4
        let sharing = queued.indices.count { index in
            queued[index] > 0 || state.breakers.isInUse(PoolID(rawValue: UInt16(index)))
        }
        let share = slots / sharing
        for index in state.routes.indices where Int(state.routes[index].pool.rawValue) == slow {
            let route = RouteID(rawValue: UInt16(index))
            guard let head = state.pushes.firstQueued(of: route),
                state.pushes[head].queuedAt <= stuckSince
            else { continue }
            let surplus = max(0, state.queuedPerPool(state.breakers.poolCount)[slow] - share)
            let kept = max(0, state.pushes.queuedCount(of: route) - surplus)
            spill(route, to: kept, &state, now: now)
        }
    }

    /// When events have taken a quarter of the slots that fan-outs leave to them, less urgent pushes make
    /// room, the least urgent first: an event whose push is more urgent may stand next in Kafka, and is
    /// read only when there is room. Where all pushes have been equally urgent, events wait in Kafka.
    mutating func makeRoomForUrgent(
        _ state: inout PipelineState,
        now: Now
    ) {
        let room = state.settings.sizes.slotsKeptForEvents
        let forOneEvent = state.settings.sizes.immediateFanOutMax + 1
        guard state.freeEventSlots < max(room * 3 / 4, min(forOneEvent, room)) else { return }
        for urgency in Urgency.allCases.reversed() where urgency > state.pushes.mostUrgent {
            for route in state.routesByQueued(urgency) {
                let missing = max(room, forOneEvent) - state.freeEventSlots
                guard missing > 0, hasRoom(state) else { return }
                let slots = state.pushes.lastQueuedOfEvents(
                    route, urgency, most: min(missing, HoldWatch.spillMax),
                    steps: HoldWatch.chunk)
                for slot in slots where hasRoom(state) {
                    deferOrSetAside(slot, &state, now: now)
                }
            }
        }
    }

    // MARK: The share of deferred pushes

    /// How many more slots of the deferred pushes' share this pool may take.
    func shareLeft(
        _ pool: PoolID, _ state: borrowing PipelineState
    ) -> Int {
        min(
            state.settings.sizes.deferredSlots - state.pushes.deferredShareCount,
            shareMax(of: pool, state) - state.pushes.deferredShareCount(of: pool))
    }

    /// The most slots of that share that this pool may have. An equal part, and one more part is left
    /// for a pool that has none yet. While its breaker is not closed, what it probes with.
    private func shareMax(
        of pool: PoolID, _ state: borrowing PipelineState
    ) -> Int {
        let slots = state.settings.sizes.deferredSlots
        guard state.breakers.isClosed(pool) else { return max(HoldWatch.probesKept, slots / 16) }
        let isNew = state.pushes.deferredShareCount(of: pool) == 0
        let sharing = state.pushes.poolsWithDeferredShare + (isNew ? 1 : 0)
        guard sharing < state.breakers.poolCount else { return max(1, slots / sharing) }
        return sharing == 1 ? slots - slots / 4 : max(1, slots / (sharing + 1))
    }

    /// Gives pushes back to their rows that their pool does not take: all but a few probes where a
    /// breaker is open or an operator has paused them, and what is above the pool's part where none is
    /// left for others. No record is needed.
    mutating func giveBackRows(
        _ state: inout PipelineState,
        now: Now
    ) {
        guard state.pushes.deferredShareCount > 0 else { return }
        let isUsedUp = state.pushes.deferredShareCount >= state.settings.sizes.deferredSlots
        for index in state.routes.indices {
            let route = RouteID(rawValue: UInt16(index))
            let pool = state.routes[index].pool
            let count = state.pushes.deferredShareCount(of: pool)
            guard count > 0 else { continue }
            var most = 0
            var kept = 0
            if isUsedUp || !state.breakers.isClosed(pool) {
                most = min(count - shareMax(of: pool, state), HoldWatch.spillMax)
            } else if !state.breakers.isClosed(route) {
                most = HoldWatch.spillMax
                kept = state.breakers.areClosed(route) ? 0 : HoldWatch.probesKept
            }
            guard most > 0 else { continue }
            let slots = state.pushes.lastQueuedOfDeferred(
                route, most: most + kept, steps: HoldWatch.chunk)
            for slot in slots.dropLast(kept) where hasRoom(state) {
                deferOrSetAside(slot, &state, now: now)
            }
        }
    }

    /// Defers the pushes that have waited longest in this route, until `kept` are left.
    mutating func spill(
        _ route: RouteID, to kept: Int, _ state: inout PipelineState, now: Now
    ) {
        var left = HoldWatch.spillMax
        while left > 0, state.pushes.queuedCount(of: route) > kept, hasRoom(state),
            let slot = state.pushes.firstQueued(of: route)
        {
            deferOrSetAside(slot, &state, now: now)
            left -= 1
        }
    }

    /// A push whose partition of `deferred` has no room rests: those behind it have another one.
    private mutating func deferOrSetAside(
        _ slot: UInt32, _ state: inout PipelineState, now: Now
    ) {
        if !deferUntilSendable(slot, &state, now: now) {
            state.pushes.rest(slot, until: now.monotonic + Self.roomRetry)
        }
    }
}

extension PipelineState {
    /// The routes that have pushes of this urgency queued, those with the most first.
    fileprivate func routesByQueued(_ urgency: Urgency) -> [RouteID] {
        routes.indices
            .map { index in
                let route = RouteID(rawValue: UInt16(index))
                return (route, count: pushes.queuedCount(of: route, urgency))
            }
            .filter { $0.count > 0 }
            .sorted { $0.count > $1.count }
            .map(\.0)
    }

    fileprivate func queuedPerPool(_ pools: Int) -> [Int] {
        var queued = Array(repeating: 0, count: pools)
        for index in routes.indices {
            let route = RouteID(rawValue: UInt16(index))
            queued[Int(routes[index].pool.rawValue)] += pushes.queuedCount(of: route)
        }
        return queued
    }
}
