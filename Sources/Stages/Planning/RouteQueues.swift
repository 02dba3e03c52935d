// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
internal import PushModel

/// First-in, first-out queues, one for each route and urgency, threaded through the pushes
/// themselves. Of a pool the most urgent pushes go first (`UrgencyTurns`), and routes take turns
/// within an urgency. Every step costs the same however many routes there are that have nothing
/// queued.
struct RouteQueues: ~Copyable {
    /// By route, then by urgency.
    private var queues: Column<Queue>
    /// By pool, then by urgency.
    private var turns: [RouteTurns]
    /// By pool.
    private var urgencyTurns: Column<UrgencyTurns>
    /// The place in the order of urgencies, by push type: reading the table of types would cost each
    /// push more.
    private let ranks: [UInt8]
    private(set) var count = 0
    /// The place of the most urgent pushes that were ever queued.
    private var mostUrgentRank = UInt8(Self.urgencies - 1)

    private struct Queue: BitwiseCopyable {
        let pool: PoolID
        var head = PushTable.none
        var tail = PushTable.none
        var count = 0
    }

    // A literal, since calls into the module of `Urgency` cost 30 instructions a push.
    private static var urgencies: Int { 3 }

    init(routing: RoutingTable) {
        precondition(Urgency.allCases.count == Self.urgencies, "an urgency without queues")
        queues = Column(capacity: routing.routes.count * Self.urgencies)
        for route in routing.routes {
            for _ in 0..<Self.urgencies { queues.append(Queue(pool: route.pool)) }
        }
        turns = Array(repeating: RouteTurns(), count: routing.pools.count * Self.urgencies)
        urgencyTurns = Column(capacity: routing.pools.count)
        for _ in routing.pools { urgencyTurns.append(UrgencyTurns()) }
        ranks = PushType.all.map(\.urgency.rawValue)
    }

    /// The queue of pushes of this route and type.
    func queue(_ route: RouteID, _ type: PushType) -> UInt32 {
        UInt32(Int(route.rawValue) * Self.urgencies + Int(ranks[Int(type.rawValue)]))
    }

    private static func queue(_ route: RouteID, _ urgency: Urgency) -> Int {
        Int(route.rawValue) * urgencies + Int(urgency.rawValue)
    }

    private static func turn(_ pool: PoolID, rank: Int) -> Int {
        Int(pool.rawValue) * urgencies + rank
    }

    var mostUrgent: Urgency { Urgency(rawValue: mostUrgentRank)! }

    func count(of route: RouteID) -> Int {
        Urgency.allCases.reduce(0) { $0 + count(of: route, $1) }
    }

    func count(of route: RouteID, _ urgency: Urgency) -> Int {
        queues[Self.queue(route, urgency)].count
    }

    func first(of route: RouteID, _ urgency: Urgency) -> UInt32? {
        let head = queues[Self.queue(route, urgency)].head
        return head == PushTable.none ? nil : head
    }

    func last(of route: RouteID, _ urgency: Urgency) -> UInt32? {
        let tail = queues[Self.queue(route, urgency)].tail
        return tail == PushTable.none ? nil : tail
    }

    func hasQueued(in pool: PoolID) -> Bool { urgencyTurns[Int(pool.rawValue)].waiting != 0 }

    mutating func append(_ slot: UInt32, in pushes: inout Column<WaitingPush>) {
        let route = pushes[Int(slot)].route
        let queue = queue(route, pushes[Int(slot)].held.content.type)
        let row = Int(queue)
        let last = queues[row].tail
        pushes[Int(slot)].queue = queue
        pushes[Int(slot)].next = PushTable.none
        pushes[Int(slot)].previous = last
        if last == PushTable.none {
            queues[row].head = slot
            join(route, queue: row)
        } else {
            pushes[Int(last)].next = slot
        }
        queues[row].tail = slot
        queues[row].count += 1
        count += 1
    }

    /// Takes the push whose turn it is in this pool and passes the turn on; nil when no route that is
    /// not blocked has anything queued.
    mutating func popNext(
        of pool: PoolID, in pushes: inout Column<WaitingPush>, isBlocked: (RouteID) -> Bool
    ) -> UInt32? {
        // Nearly always the pushes that wait are equally urgent: one bit is set, or none.
        let waiting = urgencyTurns[Int(pool.rawValue)].waiting
        guard waiting & (waiting &- 1) == 0 else {
            return popOfSeveral(of: pool, in: &pushes, isBlocked: isBlocked)
        }
        guard waiting != 0 else { return nil }
        return popFirst(
            of: pool, rank: waiting.trailingZeroBitCount, in: &pushes, isBlocked: isBlocked)
    }

