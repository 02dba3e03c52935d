// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Ledger
internal import PushModel
internal import Testing

@testable internal import Planning

@Suite struct `Pushes with a payload` {
    @Test func `pushes of equal key are one, and the newest payload wins`() {
        var bench = PlanningBench()
        let old = bench.table.bodies.insert("old")
        let new = bench.table.bodies.insert("new")
        let first = bench.read()
        let slot = bench.queue(bench.request(first, key: 7, body: old), first)
        bench.table.bodies.release(old)
        let second = bench.read()
        let joined = bench.join(slot, bench.request(second, key: 7, body: new), second)
        bench.table.bodies.release(new)
        #expect(joined == .coalesced)
        let kept = bench.table[slot].content.body
        #expect(bench.table.bodies.text(kept) == "new")
        #expect(bench.table.bodies.count == 1)
        #expect(bench.table.bodies.bytes == 3)
        #expect(bench.table[slot].content.origin == first.position)
    }

    @Test func `when it was read later but asked for earlier, the newer payload stays`() {
        var bench = PlanningBench()
        let old = bench.table.bodies.insert("old")
        let new = bench.table.bodies.insert("new")
        // The older event is fanned out to a large audience and comes to this token second.
        let older = bench.read(partition: 0)
        let newer = bench.read(partition: 1)
        let slot = bench.queue(bench.request(newer, key: 7, body: new), newer)
        _ = bench.join(slot, bench.request(older, key: 7, body: old), older)
        let kept = bench.table[slot].content.body
        #expect(bench.table.bodies.text(kept) == "new")
    }

    @Test func `a newer payload read before the hand-over but not part of it is sent as well`() {
        var bench = PlanningBench()
        let old = bench.table.bodies.insert("old")
        let new = bench.table.bodies.insert("new")
        let older = bench.read(partition: 0)
        let newer = bench.read(partition: 1)
        let slot = bench.queue(bench.request(older, key: 7, body: old), older)
        _ = bench.take()
        // What is in flight says the old thing, whenever it was handed over.
        let joined = bench.join(slot, bench.request(newer, key: 7, body: new), newer)
        #expect(joined == .followUp)
        let goesOn = bench.accept(slot)
        let held = bench.committableOffset(partition: 1)
        #expect(goesOn)
        #expect(held == 0)
    }

    @Test func `an older payload read before the hand-over of a newer one is answered`() {
        var bench = PlanningBench()
        let old = bench.table.bodies.insert("old")
        let new = bench.table.bodies.insert("new")
        let older = bench.read(partition: 0)
        let newer = bench.read(partition: 1)
        let slot = bench.queue(bench.request(newer, key: 7, body: new), newer)
        _ = bench.take()
        let joined = bench.join(slot, bench.request(older, key: 7, body: old), older)
        #expect(joined == .coalesced)
        let inFlight = bench.table[slot].content.body
        #expect(bench.table.bodies.text(inFlight) == "new")
        let goesOn = bench.accept(slot)
        #expect(!goesOn)
    }

    @Test func `a retry sends the newest payload and forgets the one that failed`() {
        var bench = PlanningBench()
        var bodies: [BodyID] = []
        for text in ["a", "bb", "ccc"] { bodies.append(bench.table.bodies.insert(text)) }
        let first = bench.read()
        let slot = bench.queue(bench.request(first, key: 7, body: bodies[0]), first)
        _ = bench.take()
        for body in bodies[1...] {
            let event = bench.read()
            _ = bench.join(slot, bench.request(event, key: 7, body: body), event)
        }
        for body in bodies { bench.table.bodies.release(body) }
        // Delivery still reads the body that is in flight.
        #expect(bench.table.bodies.bytes == 1 + 3)
        bench.retry(slot)
        let kept = bench.table[slot].content.body
        #expect(bench.table.bodies.text(kept) == "ccc")
        #expect(bench.table.bodies.bytes == 3)
        _ = bench.take()
        _ = bench.accept(slot)
        #expect(bench.table.bodies.count == 0)
        #expect(bench.table.bodies.bytes == 0)
    }

    @Test func `pushes with a payload leave no body behind, however they end`() {
        var bench = PlanningBench()
        for ending in 0..<3 {
            let body = bench.table.bodies.insert("body")
            let first = bench.read()
            let slot = bench.queue(bench.request(first, key: 7, body: body), first)
            _ = bench.take()
            let second = bench.read()
            let other = bench.table.bodies.insert("other")
            _ = bench.join(slot, bench.request(second, key: 7, body: other), second)
            bench.table.bodies.release(body)
            bench.table.bodies.release(other)
            switch ending {
            case 0:
                _ = bench.accept(slot)
                _ = bench.take()
                _ = bench.accept(slot)
            case 1: bench.endForGood(slot)
            default:
                _ = bench.orphan(slot)
                _ = bench.accept(slot)
            }
            #expect(bench.table.bodies.count == 0, "ending \(ending)")
            #expect(bench.ledger.claimCount == 0, "ending \(ending)")
        }
    }
}

@Suite struct `The store of bodies` {
    @Test func `the store of bodies keeps a body until its last user has ended`() {
        var bodies = BodyStore()
        let id = bodies.insert("body", collapseID: "id")
        bodies.retain(id)
        bodies.release(id)
        #expect(bodies.text(id) == "body")
        let collapseID = String(decoding: bodies.collapseID(id), as: UTF8.self)
        #expect(collapseID == "id")
        #expect(bodies.bytes == 6)
        bodies.release(id)
        #expect(bodies.bytes == 0)
        #expect(bodies.count == 0)
    }

    @Test func `the store of bodies uses a row again and keeps the others in place`() {
        var bodies = BodyStore()
        let first = bodies.insert("first")
        let second = bodies.insert("second")
        let address = bodies.body(second).baseAddress
        bodies.release(first)
        for number in 0..<1_000 {
            let id = bodies.insert("\(number)")
            #expect(id == first)
            bodies.release(id)
        }
        _ = (0..<100).map { bodies.insert("more \($0)") }
        let unmoved = bodies.body(second).baseAddress == address
        #expect(unmoved)
        #expect(bodies.text(second) == "second")
        bodies.checkInvariants()
    }

    @Test func `the store of bodies counts nothing for no body and takes an empty one`() {
        var bodies = BodyStore()
        bodies.retain(.none)
        bodies.release(.none)
        let empty = bodies.insert("")
        #expect(empty != .none)
        #expect(bodies.count == 1)
        #expect(bodies.bytes == 0)
        bodies.release(empty)
        #expect(bodies.count == 0)
    }

    @Test func `the store of bodies traps on a use after the end`() async {
        await #expect(processExitsWith: .failure) {
            var bodies = BodyStore()
            let id = bodies.insert("body")
            bodies.release(id)
            bodies.retain(id)
        }
    }
}
