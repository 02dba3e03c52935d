// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import APNSSimulator
internal import Delivery
internal import PushModel
internal import Testing

@Suite struct `The nghttp2 transport` {
    @Test func `sends 500 pushes over one cold connection and none is refused`() throws {
        let bench = try DeliveryBench()
        bench.submit(500)
        let outcomes = bench.collect(500)
        #expect(outcomes.count == 500)
        #expect(outcomes.allSatisfy { $0.kind == .answered && $0.status == 200 })
        #expect(outcomes.allSatisfy { $0.sentAt.nanoseconds > 0 })
        #expect(bench.wait { bench.simulator.counts.connectionsOpened == 1 })
        #expect(bench.simulator.counts.streamsRefused == 0)
        #expect(bench.drain())
        #expect(bench.wait { bench.transport.counters.snapshot.requests == 500 })
    }

    @Test func `sends exactly these headers and this body`() throws {
        let bench = try DeliveryBench()
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        let request = try #require(bench.simulator.recordedRequests.first)
        let bearer = try #require(request["authorization"])
        #expect(bearer.hasPrefix("bearer "))
        let token = String(repeating: "ab", count: 30) + "0000"
        #expect(
            request.headers.map { "\($0.name): \($0.value)" } == [
                ":method: POST", ":scheme: https", ":authority: localhost",
                ":path: /3/device/\(token)", "authorization: \(bearer)",
                "apns-push-type: controls",
                "apns-topic: com.example.Home.push-type.controls",
                "apns-id: 01234567-89ab-8def-8000-000000000000", "apns-priority: 10",
                "apns-expiration: 0",
            ])
        #expect(request.body == Array(DeliveryBench.body.utf8))
    }

    @Test func `leaves out what is not set, and writes numbers as they are`() throws {
        let bench = try DeliveryBench()
        let collapse = UnsafeMutablePointer<UInt8>.allocate(capacity: 5)
        defer { collapse.deallocate() }
        collapse.update(from: Array("score".utf8), count: 5)
        bench.submit(3) { number, push in
            push.pointee.priority = 0
            push.pointee.expiration = number == 0 ? -1 : 1_763_712_000
            if number == 2 {
                push.pointee.collapseID = UnsafePointer(collapse)
                push.pointee.collapseIDBytes = 5
            }
        }
        #expect(bench.collect(3).allSatisfy { $0.status == 200 })
        let requests = bench.simulator.recordedRequests
        #expect(requests.map { $0["apns-priority"] } == [nil, nil, nil])
        #expect(requests.map { $0["apns-expiration"] } == [nil, "1763712000", "1763712000"])
        #expect(requests.map { $0["apns-collapse-id"] } == [nil, nil, "score"])
    }

    @Test func `takes tokens of any length`() throws {
        let bench = try DeliveryBench()
        let long = UnsafeMutablePointer<UInt8>.allocate(capacity: 200)
        defer { long.deallocate() }
        long.update(repeating: 0xC4, count: 200)
        bench.submit(2) { number, push in
            push.pointee.tokenBytes = number == 0 ? 100 : 200
            if number == 1 { push.pointee.longToken = UnsafePointer(long) }
        }
        #expect(bench.collect(2).map(\.status) == [200, 200])
        let paths = bench.simulator.recordedRequests.map { $0[":path"]!.utf8.count }
        #expect(paths == [10 + 200, 10 + 400])
    }

    @Test func `sends more bytes than the server's window holds at once`() throws {
        let bench = try DeliveryBench()
        let large = UnsafeMutablePointer<UInt8>.allocate(capacity: 4096)
        defer { large.deallocate() }
        large.update(repeating: 0x20, count: 4096)
        large.update(from: Array(DeliveryBench.body.utf8), count: DeliveryBench.body.utf8.count)
        bench.submit(200) { _, push in
            push.pointee.body = UnsafePointer(large)
            push.pointee.bodyBytes = 4096
        }
        #expect(bench.collect(200).filter { $0.status == 200 }.count == 200)
        #expect(bench.simulator.recordedRequests.allSatisfy { $0.body.count == 4096 })
        #expect(bench.wait { bench.simulator.counts.connectionsOpened == 1 })
    }

    @Test func `never sends an expired push`() throws {
        let bench = try DeliveryBench()
        bench.submit(10) { number, push in
            if number.isMultiple(of: 2) { push.pointee.expiresAt = MonotonicTime(nanoseconds: 1) }
        }
        let outcomes = bench.collect(10)
        #expect(outcomes.filter { $0.kind == .expired }.count == 5)
        #expect(bench.wait { bench.simulator.counts.accepted == 5 })
    }

    @Test func `obeys the stream limit up and down`() throws {
        let bench = try DeliveryBench { $0.streamLimit = 20 }
        bench.submit(200)
        #expect(bench.collect(200).allSatisfy { $0.status == 200 })
        bench.simulator.perform(.streamLimit(3))
        #expect(bench.wait { bench.port.capacity(of: PoolID(rawValue: 0)) == 3 + 32 })
        bench.submit(100)
        #expect(bench.collect(100).allSatisfy { $0.status == 200 })
        bench.simulator.perform(.streamLimit(400))
        #expect(bench.wait { bench.port.capacity(of: PoolID(rawValue: 0)) == 400 + 50 })
        #expect(bench.simulator.counts.streamsRefused == 0)
    }

    @Test func `spreads its pushes over the connections of a pool`() throws {
        let bench = try DeliveryBench(connections: 3) { $0.streamLimit = 10 }
        bench.submit(300)
        #expect(bench.collect(300).allSatisfy { $0.status == 200 })
        #expect(Set(bench.simulator.recordedRequests.map(\.connection)).count == 3)
    }

    @Test func `reports what APNs answers, with its timestamp and unknown words`() throws {
        let rules = [
            ScriptedRule(
                tokenPrefix: String(repeating: "ab", count: 30) + "0000",
                answer: .gone("Unregistered", .at(1_763_712_000_123))),
            ScriptedRule(
                tokenPrefix: String(repeating: "ab", count: 30) + "0001",
                answer: .reason(400, "TooManyCooks")),
            ScriptedRule(
                tokenPrefix: String(repeating: "ab", count: 30) + "0002", answer: .html(502)),
            ScriptedRule(
                tokenPrefix: String(repeating: "ab", count: 30) + "0003", answer: .emptyBody(500)),
        ]
        let bench = try DeliveryBench { $0.rules = rules }
        let slots = bench.submit(5)
        let outcomes = bench.collect(5).sorted { $0.slot < $1.slot }
        let bySlot = slots.map { slot in outcomes.first { $0.slot == slot }! }
        #expect(bySlot.map(\.status) == [410, 400, 502, 500, 200])
        #expect(bySlot.map(\.reason) == [.unregistered, .unknown, .none, .none, .none])
        #expect(bySlot.map(\.apnsTimestamp) == [1_763_712_000_123, -1, -1, -1, -1])
        let kept = UnsafeBufferPointer(start: bench.slab.reason(slots[1]), count: 13)
        #expect(kept.elementsEqual(Array("TooManyCooks".utf8) + [0]))
        #expect(bench.wait { bench.simulator.counts.connectionsOpened == 1 })
    }

    @Test func `drains: what is in flight is answered, what waits comes back`() throws {
        let bench = try DeliveryBench {
            $0.streamLimit = 4
            $0.delay = .milliseconds(50)
        }
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        bench.submit(20)
        #expect(bench.wait { bench.transport.counters.snapshot.requests == 5 })
        #expect(bench.drain())
        let outcomes = bench.collect(20)
        #expect(outcomes.filter { $0.status == 200 }.count == 4)
        #expect(outcomes.filter { $0.kind == .unprocessed }.count == 16)
        #expect(bench.port.capacity(of: PoolID(rawValue: 0)) == 0)
    }
}
