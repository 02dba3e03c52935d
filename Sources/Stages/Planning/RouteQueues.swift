// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
internal import PushModel

/// A first-in, first-out queue per route, threaded through the pushes themselves, and a turn order
/// of routes per pool. Every step costs the same however many routes there are that have nothing
/// queued.
struct RouteQueues: ~Copyable {
    private var routes: Column<Queue>
    /// For each pool the routes that have something queued, the next to be served first.
    private var turns: [Turns]
    private(set) var count = 0

    private struct Queue: BitwiseCopyable {
        let pool: PoolID
        var head = PushTable.none
        var tail = PushTable.none
        var count = 0
    }

    private struct Turns {
        var routes: [RouteID] = []
        var position = 0

        /// Returns the route whose turn it is and passes the turn on; nil when all are blocked.
        mutating func next(isBlocked: (RouteID) -> Bool) -> RouteID? {
            for _ in 0..<routes.count {
                let route = routes[position]
                pass(to: position + 1)
                if !isBlocked(route) { return route }
            }
            return nil
        }

        mutating func leave(_ route: RouteID) {
            let index = routes.firstIndex(of: route)!
            routes.remove(at: index)
            pass(to: position - (index < position ? 1 : 0))
        }

        /// Wraps at once: a route that joins at the end comes after those that wait already.
        private mutating func pass(to next: Int) { position = next < routes.count ? next : 0 }
    }

    init(routing: RoutingTable) {
        routes = Column(capacity: routing.routes.count)
        for route in routing.routes { routes.append(Queue(pool: route.pool)) }
        turns = routing.pools.map { _ in Turns() }
    }

    func count(of route: RouteID) -> Int { routes[Int(route.rawValue)].count }

    func first(of route: RouteID) -> UInt32? {
        let head = routes[Int(route.rawValue)].head
        return head == PushTable.none ? nil : head
    }

    func hasQueued(in pool: PoolID) -> Bool { !turns[Int(pool.rawValue)].routes.isEmpty }

    mutating func append(_ slot: UInt32, in pushes: inout Column<WaitingPush>) {
        let route = pushes[Int(slot)].route
        let row = Int(route.rawValue)
        pushes[Int(slot)].next = PushTable.none
        pushes[Int(slot)].previous = routes[row].tail
        if routes[row].tail == PushTable.none {
            routes[row].head = slot
            turns[Int(routes[row].pool.rawValue)].routes.append(route)
        } else {
            pushes[Int(routes[row].tail)].next = slot
        }
        routes[row].tail = slot
        routes[row].count += 1
        count += 1
    }

    /// Returns the route whose turn it is and passes the turn on; nil when no route that is not
    /// blocked has anything queued.
    mutating func nextRoute(of pool: PoolID, isBlocked: (RouteID) -> Bool) -> RouteID? {
        turns[Int(pool.rawValue)].next(isBlocked: isBlocked)
    }

    mutating func popFirst(of route: RouteID, in pushes: inout Column<WaitingPush>) -> UInt32 {
        let slot = routes[Int(route.rawValue)].head
        precondition(slot != PushTable.none, "route \(route.rawValue) has nothing queued")
        remove(slot, in: &pushes)
        return slot
    }

    mutating func remove(_ slot: UInt32, in pushes: inout Column<WaitingPush>) {
        let route = pushes[Int(slot)].route
        let row = Int(route.rawValue)
        let (previous, next) = (pushes[Int(slot)].previous, pushes[Int(slot)].next)
        if previous == PushTable.none {
            routes[row].head = next
        } else {
            pushes[Int(previous)].next = next
        }
        if next == PushTable.none {
            routes[row].tail = previous
        } else {
            pushes[Int(next)].previous = previous
        }
        routes[row].count -= 1
        count -= 1
        if routes[row].count == 0 { turns[Int(routes[row].pool.rawValue)].leave(route) }
    }

    func checkInvariants(_ pushes: borrowing Column<WaitingPush>) {
        var total = 0
        for number in 0..<routes.count {
            let route = routes[number]
            var (slot, previous, length) = (route.head, PushTable.none, 0)
            while slot != PushTable.none {
                let push = pushes[Int(slot)]
                precondition(push.state == .queued, "a push in a queue is not queued")
                precondition(Int(push.route.rawValue) == number, "a push in another route's queue")
                precondition(push.previous == previous, "broken back link")
                (previous, slot, length) = (slot, push.next, length + 1)
            }
            precondition(
                previous == route.tail && length == route.count, "route \(number) miscounts")
            let listed = turns[Int(route.pool.rawValue)].routes
                .contains(RouteID(rawValue: UInt16(number)))
            precondition(listed == (length > 0), "route \(number) has no turn, or one too many")
            total += length
        }
        precondition(total == count, "the queues miscount")
    }
}
