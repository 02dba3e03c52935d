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
    private var urgencyTurns: [UrgencyTurns]
    /// By push type: reading the table of types would cost each push more.
    private let urgencies: [Urgency]
    private(set) var count = 0
    /// The most urgent pushes that were ever queued.
    private(set) var mostUrgent = Urgency.background

    private struct Queue: BitwiseCopyable {
        let pool: PoolID
        var head = PushTable.none
        var tail = PushTable.none
        var count = 0
    }

    private static var perRoute: Int { Int(Urgency.count) }

    init(routing: RoutingTable) {
        queues = Column(capacity: routing.routes.count * Self.perRoute)
        for route in routing.routes {
            for _ in Urgency.allCases { queues.append(Queue(pool: route.pool)) }
        }
        turns = Array(repeating: RouteTurns(), count: routing.pools.count * Self.perRoute)
        urgencyTurns = Array(repeating: UrgencyTurns(), count: routing.pools.count)
        urgencies = PushType.all.map(\.urgency)
    }

    private static func row(_ route: RouteID, _ urgency: Urgency) -> Int {
        Int(route.rawValue) * perRoute + Int(urgency.rawValue)
    }

    private static func row(_ pool: PoolID, _ urgency: Urgency) -> Int {
        Int(pool.rawValue) * perRoute + Int(urgency.rawValue)
    }

    func count(of route: RouteID) -> Int {
        Urgency.allCases.reduce(0) { $0 + count(of: route, $1) }
    }

    func count(of route: RouteID, _ urgency: Urgency) -> Int {
        queues[Self.row(route, urgency)].count
    }

    func first(of route: RouteID, _ urgency: Urgency) -> UInt32? {
        let head = queues[Self.row(route, urgency)].head
        return head == PushTable.none ? nil : head
    }

    func hasQueued(in pool: PoolID) -> Bool { urgencyTurns[Int(pool.rawValue)].waiting != 0 }

    /// How urgent a push of this type is.
    func urgency(of type: PushType) -> Urgency { urgencies[Int(type.rawValue)] }

    mutating func append(_ slot: UInt32, in pushes: inout Column<WaitingPush>) {
        let route = pushes[Int(slot)].route
        let urgency = urgency(of: pushes[Int(slot)].held.content.type)
        let row = Self.row(route, urgency)
        pushes[Int(slot)].urgency = urgency
        pushes[Int(slot)].next = PushTable.none
        pushes[Int(slot)].previous = queues[row].tail
        if queues[row].tail == PushTable.none {
            queues[row].head = slot
            turns[Self.row(queues[row].pool, urgency)].join(route)
            urgencyTurns[Int(queues[row].pool.rawValue)].join(urgency)
            mostUrgent = min(mostUrgent, urgency)
        } else {
            pushes[Int(queues[row].tail)].next = slot
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
        var urgencies = urgencyTurns[Int(pool.rawValue)]
        let next = urgencies.next { turns[Self.row(pool, $0)].next(isBlocked: isBlocked) }
        urgencyTurns[Int(pool.rawValue)] = urgencies
        guard let (route, urgency) = next else { return nil }
        let slot = queues[Self.row(route, urgency)].head
        precondition(slot != PushTable.none, "route \(route.rawValue) has nothing queued")
        remove(slot, in: &pushes)
        let following = queues[Self.row(route, urgency)].head
        if following != PushTable.none { pushes.prefetch(Int(following)) }
        return slot
    }

    mutating func remove(_ slot: UInt32, in pushes: inout Column<WaitingPush>) {
        let (route, urgency) = (pushes[Int(slot)].route, pushes[Int(slot)].urgency)
        let row = Self.row(route, urgency)
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
        if queues[row].count == 0 { leave(route, urgency, of: queues[row].pool) }
    }

    private mutating func leave(_ route: RouteID, _ urgency: Urgency, of pool: PoolID) {
        let row = Self.row(pool, urgency)
        turns[row].leave(route)
        if turns[row].routes.isEmpty { urgencyTurns[Int(pool.rawValue)].leave(urgency) }
    }

    func checkInvariants(_ pushes: borrowing Column<WaitingPush>) {
        var total = 0
        for row in 0..<queues.count {
            let queue = queues[row]
            let route = RouteID(rawValue: UInt16(row / Self.perRoute))
            let urgency = Urgency.allCases[row % Self.perRoute]
            var (slot, previous, length) = (queue.head, PushTable.none, 0)
            while slot != PushTable.none {
                let push = pushes[Int(slot)]
                precondition(push.state == .queued, "a push in a queue is not queued")
                precondition(
                    push.route == route && push.urgency == urgency, "a push in another's queue")
                precondition(push.previous == previous, "broken back link")
                (previous, slot, length) = (slot, push.next, length + 1)
            }
            precondition(
                previous == queue.tail && length == queue.count, "route \(route) miscounts")
            let turns = turns[Self.row(queue.pool, urgency)]
            precondition(
                turns.routes.contains(route) == (length > 0),
                "route \(route) has no turn, or one too many")
            precondition(
                urgencyTurns[Int(queue.pool.rawValue)].has(urgency) == !turns.routes.isEmpty,
                "an urgency has no turn, or one too many")
            total += length
        }
        precondition(total == count, "the queues miscount")
    }
}
