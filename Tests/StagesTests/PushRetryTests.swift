// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Ledger
internal import Planning
internal import PushModel
internal import Testing

@Suite struct `The retry of a push` {
    @Test func `a retry takes in its follow-up: one push, the oldest offset of each partition`() {
        var bench = PlanningBench()
        let first = bench.read(partition: 0)
        let slot = bench.queue(
            bench.request(first, priority: 5, expiresIn: .seconds(10)), first)
        _ = bench.take()
        for partition in [0, 1, 1] {
            let event = bench.read(partition: partition)
            _ = bench.join(
                slot, bench.request(event, priority: 10, expiresIn: .seconds(50)), event)
        }
        #expect(bench.ledger.claimCount == 3)
        bench.retry(slot)
        #expect(bench.ledger.claimCount == 2)
        let held = [bench.committableOffset(partition: 0), bench.committableOffset(partition: 1)]
        #expect(held == [0, 0])
        #expect(!bench.table[slot].hasFollowUp)
        #expect(bench.table[slot].content.priority == 10)
        #expect(bench.table[slot].content.origin == first.position)
        #expect(bench.table.expiresAt(of: slot) == bench.now + .seconds(50))
        _ = bench.take()
        let goesOn = bench.accept(slot)
        let after = [bench.committableOffset(partition: 0), bench.committableOffset(partition: 1)]
        #expect(!goesOn)
        #expect(after == [2, 2])
    }

    @Test func `a retried push answers for every event read before that try`() {
        var bench = PlanningBench()
        let first = bench.read()
        let slot = bench.queue(bench.request(first), first)
        _ = bench.take()
        bench.retry(slot)
        let slow = bench.read(partition: 1)
        _ = bench.take()
        let joined = bench.join(slot, bench.request(slow), slow)
        #expect(joined == .coalesced)
        let goesOn = bench.accept(slot)
        #expect(!goesOn)
    }

    @Test func `a retried push rests until its time, not before and not for long after`() {
        var bench = PlanningBench()
        let event = bench.read()
        let slot = bench.queue(bench.request(event), event)
        _ = bench.take()
        bench.retry(slot, after: .seconds(3))
        #expect(bench.table[slot].state == .resting)
        #expect(bench.table.restingCount == 1)
        #expect(bench.table.nextWake == bench.now + .seconds(3))
        bench.wake(after: .seconds(3) - .nanoseconds(1))
        let early = bench.take()
        #expect(early == nil)
        bench.wake(after: .nanoseconds(1))
        #expect(bench.table.nextWake == .distantFuture)
        let due = bench.take()
        #expect(due == slot)
    }

    @Test func `a retried push counts a try only where it costs one`() {
        var bench = PlanningBench()
        let event = bench.read()
        let slot = bench.queue(bench.request(event), event)
        for costsAttempt in [true, false, false, true] {
            _ = bench.take()
            bench.retry(slot, costsAttempt: costsAttempt)
        }
        #expect(bench.table[slot].attempts == 2)
        #expect(bench.table[slot].firstTriedAt == bench.now)
    }

    @Test func `a retried push can be joined while it rests`() {
        var bench = PlanningBench()
        let first = bench.read()
        let slot = bench.queue(bench.request(first), first)
        _ = bench.take()
        bench.retry(slot, after: .seconds(3))
        let second = bench.read()
        let joined = bench.join(slot, bench.request(second), second)
        #expect(joined == .coalesced)
        #expect(bench.ledger.claimCount == 1)
        bench.wake(after: .seconds(3))
        _ = bench.take()
        let goesOn = bench.accept(slot)
        #expect(!goesOn)
    }

    @Test func `pushes wake in the order of their times, those that left early left out`() {
        var bench = PlanningBench(slots: 40)
        var slots: [UInt32] = []
        let delays = (0..<40).map { Duration.seconds(1 + $0 * 17 % 40) }
        for delay in delays {
            let event = bench.read()
            var request = bench.request(event, token: UInt32(slots.count))
            request.content.notBefore = bench.now + delay
            slots.append(bench.queue(request, event))
        }
        for gone in stride(from: 0, to: 40, by: 3) {
            let ended = bench.orphan(slots[gone])
            #expect(ended)
        }
        var woken: [UInt32] = []
        for _ in 0..<40 {
            bench.wake(after: .seconds(1))
            while let slot = bench.take() { woken.append(slot) }
        }
        let expected = (0..<40).filter { $0 % 3 != 0 }.sorted { delays[$0] < delays[$1] }
        #expect(woken == expected.map { slots[$0] })
        #expect(bench.table.restingCount == 0)
    }

