// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import Ledger
internal import Planning
internal import PushModel
internal import Testing

@Suite struct `A random life of the push table` {
    @Test(arguments: [1, 3] as [UInt32])
    func `the push table loses no update, events coming to a token in the order read`(
        tokens: UInt32
    ) {
        Self.run(tokens: tokens, lateMax: 0)
    }

    @Test(arguments: [1, 3] as [UInt32])
    func `the push table loses no update, events coming to a token in any order`(tokens: UInt32) {
        Self.run(tokens: tokens, lateMax: 6)
    }

    /// With one token, its own claims must cover all that it is owed.
    private static func run(tokens: UInt32, lateMax: Int) {
        for seed in 1...120 as ClosedRange<UInt64> {
            var run = PushTableRun(tokens: tokens, lateMax: lateMax, seed: seed)
            for step in 0..<150 {
                run.step()
                if let difference = run.difference() {
                    Issue.record("tokens \(tokens), seed \(seed), step \(step): \(difference)")
                    return
                }
            }
            if let rest = run.windDown() {
                Issue.record("tokens \(tokens), seed \(seed), at the end: \(rest)")
                return
            }
        }
    }
}

private struct PushTableRun: ~Copyable {
    /// The push that a token has for one coalescing key.
    private struct Name: Hashable {
        var token: UInt32
        var key: UInt64
    }

    /// An event that a token has not been told of.
    private struct Debt {
        let name: Name
        let partition: Int
        let offset: Int64
        let sequence: UInt64
        let expiresAt: MonotonicTime
    }

    /// An event that is on its way to its tokens.
    private struct FanOut {
        let event: ReadEvent
        let request: PushRequest
        var names: [Name]
    }

    private struct Flight {
        let slot: UInt32
        let sequence: UInt64
        /// That of the event whose payload is on its way.
        let payload: UInt64
    }

    private var bench = PlanningBench(slots: 64)
    private var dice: SplitMix64
    private let tokens: UInt32
    private let lateMax: Int
    private var debts: [Debt] = []
    private var fanOuts: [FanOut] = []
    private var slots: [Name: UInt32] = [:]
    private var flights: [Flight] = []

    init(tokens: UInt32, lateMax: Int, seed: UInt64) {
        self.tokens = tokens
        self.lateMax = lateMax
        dice = SplitMix64(seed: seed)
    }

    mutating func step() {
        bench.wake(after: .milliseconds(Int64(dice.next(below: 30))))
        switch dice.next(below: 16) {
        case 0..<6: readEvent()
        case 6, 7: advanceFanOut()
        case 8..<11: take()
        case 11, 12: accept()
        case 13: retry()
        case 14: endForGood()
        default: orphan()
        }
        while fanOuts.count > lateMax { advanceFanOut() }
    }

    /// The first update that could be lost.
    func difference() -> String? {
        var covered: [UInt32: Int64] = [:]
        bench.table.forEachClaim { claim in
            let offset = bench.ledger.offset(of: claim)
            covered[claim.epoch] = min(covered[claim.epoch] ?? .max, offset)
        }
        for debt in debts {
            guard let slot = slots[debt.name] else { return "no push for \(debt)" }
            let oldest = covered[bench.assignments[debt.partition].epoch] ?? .max
            guard oldest <= debt.offset else { return "nothing holds \(debt)" }
            let push = bench.table[slot]
            guard push.content.expiresAt >= debt.expiresAt || push.hasFollowUp else {
                return "the push expires before \(debt)"
            }
        }
        return nil
    }

    /// Sends everything; what is left then.
    mutating func windDown() -> String? {
        while !fanOuts.isEmpty { advanceFanOut() }
        for _ in 0..<500 where !slots.isEmpty || !flights.isEmpty {
            bench.wake(after: .seconds(60))
            take()
            accept()
            if let difference = difference() { return difference }
        }
        if !debts.isEmpty { return "never sent: \(debts[0])" }
        if bench.ledger.claimCount != 0 { return "\(bench.ledger.claimCount) claims are left" }
        if bench.table.bodies.count != 0 { return "\(bench.table.bodies.count) bodies are left" }
        return bench.table.freeSlots == bench.table.slots ? nil : "slots are left"
    }

    // MARK: Events

