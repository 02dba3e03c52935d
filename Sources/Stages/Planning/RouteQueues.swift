// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import FlatMemory
package import PushModel

/// One of the two lines in which the pushes of a pool wait. Who takes from them decides how much of
/// each (`PatientShare`): a batch is of one line, so no push pays for that.
package struct PoolLine: BitwiseCopyable, Sendable {
    /// The place of the line among those of all pools.
    let index: Int

    /// - Parameter isPatient: whether it is the line of patient pushes, those of large audiences, of
    ///   `deferred` and of background urgency, or that of prompt ones, which somebody waits for.
    package init(_ pool: PoolID, isPatient: Bool) {
        index = Int(pool.rawValue) * Self.perPool + (isPatient ? 1 : 0)
    }

    package var pool: PoolID { PoolID(rawValue: UInt16(index / Self.perPool)) }

    static var perPool: Int { 2 }
}

/// First-in, first-out queues, threaded through the pushes themselves: of each route and urgency one
/// for pushes of small events and one for bulk. Each belongs to a line of its pool. Of a line the most
/// urgent pushes go first (`UrgencyTurns`), and queues take turns within an urgency. Every step costs
/// the same however many queues are empty.
struct RouteQueues: ~Copyable {
    /// By route, then by urgency; that of bulk is the second of its urgency.
    private var queues: Column<Queue>
    /// By line, then by urgency.
    private var turns: [RouteTurns]
    /// By line.
    private var urgencyTurns: Column<UrgencyTurns>
    /// The place in the order of urgencies, by push type: reading the table of types would cost each
    /// push more.
    private let ranks: [UInt8]
    private(set) var count = 0
    /// The place of the most urgent pushes that were ever queued.
    private var mostUrgentRank = UInt8(Self.urgencies - 1)

    private struct Queue: BitwiseCopyable {
        let route: RouteID
        let line: PoolLine
        var head = PushTable.none
        var tail = PushTable.none
        var count = 0
    }

    // A literal, since calls into the module of `Urgency` cost 30 instructions a push.
    private static var urgencies: Int { 3 }
    private static var perUrgency: Int { 2 }
    private static var perRoute: Int { urgencies * perUrgency }

    init(routing: RoutingTable) {
        precondition(Urgency.allCases.count == Self.urgencies, "each urgency has queues")
        queues = Column(capacity: routing.routes.count * Self.perRoute)
        for (number, route) in routing.routes.enumerated() {
            for row in 0..<Self.perRoute {
                let isBulk = row % Self.perUrgency == 1
                let isBackground = row / Self.perUrgency == Int(Urgency.background.rawValue)
                queues.append(
                    Queue(
                        route: RouteID(rawValue: UInt16(number)),
                        line: PoolLine(route.pool, isPatient: isBulk || isBackground)))
            }
        }
        let lines = routing.pools.count * PoolLine.perPool
        turns = Array(repeating: RouteTurns(), count: lines * Self.urgencies)
        urgencyTurns = Column(capacity: lines)
        for _ in 0..<lines { urgencyTurns.append(UrgencyTurns()) }
        ranks = PushType.all.map(\.urgency.rawValue)
    }

    /// The queue in which this push belongs.
    func queue(of push: borrowing Push) -> UInt32 {
        let rank = Int(ranks[Int(push.held.content.type.rawValue)])
        return UInt32(Self.queue(push.route, rank: rank, isBulk: push.held.content.isBulk))
    }

    private static func queue(_ route: RouteID, rank: Int, isBulk: Bool) -> Int {
        (Int(route.rawValue) * urgencies + rank) * perUrgency + (isBulk ? 1 : 0)
    }

    private func queue(_ route: RouteID, _ urgency: Urgency, isBulk: Bool) -> Queue {
        queues[Self.queue(route, rank: Int(urgency.rawValue), isBulk: isBulk)]
    }

    private static func rank(ofQueue queue: Int) -> Int { queue / perUrgency % urgencies }

    private static func turn(_ line: PoolLine, rank: Int) -> Int { line.index * urgencies + rank }

    var mostUrgent: Urgency { Urgency(rawValue: mostUrgentRank)! }

    func count(of route: RouteID) -> Int {
        let first = Int(route.rawValue) * Self.perRoute
        var count = 0
        for row in first..<(first + Self.perRoute) { count += queues[row].count }
        return count
    }

    /// The push that has stood longest in the route's queues: of the least urgent, and of bulk first.
    func firstOfLeastUrgent(_ route: RouteID) -> UInt32? {
        let first = Int(route.rawValue) * Self.perRoute
        var row = first + Self.perRoute - 1
        while row >= first, queues[row].head == PushTable.none { row -= 1 }
        return row >= first ? queues[row].head : nil
    }

    func count(of route: RouteID, _ urgency: Urgency) -> Int {
        queue(route, urgency, isBulk: false).count + queue(route, urgency, isBulk: true).count
    }

    func last(of route: RouteID, _ urgency: Urgency, isBulk: Bool) -> UInt32? {
        let tail = queue(route, urgency, isBulk: isBulk).tail
        return tail == PushTable.none ? nil : tail
    }

