// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import FleetKit
internal import Foundation
internal import LinuxIO
internal import PushModel
internal import Testing

@testable internal import APNSDelivery

/// A thread that sends nothing, and the planner's side of its port.
private final class ShadowBench {
    let port: DeliveryPort
    private let waker = Waker()
    private let slab = PushSlab(slots: 4096)

    init() throws {
        port = DeliveryPort(slab: slab, pools: 2, plannerWaker: waker)
        let delivery = ShadowDelivery(port: port, pools: [0, 1].map { PoolID(rawValue: $0) })
        try NamedThread.detach(name: "delivery") { try! delivery.run() }
    }

    deinit { port.enter(.stopping) }

    func submit(_ slots: [PushSlot], isPatient: Bool = false, expired: Set<PushSlot> = []) {
        for slot in slots {
            slab.push(slot).pointee = WirePush()
            if expired.contains(slot) {
                slab.push(slot).pointee.expiresAt = MonotonicTime(nanoseconds: 1)
            }
        }
        slots.withUnsafeBufferPointer { port.submit($0, isPatient: isPatient) }
    }

    func collect(_ count: Int) -> [PushOutcome] {
        var outcomes: [PushOutcome] = []
        let room = UnsafeMutableBufferPointer<PushOutcome>.allocate(capacity: 512)
        defer { room.deallocate() }
        _ = wait {
            outcomes += room[..<port.collect(into: room)]
            return outcomes.count >= count
        }
        return outcomes
    }

    func wait(until condition: () -> Bool) -> Bool {
        let patience = Patience(.seconds(60))
        while !condition() {
            if patience.isOver { return false }
            usleep(500)
        }
        return true
    }
}

@Suite struct `The delivery of a shadow` {
    @Test func `a shadow takes every push as accepted at once, without a connection`() throws {
        let bench = try ShadowBench()
        #expect(bench.wait { bench.port.capacity(of: PoolID(rawValue: 1)) == 1000 })
        bench.submit(Array(0..<1000))
        bench.submit(Array(1000..<3000), isPatient: true)
        let outcomes = bench.collect(3000)
        #expect(Set(outcomes.map(\.slot)) == Set(0..<3000))
        #expect(outcomes.allSatisfy { $0.kind == .answered && $0.status == 200 })
        #expect(outcomes.allSatisfy { $0.sentAt.nanoseconds > 0 })
        #expect(bench.port.counters.snapshot == TransportCounts())
    }

    @Test func `a shadow says of an expired push that it would not have been sent`() throws {
        let bench = try ShadowBench()
        bench.submit([1, 2, 3], expired: [2])
        let outcomes = bench.collect(3)
        #expect(outcomes.filter { $0.kind == .expired }.map(\.slot) == [2])
    }

    @Test func `a shadow leaves when it is drained, with an outcome for each push`() throws {
        let bench = try ShadowBench()
        bench.submit(Array(0..<100))
        bench.port.enter(.draining)
        #expect(bench.wait { bench.port.hasExited })
        #expect(bench.collect(100).count == 100)
        #expect(bench.port.capacity(of: PoolID(rawValue: 0)) == 0)
    }

    @Test func `a shadow that has nothing to do still beats`() throws {
        let bench = try ShadowBench()
        func now() -> MonotonicTime {
            MonotonicTime(nanoseconds: SystemClock.monotonicNanoseconds())
        }
        #expect(bench.wait { bench.port.heartbeat.age(now: now()) != nil })
        let first = now()
        #expect(bench.wait { bench.port.heartbeat.age(now: now())! < now() - first })
    }
}
