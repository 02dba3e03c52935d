// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import APNSSimulator
internal import Delivery
internal import PushModel
internal import Testing

@Suite struct `The libcurl transport` {
    @Test func `sends 500 pushes over one cold connection and none is refused`() throws {
        let server = try CurlSimulator()
        let bench = try server.bench()
        bench.submit(500)
        let outcomes = bench.collect(500)
        #expect(outcomes.count == 500)
        #expect(outcomes.allSatisfy { $0.kind == .answered && $0.status == 200 })
        #expect(outcomes.allSatisfy { $0.sentAt.nanoseconds > 0 })
        #expect(Set(outcomes.map(\.slot)).count == 500)
        #expect(server.simulator.counts.connectionsOpened == 1)
        #expect(server.simulator.counts.streamsRefused == 0)
        #expect(bench.drain())
        #expect(bench.transport.counters.snapshot.requests == 500)
        #expect(bench.transport.counters.snapshot.connects == 1)
    }

    @Test func `sends exactly the headers that the nghttp2 transport sends`() throws {
        let server = try CurlSimulator()
        let bench = try server.bench()
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        let request = try #require(server.simulator.recordedRequests.first)
        let bearer = try #require(request["authorization"])
        #expect(bearer.hasPrefix("bearer "))
        #expect(
            Set(request.headers.map { "\($0.name): \($0.value)" }) == [
                ":method: POST", ":scheme: https", ":authority: localhost",
                ":path: /3/device/\(CurlBench.tokenPrefix)0000", "authorization: \(bearer)",
                "apns-push-type: controls",
                "apns-topic: com.example.Home.push-type.controls",
                "apns-id: 01234567-89ab-8def-8000-000000000000", "apns-priority: 10",
                "apns-expiration: 0",
            ])
        #expect(request.headers.count == 10)
        #expect(request.body == Array(CurlBench.body.utf8))
    }

    @Test func `leaves out what is not set and writes numbers and identifiers as they are`() throws
    {
        let server = try CurlSimulator()
        let bench = try server.bench()
        let collapse = UnsafeMutablePointer<UInt8>.allocate(capacity: 5)
        defer { collapse.deallocate() }
        collapse.update(from: Array("score".utf8), count: 5)
        for number in 0..<3 {
            bench.submit(1) { _, push in
                push.pointee.priority = 0
                push.pointee.expiration = number == 0 ? -1 : 1_763_712_000
                if number == 1 {
                    push.pointee.collapseID = UnsafePointer(collapse)
                    push.pointee.collapseIDBytes = 5
                }
            }
            #expect(bench.collect(1).first?.status == 200)
        }
        let requests = server.simulator.recordedRequests
        #expect(requests.map { $0["apns-priority"] } == [nil, nil, nil])
        #expect(requests.map { $0["apns-expiration"] } == [nil, "1763712000", "1763712000"])
        // Nothing of a request is left in the handle for the next one.
        #expect(requests.map { $0["apns-collapse-id"] } == [nil, "score", nil])
    }

    @Test func `takes tokens of any length and bodies up to the largest`() throws {
        let server = try CurlSimulator()
        let bench = try server.bench()
        let long = UnsafeMutablePointer<UInt8>.allocate(capacity: 200)
        defer { long.deallocate() }
        long.update(repeating: 0xC4, count: 200)
        let body = Array((#"{"aps":{},"x":"\#(String(repeating: "y", count: 4000))"}"#).utf8)
        let large = UnsafeMutablePointer<UInt8>.allocate(capacity: body.count)
        defer { large.deallocate() }
        large.update(from: body, count: body.count)
        bench.submit(100) { number, push in
            push.pointee.body = UnsafePointer(large)
            push.pointee.bodyBytes = UInt32(body.count)
            guard number == 50 else { return }
            push.pointee.tokenBytes = 200
            push.pointee.longToken = UnsafePointer(long)
        }
        let outcomes = bench.collect(100)
        #expect(outcomes.count == 100)
        #expect(outcomes.filter { $0.status != 200 }.map(\.reason) == [])
        let requests = server.simulator.recordedRequests
        #expect(requests.count == 100)
        #expect(requests.allSatisfy { $0.body == body })
        #expect(requests.contains { $0[":path"]!.utf8.count == 10 + 400 })
    }

    @Test func `never sends an expired push`() throws {
        let server = try CurlSimulator()
        let bench = try server.bench()
        bench.submit(10) { number, push in
            if number.isMultiple(of: 2) { push.pointee.expiresAt = MonotonicTime(nanoseconds: 1) }
        }
        let outcomes = bench.collect(10)
        #expect(outcomes.filter { $0.kind == .expired }.count == 5)
        #expect(server.simulator.counts.accepted == 5)
    }

    @Test func `spreads its pushes over the connections of a pool`() throws {
        let server = try CurlSimulator { $0.delay = .milliseconds(2) }
        let bench = try server.bench(connections: 3)
        bench.submit(1500)
        #expect(bench.collect(1500).allSatisfy { $0.status == 200 })
        #expect(Set(server.simulator.recordedRequests.map(\.connection)).count == 3)
        #expect(server.simulator.counts.connectionsOpened == 3)
    }

    @Test func `stays on one connection when the server allows fewer streams than it would use`()
        throws
    {
        let server = try CurlSimulator { $0.streamLimit = 5 }
        let bench = try server.bench()
        bench.submit(300)
        let outcomes = bench.collect(300)
        #expect(outcomes.count == 300)
        #expect(outcomes.allSatisfy { $0.status == 200 })
        #expect(server.simulator.counts.streamsRefused == 0)
        #expect(server.simulator.counts.connectionsOpened == 1)
    }

    @Test func `reports what APNs answers, with its timestamp and unknown words`() throws {
        let rules = [
            ScriptedRule(
                tokenPrefix: CurlBench.tokenPrefix + "0000",
                answer: .gone("Unregistered", .at(1_763_712_000_123))),
            ScriptedRule(
                tokenPrefix: CurlBench.tokenPrefix + "0001",
                answer: .reason(400, "TooManyCooks")),
            ScriptedRule(tokenPrefix: CurlBench.tokenPrefix + "0002", answer: .html(502)),
            ScriptedRule(tokenPrefix: CurlBench.tokenPrefix + "0003", answer: .emptyBody(500)),
        ]
        let server = try CurlSimulator { $0.rules = rules }
        let bench = try server.bench()
        let slots = bench.submit(5)
        let outcomes = bench.collect(5)
        let bySlot = slots.compactMap { slot in outcomes.first { $0.slot == slot } }
        #expect(bySlot.map(\.status) == [410, 400, 502, 500, 200])
        #expect(bySlot.map(\.reason) == [.unregistered, .unknown, .none, .none, .none])
        #expect(bySlot.map(\.apnsTimestamp) == [1_763_712_000_123, -1, -1, -1, -1])
        let kept = UnsafeBufferPointer(start: bench.slab.reason(slots[1]), count: 13)
        #expect(kept.elementsEqual(Array("TooManyCooks".utf8) + [0]))
        #expect(server.simulator.counts.connectionsOpened == 1)
    }

    @Test func `drains: what is in flight is answered, what waits comes back`() throws {
        let server = try CurlSimulator { $0.delay = .milliseconds(50) }
        let bench = try server.bench()
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        bench.submit(300)
        #expect(bench.wait { bench.transport.counters.snapshot.requests == 101 })
        #expect(bench.drain())
        let outcomes = bench.collect(300)
        #expect(outcomes.count == 300)
        #expect(outcomes.filter { $0.status == 200 }.count == 100)
        #expect(outcomes.filter { $0.kind == .unprocessed }.count == 200)
        #expect(bench.port.capacity(of: PoolID(rawValue: 0)) == 0)
    }

    @Test func `publishes the capacity of what is open`() throws {
        let server = try CurlSimulator()
        let bench = try server.bench()
        let pool = PoolID(rawValue: 0)
        #expect(bench.wait { bench.port.capacity(of: pool) == 32 })
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        #expect(bench.wait { bench.port.capacity(of: pool) == 100 + 32 })
    }
}