    func hasQueued(in line: PoolLine) -> Bool { urgencyTurns[line.index].waiting != 0 }

    mutating func append(_ slot: UInt32, in pushes: inout Column<Push>) {
        let queue = queue(of: pushes[Int(slot)])
        let row = Int(queue)
        let last = queues[row].tail
        pushes[Int(slot)].queue = queue
        pushes[Int(slot)].next = PushTable.none
        pushes[Int(slot)].previous = last
        if last == PushTable.none {
            queues[row].head = slot
            join(row)
        } else {
            pushes[Int(last)].next = slot
        }
        queues[row].tail = slot
        queues[row].count += 1
        count += 1
    }

    /// Takes the push whose turn it is in this line and passes the turn on; nil when no route that is
    /// not blocked has anything queued there.
    mutating func popNext(
        of line: PoolLine, in pushes: inout Column<Push>, isBlocked: (RouteID) -> Bool
    ) -> UInt32? {
        // Nearly always the pushes that wait are equally urgent: one bit is set, or none.
        let waiting = urgencyTurns[line.index].waiting
        guard waiting & (waiting &- 1) == 0 else {
            return popOfSeveral(of: line, in: &pushes, isBlocked: isBlocked)
        }
        guard waiting != 0 else { return nil }
        // 1, 2 and 4 become 0, 1 and 2.
        return popFirst(of: line, rank: Int(waiting >> 1), in: &pushes, isBlocked: isBlocked)
    }

    // Not inlined, since every push would otherwise pay for its size.
    @inline(never)
    private mutating func popOfSeveral(
        of line: PoolLine, in pushes: inout Column<Push>, isBlocked: (RouteID) -> Bool
    ) -> UInt32? {
        var order = urgencyTurns[line.index].begun
        while let rank = order.next() {
            let taken = popFirst(of: line, rank: rank, in: &pushes, isBlocked: isBlocked)
            guard let taken else { continue }
            urgencyTurns[line.index].served(by: order)
            return taken
        }
        return nil
    }

    private mutating func popFirst(
        of line: PoolLine, rank: Int, in pushes: inout Column<Push>,
        isBlocked: (RouteID) -> Bool
    ) -> UInt32? {
        let next = turns[Self.turn(line, rank: rank)].next { isBlocked(queues[Int($0)].route) }
        guard let next else { return nil }
        let row = Int(next)
        let slot = queues[row].head
        precondition(slot != PushTable.none, "a queue that has a turn has a push: queue \(row)")
        let following = pushes[Int(slot)].next
        queues[row].head = following
        queues[row].count -= 1
        count -= 1
        if following == PushTable.none {
            queues[row].tail = PushTable.none
            leave(row)
        } else {
            pushes[Int(following)].previous = PushTable.none
            pushes.prefetch(Int(following))
        }
        return slot
    }

    mutating func remove(_ slot: UInt32, in pushes: inout Column<Push>) {
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
        if queues[row].count == 0 { leave(row) }
    }

    /// This queue, which was empty, has a push.
    private mutating func join(_ queue: Int) {
        let (line, rank) = (queues[queue].line, Self.rank(ofQueue: queue))
        turns[Self.turn(line, rank: rank)].join(UInt32(queue))
        urgencyTurns[line.index].join(rank)
        mostUrgentRank = min(mostUrgentRank, UInt8(rank))
    }

    /// This queue is empty.
    private mutating func leave(_ queue: Int) {
        let (line, rank) = (queues[queue].line, Self.rank(ofQueue: queue))
        let turn = Self.turn(line, rank: rank)
        turns[turn].leave(UInt32(queue))
        if turns[turn].queues.isEmpty { urgencyTurns[line.index].leave(rank) }
    }

    func checkInvariants(_ pushes: borrowing Column<Push>) {
        var total = 0
        for row in 0..<queues.count {
            let queue = queues[row]
            let rank = Self.rank(ofQueue: row)
            var (slot, previous, length) = (queue.head, PushTable.none, 0)
            while slot != PushTable.none {
                let push = pushes[Int(slot)]
                precondition(push.state == .queued, "a push in a queue is in state queued")
                precondition(
                    push.route == queue.route && push.queue == row,
                    "a push names the route and the queue that it stands in")
                precondition(
                    push.previous == previous, "a push's back link names the list entry before it")
                (previous, slot, length) = (slot, push.next, length + 1)
            }
            precondition(
                previous == queue.tail && length == queue.count,
                "a queue's tail and count are those of its list: queue \(row)")
            let turns = turns[Self.turn(queue.line, rank: rank)]
            precondition(
                turns.queues.contains(UInt32(row)) == (length > 0),
                "a queue has a turn exactly while it has pushes: queue \(row)")
            precondition(
                urgencyTurns[queue.line.index].has(rank) == !turns.queues.isEmpty,
                "an urgency has a turn exactly while one of its queues has")
            total += length
        }
        precondition(total == count, "the count of queued pushes is that of all queues")
    }
}