    // Not inlined, since every push would otherwise pay for its size.
    @inline(never)
    private mutating func popOfSeveral(
        of pool: PoolID, in pushes: inout Column<WaitingPush>, isBlocked: (RouteID) -> Bool
    ) -> UInt32? {
        var order = urgencyTurns[Int(pool.rawValue)].begun
        while let rank = order.next() {
            let taken = popFirst(of: pool, rank: rank, in: &pushes, isBlocked: isBlocked)
            guard let taken else { continue }
            urgencyTurns[Int(pool.rawValue)].served(by: order)
            return taken
        }
        return nil
    }

    private mutating func popFirst(
        of pool: PoolID, rank: Int, in pushes: inout Column<WaitingPush>,
        isBlocked: (RouteID) -> Bool
    ) -> UInt32? {
        guard let route = turns[Self.turn(pool, rank: rank)].next(isBlocked: isBlocked) else {
            return nil
        }
        let row = Int(route.rawValue) * Self.urgencies + rank
        let slot = queues[row].head
        precondition(slot != PushTable.none, "route \(route.rawValue) has nothing queued")
        let next = pushes[Int(slot)].next
        queues[row].head = next
        queues[row].count -= 1
        count -= 1
        if next == PushTable.none {
            queues[row].tail = PushTable.none
            leave(route, queue: row)
        } else {
            pushes[Int(next)].previous = PushTable.none
            pushes.prefetch(Int(next))
        }
        return slot
    }

    mutating func remove(_ slot: UInt32, in pushes: inout Column<WaitingPush>) {
        let row = Int(pushes[Int(slot)].queue)
        let (previous, next) = (pushes[Int(slot)].previous, pushes[Int(slot)].next)
        if previous == PushTable.none {
            queues[row].head = next
        } else {
            pushes[Int(previous)].next = next
        }
        if next == PushTable.none {
            queues[row].tail = previous
        } else {
            pushes[Int(next)].previous = previous
        }
        queues[row].count -= 1
        count -= 1
        if queues[row].count == 0 { leave(pushes[Int(slot)].route, queue: row) }
    }

    /// The queue of this route, which was empty, has a push.
    private mutating func join(_ route: RouteID, queue: Int) {
        let (pool, rank) = (queues[queue].pool, queue % Self.urgencies)
        turns[Self.turn(pool, rank: rank)].join(route)
        urgencyTurns[Int(pool.rawValue)].join(rank)
        mostUrgentRank = min(mostUrgentRank, UInt8(rank))
    }

    /// The queue of this route is empty.
    private mutating func leave(_ route: RouteID, queue: Int) {
        let (pool, rank) = (queues[queue].pool, queue % Self.urgencies)
        let turn = Self.turn(pool, rank: rank)
        turns[turn].leave(route)
        if turns[turn].routes.isEmpty { urgencyTurns[Int(pool.rawValue)].leave(rank) }
    }

    func checkInvariants(_ pushes: borrowing Column<WaitingPush>) {
        var total = 0
        for row in 0..<queues.count {
            let queue = queues[row]
            let route = RouteID(rawValue: UInt16(row / Self.urgencies))
            let rank = row % Self.urgencies
            var (slot, previous, length) = (queue.head, PushTable.none, 0)
            while slot != PushTable.none {
                let push = pushes[Int(slot)]
                precondition(push.state == .queued, "a push in a queue is not queued")
                precondition(
                    push.route == route && push.queue == row, "a push in another's queue")
                precondition(push.previous == previous, "broken back link")
                (previous, slot, length) = (slot, push.next, length + 1)
            }
            precondition(
                previous == queue.tail && length == queue.count, "route \(route) miscounts")
            let turns = turns[Self.turn(queue.pool, rank: rank)]
            precondition(
                turns.routes.contains(route) == (length > 0),
                "route \(route) has no turn, or one too many")
            precondition(
                urgencyTurns[Int(queue.pool.rawValue)].has(rank) == !turns.routes.isEmpty,
                "an urgency has no turn, or one too many")
            total += length
        }
        precondition(total == count, "the queues miscount")
    }
}
