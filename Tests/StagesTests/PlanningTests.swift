// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@testable internal import Planning

@Suite struct `Planning of pushes and routes` {
    @Test func `an event that comes to a payload in flight twice is answered by it`() {
        var bench = PlanningBench()
        let body = bench.table.bodies.insert("news")
        let event = bench.read()
        let request = bench.request(event, key: 7, body: body)
        let slot = bench.queue(request, event)
        _ = bench.take()
        // Its fan-out has met the token again, as the list changed underneath.
        let joined = bench.table.join(slot, request, claim: nil, &bench.ledger)
        #expect(joined == .coalesced)
        let goesOn = bench.accept(slot)
        #expect(!goesOn)
    }

    @Test func `of two payloads that other workers read the one that was read later wins`() {
        var bench = PlanningBench()
        let earlier = insert("earlier", readAt: 1000, &bench)
        let later = insert("later", readAt: 2000, &bench)
        let first = bench.read(partition: 0)
        let second = bench.read(partition: 1)
        var requests = [
            bench.request(first, key: 7, body: later), bench.request(second, key: 7, body: earlier),
        ]
        // This worker has them from the deferred topic.
        for index in requests.indices { requests[index].content.readSequence = 0 }
        let slot = bench.queue(requests[0], first)
        _ = bench.join(slot, requests[1], second)
        #expect(bench.table.bodies.text(bench.table[slot].content.body) == "later")
    }

    private func insert(
        _ text: String, readAt milliseconds: Int64, _ bench: inout PlanningBench
    ) -> BodyID {
        bench.table.bodies.insert(
            Array(text.utf8), collapseID: [], readAt: WallTime(milliseconds: milliseconds),
            origin: nil)
    }

    @Test func `a payload without a collapse identifier is written down without one`() {
        var bodies = BodyStore()
        let without = bodies.insert("a")
        let with = bodies.insert("b", collapseID: "c 1")
        #expect(bodies.payload(without)?.collapseID == nil)
        #expect(bodies.payload(with)?.collapseID == "c 1")
    }

    @Test func `the newest payload brings its own expiration, queued or as a follow-up`() {
        var bench = PlanningBench()
        var slot = UInt32(0)
        let rules: [ExpirationRule] = [.immediate, .deadline, .none]
        for (number, rule) in rules.enumerated() {
            let event = bench.read()
            let body = bench.table.bodies.insert("\(number)")
            var request = bench.request(event, key: 7, body: body)
            request.content.expiration = rule
            if number == 0 {
                slot = bench.queue(request, event)
            } else {
                _ = bench.join(slot, request, event)
            }
            if number == 1 {
                #expect(bench.table[slot].content.expiration == .deadline)
                _ = bench.take()
            }
        }
        bench.retry(slot)
        #expect(bench.table[slot].content.expiration == .none)
    }

    @Test func `a push knows since when it is ready, not since when it exists`() {
        var bench = PlanningBench()
        let event = bench.read()
        let slot = bench.queue(bench.request(event), event)
        _ = bench.take()
        bench.retry(slot, after: .seconds(30))
        bench.wake(after: .seconds(30))
        #expect(bench.table[slot].state == .queued)
        #expect(bench.table[slot].queuedAt == bench.now)
    }

    @Test func `the next time to wake is that of the earliest`() {
        var bench = PlanningBench()
        for seconds in [30, 10, 20] {
            let event = bench.read()
            var request = bench.request(event, token: UInt32(seconds))
            request.content.notBefore = bench.now + .seconds(seconds)
            _ = bench.queue(request, event)
        }
        #expect(bench.table.nextWake == bench.now + .seconds(10))
    }

    @Test func `routes are served in the order in which they began to wait`() {
        let routes = [
            PlanningBench.route("one", .control), PlanningBench.route("one", .widget),
            PlanningBench.route("two", .control),
        ]
        var bench = PlanningBench()
        for (number, route) in routes.enumerated() {
            let event = bench.read()
            _ = bench.queue(bench.request(event, token: UInt32(number), route: route), event)
        }
        var served: [RouteID] = []
        // Each route that is served has nothing more, and the turns close up behind it.
        while let slot = bench.take() { served.append(bench.table.route(of: slot)) }
        #expect(served == routes)
    }

    @Test func `a subject that changed is remembered in the very tick that means never`() {
        let registrationGrace = Duration.seconds(2)
        // The one whose number would be zero is called one, and seems a tick older.
        let now = MonotonicTime(nanoseconds: ((1 << 32) - 1) << 24)
        var recent = RecentSubjects(cells: 4, registrationGrace: registrationGrace)
        recent.changed(hash: 1, expiresAt: now + registrationGrace, now: now - registrationGrace)
        let expiry = recent.expiry(ofChange: 1, now: now)
        #expect(expiry.map { $0 >= now + registrationGrace } ?? false)
    }
}
