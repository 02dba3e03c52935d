// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Planning
internal import PushModel
internal import Testing

@Suite struct `The urgency of a push` {
    private static let control = PlanningBench.route("one", .control)
    private static let widget = PlanningBench.route("one", .widget)
    private static let device = PlanningBench.route("one", .device)

    /// Queues pushes of one type in one route.
    /// - Returns: the slot of the last one.
    @discardableResult
    private func queue(
        _ count: Int, _ type: PushType, in route: RouteID, isBulk: Bool = false,
        _ bench: inout PlanningBench
    ) -> UInt32 {
        var last: UInt32 = 0
        for _ in 0..<count {
            let event = bench.read()
            let token = UInt32(bench.table.queuedCount)
            var request = bench.request(event, token: token, route: route, type: type)
            request.content.isBulk = isBulk
            last = bench.queue(request, event)
        }
        return last
    }

    private func take(_ count: Int, _ bench: inout PlanningBench) -> [PushType] {
        var types: [PushType] = []
        while types.count < count, let slot = bench.take() {
            types.append(bench.table.pushType(of: slot))
        }
        return types
    }

    @Test func `what somebody waits for is more urgent than what nobody sees`() {
        let ranks = Dictionary(grouping: PushType.builtIn.map(\.name)) { name in
            PushType(name: name)!.row.urgency
        }
        #expect(
            ranks[.immediate] == [
                "controls", "alert", "liveactivity", "voip", "location", "pushtotalk",
            ])
        #expect(ranks[.glance] == ["widgets", "complication"])
        #expect(ranks[.background] == ["background", "fileprovider"])
    }

    @Test func `a more urgent push goes first, whatever was queued before`() {
        var bench = PlanningBench(slots: 64)
        queue(5, .background, in: Self.device, &bench)
        queue(3, .widgets, in: Self.widget, &bench)
        queue(4, .controls, in: Self.control, &bench)
        let order = take(12, &bench)
        #expect(order[..<4].allSatisfy { $0 == .controls })
        #expect(order[4..<7].allSatisfy { $0 == .widgets })
        #expect(order[7...].allSatisfy { $0 == .background })
    }

    @Test func `less urgent pushes get a tenth`() {
        var bench = PlanningBench(slots: 700)
        queue(100, .background, in: Self.device, &bench)
        queue(100, .widgets, in: Self.widget, &bench)
        queue(400, .controls, in: Self.control, &bench)
        let order = take(200, &bench)
        // Background pushes get a tenth of all, and widgets a tenth of the prompt ones.
        #expect(order.count { $0 == .background } == 20)
        #expect(order.count { $0 == .widgets } == 18)
        #expect(order.count { $0 == .controls } == 162)
        // No long gap either.
        for start in stride(from: 0, to: 200, by: 10) {
            #expect(order[start..<(start + 10)].contains { $0 != .controls })
        }
    }

    @Test func `less urgent pushes have saved up no turns while none of them waited`() {
        var bench = PlanningBench(slots: 64)
        queue(30, .controls, in: Self.control, &bench)
        #expect(take(20, &bench).allSatisfy { $0 == .controls })
        queue(1, .background, in: Self.device, &bench)
        #expect(take(9, &bench).allSatisfy { $0 == .controls })
        #expect(take(1, &bench) == [.background])
    }

    @Test func `an alert goes before a background push to the same tokens`() {
        var bench = PlanningBench(slots: 64)
        queue(5, .background, in: Self.device, &bench)
        queue(2, .alert, in: Self.device, &bench)
        #expect(take(3, &bench) == [.alert, .alert, .background])
        #expect(bench.table.queuedCount(of: Self.device) == 4)
    }

    @Test func `a less urgent route goes on where the more urgent one is blocked`() {
        var bench = PlanningBench(slots: 64)
        queue(5, .background, in: Self.device, &bench)
        queue(5, .controls, in: Self.control, &bench)
        var taken = 0
        while let slot = bench.take(isBlocked: { $0 == Self.control }) {
            #expect(bench.table.route(of: slot) == Self.device)
            taken += 1
        }
        #expect(taken == 5)
        bench.checkInvariants()
    }

    @Test func `an urgent route goes on where the less urgent one is blocked`() {
        var bench = PlanningBench(slots: 64)
        queue(5, .background, in: Self.device, &bench)
        queue(30, .controls, in: Self.control, &bench)
        var taken = 0
        while bench.take(isBlocked: { $0 == Self.device }) != nil { taken += 1 }
        #expect(taken == 30)
        #expect(bench.table.queuedCount(of: Self.device) == 5)
    }

    @Test func `apps take turns within an urgency`() {
        var bench = PlanningBench(slots: 128)
        let other = PlanningBench.route("two", .control)
        queue(10, .background, in: PlanningBench.route("two", .device), &bench)
        queue(40, .controls, in: Self.control, &bench)
        queue(10, .controls, in: other, &bench)
        var routes: [RouteID] = []
        while routes.count < 18, let slot = bench.take() {
            routes.append(bench.table.route(of: slot))
        }
        #expect(routes.count { $0 == other } >= 8)
        #expect(routes.count { $0 == Self.control } >= 8)
    }

    @Test func `a small event goes before a large audience, which gets a tenth meanwhile`() {
        var bench = PlanningBench(slots: 256)
        queue(100, .controls, in: Self.control, isBulk: true, &bench)
        let small = queue(1, .controls, in: Self.control, &bench)
        #expect(bench.take() == small)
        queue(90, .controls, in: Self.control, &bench)
        var order: [Bool] = []
        while order.count < 110, let slot = bench.take() {
            order.append(bench.table[slot].content.isBulk)
        }
        #expect(order[..<100].count { $0 } == 10)
        for start in stride(from: 0, to: 100, by: 10) {
            #expect(order[start..<(start + 10)].contains(true))
        }
        #expect(order[100...].allSatisfy { $0 }, "nothing else waits")
        bench.checkInvariants()
    }

    @Test func `bulk and background pushes are patient, whatever their urgency`() {
        var bench = PlanningBench(slots: 64)
        queue(1, .controls, in: Self.control, &bench)
        queue(1, .widgets, in: Self.widget, &bench)
        queue(1, .controls, in: Self.control, isBulk: true, &bench)
        queue(1, .widgets, in: Self.widget, isBulk: true, &bench)
        queue(1, .background, in: Self.device, &bench)
        queue(1, .background, in: Self.device, isBulk: true, &bench)
        let (prompt, patient) = (
            bench.takeAll(of: PoolLine(PlanningBench.pool, isPatient: false)),
            bench.takeAll(of: PoolLine(PlanningBench.pool, isPatient: true))
        )
        #expect(prompt.map { bench.table.pushType(of: $0) } == [.controls, .widgets])
        #expect(prompt.allSatisfy { !bench.table[$0].content.isBulk })
        #expect(
            patient.map { bench.table.pushType(of: $0) }
                == [.controls, .widgets, .background, .background])
        #expect(patient.count { bench.table[$0].content.isBulk } == 3)
    }

    @Test func `bulk stays bulk when it is sent again, rests, or is put back`() {
        var bench = PlanningBench(slots: 64)
        queue(1, .controls, in: Self.control, isBulk: true, &bench)
        let line = PoolLine(PlanningBench.pool, isPatient: true)
        let slot = bench.takeAll(of: line)[0]
        bench.retry(slot)
        #expect(bench.takeAll(of: line) == [slot])
        bench.putBack(slot)
        #expect(bench.takeAll(of: line) == [slot])
        bench.retry(slot, after: .seconds(1))
        bench.now = bench.now + .seconds(1)
        bench.table.wake(now: bench.now)
        #expect(bench.takeAll(of: line) == [slot])
    }

    @Test(arguments: [false, true], [false, true])
    func `a follow-up is bulk where all that ask for it are, whatever was in flight`(
        first: Bool, second: Bool
    ) {
        var bench = PlanningBench(slots: 64)
        let token: UInt32 = 7
        let event = bench.read()
        var request = bench.request(event, token: token, route: Self.control)
        request.content.isBulk = first
        let slot = bench.queue(request, event)
        #expect(bench.take() == slot)
        let later = bench.read()
        request = bench.request(later, token: token, route: Self.control)
        request.content.isBulk = second
        #expect(bench.join(slot, request, later) == .followUp)
        #expect(bench.table[slot].content.isBulk == first, "the push in flight is what it was")
        let goesOn = bench.accept(slot)
        #expect(goesOn)
        let next = bench.takeAll(of: PoolLine(PlanningBench.pool, isPatient: second))
        #expect(next == [slot])
    }

    @Test func `bulk that is sent again with the follow-up of a small event is none any more`() {
        var bench = PlanningBench(slots: 64)
        let event = bench.read()
        var request = bench.request(event, token: 7, route: Self.control)
        request.content.isBulk = true
        let slot = bench.queue(request, event)
        #expect(bench.take() == slot)
        for isBulk in [true, false, true] {
            let later = bench.read()
            request = bench.request(later, token: 7, route: Self.control)
            request.content.isBulk = isBulk
            #expect(bench.join(slot, request, later) == .followUp)
        }
        bench.retry(slot)
        #expect(bench.takeAll(of: PoolLine(PlanningBench.pool, isPatient: false)) == [slot])
    }

    @Test func `bulk in flight that answers for a small event is none when it is sent again`() {
        var bench = PlanningBench(slots: 64)
        let event = bench.read()
        var request = bench.request(event, token: 7, route: Self.control)
        request.content.isBulk = true
        let slot = bench.queue(request, event)
        let small = bench.read()
        #expect(bench.take() == slot)
        let joined = bench.join(slot, bench.request(small, token: 7, route: Self.control), small)
        #expect(joined == .coalesced)
        bench.retry(slot)
        #expect(bench.takeAll(of: PoolLine(PlanningBench.pool, isPatient: false)) == [slot])
    }

    @Test func `the push of a large audience that a small event joins does not wait for the rest`()
    {
        var bench = PlanningBench(slots: 256)
        let last = queue(100, .controls, in: Self.control, isBulk: true, &bench)
        let event = bench.read()
        let token = bench.table[last].token.rawValue
        _ = bench.join(last, bench.request(event, token: token, route: Self.control), event)
        #expect(bench.take() == last)
        bench.checkInvariants()
    }

    @Test func `a payload that makes an alert of a background push moves it to the front`() {
        var bench = PlanningBench(slots: 64)
        let first = bench.read()
        let older = bench.table.bodies.insert("{}")
        let slot = bench.queue(
            bench.request(
                first, token: 1, route: Self.device, type: .background, key: 5, body: older),
            first)
        queue(3, .widgets, in: Self.widget, &bench)
        let second = bench.read()
        let newer = bench.table.bodies.insert("{}")
        _ = bench.join(
            slot,
            bench.request(second, token: 1, route: Self.device, type: .alert, key: 5, body: newer),
            second)
        #expect(bench.take() == slot)
    }
}
