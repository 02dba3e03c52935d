// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Planning
internal import PushModel
internal import Testing

@Suite struct `Routes of one pool` {
    private static let routes = [
        PlanningBench.route("one", .control), PlanningBench.route("one", .widget),
        PlanningBench.route("two", .control),
    ]

    @Test func `routes of one pool take turns, however much one of them has queued`() {
        var bench = PlanningBench(slots: 200)
        let slots = bench.queue([100, 10, 5], in: Self.routes)
        var order: [RouteID] = []
        while let slot = bench.take() { order.append(bench.table.route(of: slot)) }
        #expect(order.count == slots.count)
        for turn in 0..<5 { #expect(Set(order[(3 * turn)..<(3 * turn + 3)]).count == 3) }
        let two = order[15..<25]
        #expect(two.filter { $0 == Self.routes[1] }.count == 5)
        #expect(order[25...].allSatisfy { $0 == Self.routes[0] })
    }

    @Test func `routes of one pool are each first in, first out`() {
        var bench = PlanningBench(slots: 100)
        let slots = bench.queue([20, 20, 20], in: Self.routes)
        var taken: [[UInt32]] = [[], [], []]
        while let slot = bench.take() {
            taken[Self.routes.firstIndex(of: bench.table.route(of: slot))!].append(slot)
        }
        #expect(taken.flatMap(\.self) == slots)
    }

    @Test func `routes of one pool that are blocked are passed over and lose nothing`() {
        var bench = PlanningBench(slots: 100)
        _ = bench.queue([10, 10, 10], in: Self.routes)
        let blocked = Self.routes[1]
        var taken = 0
        while let slot = bench.take(isBlocked: { $0 == blocked }) {
            #expect(bench.table.route(of: slot) != blocked)
            taken += 1
        }
        #expect(taken == 20)
        #expect(bench.table.queuedCount(of: blocked) == 10)
        while bench.take() != nil { taken += 1 }
        #expect(taken == 30)
        bench.table.checkInvariants()
    }

    @Test func `routes of one pool wait while all are blocked`() {
        var bench = PlanningBench()
        _ = bench.queue([2, 2, 2], in: Self.routes)
        let taken = bench.take(isBlocked: { _ in true })
        #expect(taken == nil)
        #expect(bench.table.queuedCount == 6)
    }

    @Test func `routes of one pool are not served for another pool`() {
        var bench = PlanningBench()
        _ = bench.queue([2], in: [PlanningBench.route("three")])
        let wrong = bench.take()
        let right = bench.take(from: PlanningBench.otherPool)
        #expect(wrong == nil)
        #expect(right != nil)
    }

    /// A tenant whose queue empties and fills at each turn must not come first each time.
    @Test(arguments: 0..<6) func `routes of one pool are not starved by one that fills again`(
        served: Int
    ) {
        var bench = PlanningBench(slots: 64)
        _ = bench.queue([20, 20], in: Array(Self.routes[0..<2]))
        for _ in 0..<served { _ = bench.take() }
        var turns = [0, 0, 0]
        for _ in 0..<12 {
            if bench.table.queuedCount(of: Self.routes[2]) == 0 {
                _ = bench.queue([1], in: [Self.routes[2]])
            }
            guard let slot = bench.take() else { break }
            turns[Self.routes.firstIndex(of: bench.table.route(of: slot))!] += 1
            _ = bench.accept(slot)
        }
        #expect(turns.allSatisfy { (3...6).contains($0) }, "turns \(turns)")
    }
}

extension PlanningBench {
    /// Queues so many pushes in each route, one event each.
    fileprivate mutating func queue(_ counts: [Int], in routes: [RouteID]) -> [UInt32] {
        var slots: [UInt32] = []
        for (route, count) in zip(routes, counts) {
            for _ in 0..<count {
                let event = read()
                slots.append(queue(request(event, token: UInt32(slots.count), route: route), event))
            }
        }
        return slots
    }
}
