// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Ledger
internal import Planning
internal import PushModel
internal import Testing

@Suite struct `A push to one token` {
    @Test func `a push goes out once, and its offset passes when it is accepted`() {
        var bench = PlanningBench()
        let event = bench.read()
        let slot = bench.queue(bench.request(event), event)
        #expect(bench.table[slot].state == .queued)
        #expect(bench.table.queuedCount == 1)
        let taken = bench.take()
        #expect(taken == slot)
        #expect(bench.table[slot].state == .inFlight)
        #expect(bench.table.inFlightCount == 1)
        let before = bench.committableOffset()
        let goesOn = bench.accept(slot)
        let after = bench.committableOffset()
        #expect(!goesOn)
        #expect([before, after] == [0, 1])
        #expect(bench.table.freeSlots == bench.table.slots)
        let more = bench.take()
        #expect(more == nil)
    }

    @Test func `a push answers for each event that finds it queued, holding the oldest offset`() {
        var bench = PlanningBench()
        let first = bench.read()
        let slot = bench.queue(bench.request(first), first)
        for _ in 0..<20 {
            let event = bench.read()
            let joined = bench.join(slot, bench.request(event), event)
            #expect(joined == .coalesced)
        }
        #expect(bench.ledger.claimCount == 1)
        let held = bench.committableOffset()
        #expect(held == 0)
        #expect(bench.table[slot].content.origin == first.position)
        _ = bench.take()
        let goesOn = bench.accept(slot)
        let after = bench.committableOffset()
        #expect(!goesOn)
        #expect(after == 21)
    }

    @Test func `a push holds one offset of each partition`() {
        var bench = PlanningBench()
        let first = bench.read(partition: 0)
        let slot = bench.queue(bench.request(first), first)
        for partition in [1, 2, 0, 1, 2] {
            let event = bench.read(partition: partition)
            _ = bench.join(slot, bench.request(event), event)
        }
        #expect(bench.ledger.claimCount == 3)
        let held = (0..<3).map { bench.committableOffset(partition: $0) }
        #expect(held == [0, 0, 0])
        _ = bench.take()
        _ = bench.accept(slot)
        let after = (0..<3).map { bench.committableOffset(partition: $0) }
        #expect(after == [2, 2, 2])
    }

    // MARK: In flight

    @Test func `events read after the hand-over make one follow-up between them`() {
        var bench = PlanningBench()
        let first = bench.read()
        let slot = bench.queue(bench.request(first), first)
        _ = bench.take()
        for _ in 0..<3 {
            let event = bench.read()
            let joined = bench.join(slot, bench.request(event), event)
            #expect(joined == .followUp)
        }
        let goesOn = bench.accept(slot)
        let held = bench.committableOffset()
        #expect(goesOn)
        #expect(held == 1)
        #expect(bench.table[slot].state == .queued)
        #expect(bench.table[slot].content.origin?.offset == 1)
        let again = bench.take()
        #expect(again == slot)
        let goesOnAgain = bench.accept(slot)
        let after = bench.committableOffset()
        #expect(!goesOnAgain)
        #expect(after == 4)
        #expect(bench.table.freeSlots == bench.table.slots)
    }

    @Test func `an event read before the hand-over is answered by the push in flight`() {
        var bench = PlanningBench()
        let first = bench.read()
        let slow = bench.read(partition: 1)
        let slot = bench.queue(bench.request(first), first)
        _ = bench.take()
        let joined = bench.join(slot, bench.request(slow), slow)
        #expect(joined == .coalesced)
        #expect(!bench.table[slot].hasFollowUp)
        let held = bench.committableOffset(partition: 1)
        let goesOn = bench.accept(slot)
        let after = bench.committableOffset(partition: 1)
        #expect(!goesOn)
        #expect([held, after] == [0, 1])
    }

    @Test func `a push in flight still takes the expiry of an event read before the hand-over`() {
        var bench = PlanningBench()
        let brief = bench.read()
        let lasting = bench.read(partition: 1)
        let slot = bench.queue(bench.request(brief, expiresIn: .seconds(5)), brief)
        _ = bench.take()
        _ = bench.join(slot, bench.request(lasting, expiresIn: .seconds(900)), lasting)
        bench.retry(slot, after: .seconds(10))
        // Otherwise the retry would be dropped as expired, and the lasting event with it.
        #expect(bench.table.expiresAt(of: slot) == bench.now + .seconds(900))
    }

    @Test func `a follow-up counts its tries from nought`() {
        var bench = PlanningBench()
        let first = bench.read()
        let slot = bench.queue(bench.request(first), first)
        _ = bench.take()
        bench.retry(slot)
        _ = bench.take()
        #expect(bench.table[slot].attempts == 1)
        let later = bench.read()
        _ = bench.join(slot, bench.request(later), later)
        _ = bench.accept(slot)
        #expect(bench.table[slot].attempts == 0)
        bench.now = bench.now + .seconds(7)
        _ = bench.take()
        #expect(bench.table[slot].firstTriedAt == bench.now)
    }

    // MARK: What a joined push becomes

    @Test func `a push that is joined takes the latest expiry and the highest priority`() {
        var bench = PlanningBench()
        let first = bench.read()
        let slot = bench.queue(
            bench.request(first, priority: 5, expiresIn: .seconds(60)), first)
        let urgent = bench.read()
        _ = bench.join(slot, bench.request(urgent, priority: 10, expiresIn: .seconds(30)), urgent)
        let lasting = bench.read()
        _ = bench.join(slot, bench.request(lasting, priority: 1, expiresIn: .seconds(90)), lasting)
        #expect(bench.table[slot].content.priority == 10)
        #expect(bench.table.expiresAt(of: slot) == bench.now + .seconds(90))
    }

    @Test(arguments: [[5, 0], [0, 5], [0, 10], [10, 0]] as [[UInt8]])
    func `a push without the priority header counts as the highest, as with Apple`(
        priorities: [UInt8]
    ) {
        var bench = PlanningBench()
        let first = bench.read()
        let slot = bench.queue(bench.request(first, priority: priorities[0]), first)
        let second = bench.read()
        _ = bench.join(slot, bench.request(second, priority: priorities[1]), second)
        #expect([0, 10].contains(bench.table[slot].content.priority), "queued")
        _ = bench.take()
        _ = bench.accept(slot)

        let third = bench.read()
        let other = bench.queue(bench.request(third, priority: priorities[0]), third)
        _ = bench.take()
        let fourth = bench.read()
        _ = bench.join(other, bench.request(fourth, priority: priorities[1]), fourth)
        bench.retry(other)
        #expect([0, 10].contains(bench.table[other].content.priority), "a follow-up, then retried")
    }

    @Test func `a push's follow-up has the latest expiry and highest priority of its own events`() {
        var bench = PlanningBench()
        let first = bench.read()
        let slot = bench.queue(
            bench.request(first, priority: 10, expiresIn: .seconds(999)), first)
        _ = bench.take()
        for (priority, seconds) in [(1, 60), (5, 30), (1, 90)] as [(UInt8, Int)] {
            let event = bench.read()
            _ = bench.join(
                slot, bench.request(event, priority: priority, expiresIn: .seconds(seconds)), event)
        }
        _ = bench.accept(slot)
        #expect(bench.table[slot].content.priority == 5)
        #expect(bench.table.expiresAt(of: slot) == bench.now + .seconds(90))
    }
}