    private mutating func readEvent() {
        let event = bench.read(partition: Int(dice.next(below: 3)))
        let key = [0, 0, 0, 7, 9][Int(dice.next(below: 5))] as UInt64
        // The payload says which event it is from.
        let body = key == 0 ? BodyID.none : bench.table.bodies.insert("\(event.sequence)")
        var request = bench.request(
            event, priority: [5, 10][Int(dice.next(below: 2))],
            expiresIn: .seconds(3600 + Int64(dice.next(below: 3600))), key: key, body: body)
        if dice.next(below: 5) == 0 { request.content.notBefore = bench.now + .milliseconds(40) }
        let names = (0..<tokens).map { Name(token: $0, key: key) }
        fanOuts.append(FanOut(event: event, request: request, names: names))
        // In order, each event reaches all of its tokens before the next one is read.
        if lateMax == 0 { while !fanOuts.isEmpty { advanceFanOut() } }
    }

    private mutating func advanceFanOut() {
        guard !fanOuts.isEmpty else { return }
        let index = Int(dice.next(below: UInt64(fanOuts.count)))
        guard let name = fanOuts[index].names.popLast() else {
            let fanOut = fanOuts.remove(at: index)
            bench.ledger.release(fanOut.event.claim)
            bench.table.bodies.release(fanOut.request.content.body)
            return
        }
        visit(name, fanOuts[index])
    }

    private mutating func visit(_ name: Name, _ fanOut: FanOut) {
        var request = fanOut.request
        request = bench.request(
            fanOut.event, token: name.token, key: name.key, body: request.content.body)
        request.content.priority = fanOut.request.content.priority
        request.content.expiresAt = fanOut.request.content.expiresAt
        request.content.notBefore = fanOut.request.content.notBefore
        bench.ledger.retain(fanOut.event.claim)
        if let slot = slots[name] {
            _ = bench.join(slot, request, fanOut.event)
        } else {
            slots[name] = bench.queue(request, fanOut.event)
        }
        debts.append(
            Debt(
                name: name, partition: Int(fanOut.event.position.partition),
                offset: fanOut.event.position.offset, sequence: fanOut.event.sequence,
                expiresAt: request.content.expiresAt))
    }

    // MARK: Outcomes

    private mutating func take() {
        guard let slot = bench.take() else { return }
        let body = bench.table[slot].content.body
        let payload = body == .none ? 0 : UInt64(bench.table.bodies.text(body))!
        flights.append(Flight(slot: slot, sequence: bench.sequence, payload: payload))
    }

    private mutating func land() -> Flight? {
        guard !flights.isEmpty else { return nil }
        return flights.remove(at: Int(dice.next(below: UInt64(flights.count))))
    }

    private mutating func accept() {
        guard let flight = land() else { return }
        let name = name(of: flight.slot)
        if !bench.table[flight.slot].isOrphaned {
            // What was read before the hand-over is told; with a payload only what that one says.
            let told = name.key == 0 ? flight.sequence : flight.payload
            debts.removeAll { $0.name == name && $0.sequence <= told }
        }
        end(flight.slot, name) { $0.accept(flight.slot) }
    }

    private mutating func retry() {
        guard let flight = land() else { return }
        if bench.table[flight.slot].isOrphaned {
            end(flight.slot, name(of: flight.slot)) { $0.accept(flight.slot) }
        } else {
            let delay = Duration.milliseconds(Int64(dice.next(below: 3)) * 20)
            bench.retry(flight.slot, after: delay, costsAttempt: dice.next(below: 2) == 0)
        }
    }

    private mutating func endForGood() {
        guard dice.next(below: 3) == 0, let flight = land() else { return }
        let name = name(of: flight.slot)
        if slots[name] == flight.slot { debts.removeAll { $0.name == name } }
        end(flight.slot, name) {
            $0.endForGood(flight.slot)
            return false
        }
    }

    private mutating func orphan() {
        guard dice.next(below: 3) == 0 else { return }
        let known = slots.keys.sorted { ($0.token, $0.key) < ($1.token, $1.key) }
        guard !known.isEmpty else { return }
        let name = known[Int(dice.next(below: UInt64(known.count)))]
        debts.removeAll { $0.name == name }
        if let slot = slots.removeValue(forKey: name) { _ = bench.orphan(slot) }
    }

    private mutating func end(
        _ slot: UInt32, _ name: Name, _ body: (inout PlanningBench) -> Bool
    ) {
        let isKnown = slots[name] == slot
        if !body(&bench), isKnown { slots[name] = nil }
    }

    private func name(of slot: UInt32) -> Name {
        Name(token: bench.table.token(of: slot).rawValue, key: bench.table.coalescingKey(of: slot))
    }
}