    @Test func `an event's own delay is waited for`() {
        var bench = PlanningBench()
        let event = bench.read()
        var request = bench.request(event)
        request.content.notBefore = bench.now + .milliseconds(500)
        let slot = bench.queue(request, event)
        let early = bench.take()
        bench.wake(after: .milliseconds(500))
        let due = bench.take()
        #expect(early == nil)
        #expect(due == slot)
    }
}

@Suite struct `A push whose token is gone` {
    @Test func `a push whose token is gone ends at once while it is queued`() {
        var bench = PlanningBench()
        let event = bench.read()
        let slot = bench.queue(bench.request(event), event)
        let ended = bench.orphan(slot)
        #expect(ended)
        let committableOffset = bench.committableOffset()
        let taken = bench.take()
        #expect(committableOffset == 1)
        #expect(taken == nil)
        #expect(bench.table.freeSlots == bench.table.slots)
    }

    @Test func `a push whose token is gone ends at once while it rests`() {
        var bench = PlanningBench()
        let event = bench.read()
        let slot = bench.queue(bench.request(event), event)
        _ = bench.take()
        bench.retry(slot, after: .seconds(9))
        let ended = bench.orphan(slot)
        let committableOffset = bench.committableOffset()
        #expect(ended)
        #expect(committableOffset == 1)
        #expect(bench.table.nextWake == .distantFuture)
    }

    @Test func `a push in flight whose token is gone ends with its outcome, its follow-up at once`()
    {
        var bench = PlanningBench()
        let first = bench.read()
        let slot = bench.queue(bench.request(first), first)
        _ = bench.take()
        let second = bench.read(partition: 1)
        _ = bench.join(slot, bench.request(second), second)
        let ended = bench.orphan(slot)
        #expect(!ended)
        #expect(bench.table[slot].isOrphaned)
        let followUp = bench.committableOffset(partition: 1)
        let inFlight = bench.committableOffset(partition: 0)
        #expect([followUp, inFlight] == [1, 0])
        let goesOn = bench.accept(slot)
        let after = bench.committableOffset()
        #expect(!goesOn)
        #expect(after == 1)
    }

    @Test func `a push whose token is gone leaves a slot that serves the next token as new`() {
        var bench = PlanningBench(slots: 1)
        let first = bench.read()
        let slot = bench.queue(bench.request(first), first)
        _ = bench.take()
        bench.retry(slot)
        _ = bench.take()
        _ = bench.orphan(slot)
        _ = bench.accept(slot)
        let second = bench.read()
        let reused = bench.queue(bench.request(second, token: 2), second)
        #expect(reused == slot)
        #expect(!bench.table[reused].isOrphaned)
        #expect(bench.table[reused].attempts == 0)
        #expect(bench.table.token(of: reused) == TokenID(rawValue: 2))
        #expect(bench.table.freeSlots == 0)
    }

    @Test(arguments: ["queued", "resting", "in flight", "follow-up"])
    func `a push whose token is known dead ends for good in every state`(state: String) {
        var bench = PlanningBench()
        let first = bench.read()
        let slot = bench.queue(bench.request(first), first)
        if state != "queued" { _ = bench.take() }
        if state == "resting" { bench.retry(slot, after: .seconds(1)) }
        if state == "follow-up" {
            let second = bench.read()
            _ = bench.join(slot, bench.request(second), second)
        }
        bench.endForGood(slot)
        #expect(bench.ledger.claimCount == 0)
        #expect(bench.table.freeSlots == bench.table.slots)
        #expect(bench.table.inFlightCount == 0)
        bench.wake(after: .seconds(1))
        let taken = bench.take()
        #expect(taken == nil)
    }
}
