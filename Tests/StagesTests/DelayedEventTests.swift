// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import PushModel
internal import Testing

@testable internal import Planning

/// Events whose producer asked for a delay beside events that may go at once.
@Suite struct `A delayed event of a token that has a push` {
    /// Asks for a push of `event` that must wait for a minute.
    private func delayed(
        _ bench: borrowing PlanningBench, _ event: ReadEvent, by delay: Duration = .seconds(60),
        key: UInt64 = 0, body: BodyID = .none
    ) -> PushRequest {
        var request = bench.request(event, key: key, body: body)
        request.content.notBefore = bench.now + delay
        return request
    }

    @Test func `a delayed event is not answered by the push that is queued`() {
        var bench = PlanningBench()
        let first = bench.read()
        let slot = bench.queue(bench.request(first), first)
        let second = bench.read()
        let joined = bench.join(slot, delayed(bench, second), second)
        #expect(joined == .followUp)
        _ = bench.take()
        let goesOn = bench.accept(slot)
        #expect(goesOn)
        #expect(bench.table.restsUntil(slot) == bench.now + .seconds(60))
    }

    @Test func `a delayed event is not answered by the push that rests for less long`() {
        var bench = PlanningBench()
        let first = bench.read()
        let slot = bench.queue(bench.request(first), first)
        _ = bench.take()
        bench.retry(slot, after: .seconds(1))
        let second = bench.read()
        let joined = bench.join(slot, delayed(bench, second), second)
        #expect(joined == .followUp)
        #expect(bench.table.restsUntil(slot) == bench.now + .seconds(1))
    }

    @Test func `a delayed event stays apart when a third event joins the push before it`() {
        var bench = PlanningBench()
        let first = bench.read()
        let slot = bench.queue(bench.request(first), first)
        let second = bench.read()
        _ = bench.join(slot, delayed(bench, second), second)
        let third = bench.read()
        let joined = bench.join(slot, bench.request(third), third)
        #expect(joined == .coalesced)
        _ = bench.take()
        let goesOn = bench.accept(slot)
        #expect(goesOn, "nobody has looked again since the delay")
        let committableOffset = bench.committableOffset()
        #expect(committableOffset == 1)
    }

    @Test func `a delayed event waits for the longest delay of those that share a follow-up`() {
        var bench = PlanningBench()
        let first = bench.read()
        let slot = bench.queue(bench.request(first), first)
        _ = bench.take()
        for delay in [60, 90, 30] {
            let event = bench.read()
            _ = bench.join(slot, delayed(bench, event, by: .seconds(delay)), event)
        }
        _ = bench.accept(slot)
        #expect(bench.table.restsUntil(slot) == bench.now + .seconds(90))
    }

    @Test func `a delayed event has its payload forgotten when a newer one may go at once`() {
        var bench = PlanningBench()
        let slot = queueThree(&bench, inOrder: [0, 1, 2])
        #expect(!bench.table[slot].hasFollowUp)
        #expect(text(bench, slot) == "2")
        _ = bench.take()
        let goesOn = bench.accept(slot)
        #expect(!goesOn, "the old payload would replace the newer one on the device")
        #expect(bench.table.bodies.count == 0)
    }

    @Test func `a delayed event keeps its payload when an older one comes to the token late`() {
        var bench = PlanningBench()
        let slot = queueThree(&bench, inOrder: [0, 2, 1])
        #expect(bench.table[slot].hasFollowUp)
        #expect(text(bench, slot) == "2")
        _ = bench.take()
        let goesOn = bench.accept(slot)
        #expect(goesOn)
        #expect(text(bench, slot) == "1")
    }

    /// Three payloads, the second of which is to wait; `inOrder` says how old each is.
    private func queueThree(_ bench: inout PlanningBench, inOrder order: [Int]) -> UInt32 {
        var events: [ReadEvent] = []
        for partition in 0..<3 { events.append(bench.read(partition: partition)) }
        var slot = UInt32(0)
        for (number, age) in order.enumerated() {
            let body = bench.table.bodies.insert("\(number)")
            var request = bench.request(events[age], key: 7, body: body)
            if number == 1 { request.content.notBefore = bench.now + .seconds(60) }
            if number == 0 {
                slot = bench.queue(request, events[age])
            } else {
                _ = bench.join(slot, request, events[age])
            }
            bench.table.bodies.release(body)
        }
        return slot
    }

    private func text(_ bench: borrowing PlanningBench, _ slot: UInt32) -> String {
        bench.table.bodies.text(bench.table[slot].content.body)
    }

    @Test func `a delayed event is no news if its payload is older than the one that waits`() {
        var bench = PlanningBench()
        let old = bench.table.bodies.insert("old")
        let new = bench.table.bodies.insert("new")
        let older = bench.read(partition: 0)
        let newer = bench.read(partition: 1)
        let slot = bench.queue(bench.request(newer, key: 7, body: new), newer)
        let joined = bench.join(slot, delayed(bench, older, key: 7, body: old), older)
        #expect(joined == .coalesced)
        #expect(text(bench, slot) == "new")
    }
}
