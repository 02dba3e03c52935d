// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
internal import PushModel

/// A first-in, first-out queue per lane, threaded through the pushes themselves, and a turn order of
/// lanes per pool. Every step costs the same however many lanes there are that have nothing queued.
struct LaneQueues: ~Copyable {
    private var lanes: Column<Queue>
    /// For each pool the lanes that have something queued, the next to be served first.
    private var turns: [Turns]
    private(set) var count = 0

    private struct Queue: BitwiseCopyable {
        let pool: PoolID
        var head = PushTable.none
        var tail = PushTable.none
        var count = 0
    }

    private struct Turns {
        var lanes: [LaneID] = []
        var position = 0

        /// The lane whose turn it is, and the turn passes on.
        mutating func next(isBlocked: (LaneID) -> Bool) -> LaneID? {
            for _ in 0..<lanes.count {
                let lane = lanes[position]
                pass(to: position + 1)
                if !isBlocked(lane) { return lane }
            }
            return nil
        }

        mutating func leave(_ lane: LaneID) {
            let index = lanes.firstIndex(of: lane)!
            lanes.remove(at: index)
            pass(to: position - (index < position ? 1 : 0))
        }

        /// Wraps at once: a lane that joins at the end comes after those that wait already.
        private mutating func pass(to next: Int) { position = next < lanes.count ? next : 0 }
    }

    init(routing: RoutingTable) {
        lanes = Column(capacity: routing.lanes.count)
        for lane in routing.lanes { lanes.append(Queue(pool: lane.pool)) }
        turns = routing.pools.map { _ in Turns() }
    }

    func count(of lane: LaneID) -> Int { lanes[Int(lane.rawValue)].count }

    func first(of lane: LaneID) -> UInt32? {
        let head = lanes[Int(lane.rawValue)].head
        return head == PushTable.none ? nil : head
    }

    func hasQueued(in pool: PoolID) -> Bool { !turns[Int(pool.rawValue)].lanes.isEmpty }

    mutating func append(_ slot: UInt32, in pushes: inout Column<WaitingPush>) {
        let lane = pushes[Int(slot)].lane
        let row = Int(lane.rawValue)
        pushes[Int(slot)].next = PushTable.none
        pushes[Int(slot)].previous = lanes[row].tail
        if lanes[row].tail == PushTable.none {
            lanes[row].head = slot
            turns[Int(lanes[row].pool.rawValue)].lanes.append(lane)
        } else {
            pushes[Int(lanes[row].tail)].next = slot
        }
        lanes[row].tail = slot
        lanes[row].count += 1
        count += 1
    }

    /// The lane whose turn it is, and the turn passes on; nil when no open lane has anything.
    mutating func nextLane(of pool: PoolID, isBlocked: (LaneID) -> Bool) -> LaneID? {
        turns[Int(pool.rawValue)].next(isBlocked: isBlocked)
    }

    mutating func popFirst(of lane: LaneID, in pushes: inout Column<WaitingPush>) -> UInt32 {
        let slot = lanes[Int(lane.rawValue)].head
        precondition(slot != PushTable.none, "lane \(lane.rawValue) has nothing queued")
        remove(slot, in: &pushes)
        return slot
    }

    mutating func remove(_ slot: UInt32, in pushes: inout Column<WaitingPush>) {
        let lane = pushes[Int(slot)].lane
        let row = Int(lane.rawValue)
        let (previous, next) = (pushes[Int(slot)].previous, pushes[Int(slot)].next)
        if previous == PushTable.none {
            lanes[row].head = next
        } else {
            pushes[Int(previous)].next = next
        }
        if next == PushTable.none {
            lanes[row].tail = previous
        } else {
            pushes[Int(next)].previous = previous
        }
        lanes[row].count -= 1
        count -= 1
        if lanes[row].count == 0 { turns[Int(lanes[row].pool.rawValue)].leave(lane) }
    }

    func checkInvariants(_ pushes: borrowing Column<WaitingPush>) {
        var total = 0
        for number in 0..<lanes.count {
            let lane = lanes[number]
            var (slot, previous, length) = (lane.head, PushTable.none, 0)
            while slot != PushTable.none {
                let push = pushes[Int(slot)]
                precondition(push.state == .queued, "a push in a queue is not queued")
                precondition(Int(push.lane.rawValue) == number, "a push in another lane's queue")
                precondition(push.previous == previous, "broken back link")
                (previous, slot, length) = (slot, push.next, length + 1)
            }
            precondition(previous == lane.tail && length == lane.count, "lane \(number) miscounts")
            let listed = turns[Int(lane.pool.rawValue)].lanes
                .contains(LaneID(rawValue: UInt16(number)))
            precondition(listed == (length > 0), "lane \(number) has no turn, or one too many")
            total += length
        }
        precondition(total == count, "the queues miscount")
    }
}
