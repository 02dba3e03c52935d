// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
package import PushModel

/// Pushes that wait too long.
extension PushTable {
    /// The next waiting push that has held an offset since `time` or longer. It looks at no more
    /// than `steps` slots and subtracts those it has looked at. Calls go round all slots in turn.
    package mutating func nextHeld(since time: MonotonicTime, steps: inout Int) -> UInt32? {
        while let slot = nextWaiting(steps: &steps) {
            if heldSince(Int(slot)) <= time { return slot }
        }
        return nil
    }

    /// The next push that waits, for whatever reason; goes round the slots as `nextHeld` does.
    package mutating func nextWaiting(steps: inout Int) -> UInt32? {
        while steps > 0, pushes.count > 0 {
            steps -= 1
            watchPosition += 1
            if watchPosition >= pushes.count {
                watchPosition = 0
                waitingSince.lapEnded()
            }
            if isWaiting(watchPosition) {
                let slot = UInt32(watchPosition)
                waitingSince.saw(pushes[watchPosition].content.writtenAt, in: slot)
                return slot
            }
        }
        return nil
    }

    /// There is no push to look at. What the last laps have seen is over: without this it would be
    /// told of pushes that come later.
    package mutating func endLaps() { waitingSince = OldestWaiting() }

    /// When the oldest event was written of which a push waits, as far as that is known; nil if none
    /// waits. It may be out of date by two laps of the watch.
    package var oldestWaitingWrittenAt: WallTime? {
        queuedCount + restingCount > 0 ? waitingSince.oldest?.writtenAt : nil
    }

    /// The push that has waited longest; nil if none waits, or if it has gone since it was last seen.
    package var oldestWaiting: UInt32? {
        guard let oldest = waitingSince.oldest, isWaiting(Int(oldest.slot)),
            pushes[Int(oldest.slot)].content.writtenAt == oldest.writtenAt
        else { return nil }
        return oldest.slot
    }

    func isWaiting(_ row: Int) -> Bool {
        pushes[row].state == .queued || pushes[row].state == .resting
    }

    /// Since when the push, or its follow-up, holds an offset.
    func heldSince(_ row: Int) -> MonotonicTime {
        let since = pushes[row].held.heldSince
        return pushes[row].hasFollowUp ? min(since, followUp[row].heldSince) : since
    }

    package func heldSince(of slot: UInt32) -> MonotonicTime { heldSince(Int(slot)) }

    /// The push that has stood longest in this route's queues, of those that are least urgent, and of
    /// large audiences first.
    package func firstQueued(of route: RouteID) -> UInt32? {
        queues.firstOfLeastUrgent(route)
    }

    /// The most urgent pushes that there have been since the start.
    package var mostUrgent: Urgency { queues.mostUrgent }

    package func queuedCount(of route: RouteID, _ urgency: Urgency) -> Int {
        queues.count(of: route, urgency)
    }

    /// The pushes of this route and urgency that would be sent last, those of large audiences first,
    /// without those that came from `deferred`. It looks at no more than `steps` pushes of a queue.
    package func lastQueuedOfEvents(
        _ route: RouteID, _ urgency: Urgency, most: Int, steps: Int
    ) -> [UInt32] {
        lastQueued(route, urgency, ofDeferredShare: false, most: most, steps: steps)
    }

    /// The pushes of this route that came from `deferred` and would be sent last. It looks at no more
    /// than `steps` pushes of a queue.
    package func lastQueuedOfDeferred(_ route: RouteID, most: Int, steps: Int) -> [UInt32] {
        var slots: [UInt32] = []
        for urgency in Urgency.allCases.reversed() where slots.count < most {
            slots += lastQueued(
                route, urgency, ofDeferredShare: true, most: most - slots.count, steps: steps)
        }
        return slots
    }

    private func lastQueued(
        _ route: RouteID, _ urgency: Urgency, ofDeferredShare isDeferred: Bool, most: Int,
        steps: Int
    ) -> [UInt32] {
        var slots: [UInt32] = []
        for isBulk in [true, false] {
            var next = queues.last(of: route, urgency, isBulk: isBulk) ?? Self.none
            var left = steps
            while next != Self.none, left > 0, slots.count < most {
                if pushes[Int(next)].isOfDeferredShare == isDeferred { slots.append(next) }
                next = pushes[Int(next)].previous
                left -= 1
            }
        }
        return slots
    }
}

/// Finds the oldest of the events that pushes wait for, lap by lap: a look at every slot for each
/// question would hold up the planner.
struct OldestWaiting {
    struct Sighting {
        var writtenAt: WallTime
        var slot: UInt32
    }

    private var lastLap: Sighting?
    private var thisLap: Sighting?

    var oldest: Sighting? {
        guard let lastLap, let thisLap else { return lastLap ?? thisLap }
        return thisLap.writtenAt < lastLap.writtenAt ? thisLap : lastLap
    }

    mutating func saw(_ writtenAt: WallTime, in slot: UInt32) {
        // 0 stands for a time that is not known.
        guard writtenAt.milliseconds > 0 else { return }
        if let thisLap, thisLap.writtenAt <= writtenAt { return }
        thisLap = Sighting(writtenAt: writtenAt, slot: slot)
    }

    mutating func lapEnded() {
        lastLap = thisLap
        thisLap = nil
    }
}
