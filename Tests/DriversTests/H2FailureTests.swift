// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import APNSSimulator
internal import Delivery
internal import Foundation
internal import LinuxIO
internal import OpenSSL
internal import PushModel
internal import Testing

@Suite struct `The nghttp2 transport under failure` {
    /// Times short enough for a test.
    private static func brisk(_ change: (inout ConnectionLimits) -> Void = { _ in })
        -> ConnectionLimits
    {
        var limits = ConnectionLimits()
        limits.reconnectMin = .milliseconds(20)
        limits.reconnectMax = .milliseconds(100)
        change(&limits)
        return limits
    }

    @Test func `gives up a request at its deadline and leaves a connection that is dead`() throws {
        let bench = try DeliveryBench(limits: Self.brisk { $0.requestTimeout = .milliseconds(200) })
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        bench.simulator.perform(.stall(true))
        bench.submit(5)
        let outcomes = bench.collect(5)
        #expect(outcomes.count == 5)
        #expect(outcomes.allSatisfy { $0.kind == .unknown && $0.sentAt.nanoseconds > 0 })
        bench.simulator.perform(.stall(false))
        bench.submit(5)
        #expect(bench.collect(5).allSatisfy { $0.status == 200 })
        #expect(bench.wait { bench.simulator.counts.connectionsOpened == 2 })
    }

    @Test func `keeps the connection when a single request times out`() throws {
        let silent = ScriptedRule(
            tokenPrefix: String(repeating: "ab", count: 30) + "0000", answer: .silence)
        let bench = try DeliveryBench(
            limits: Self.brisk { $0.requestTimeout = .milliseconds(200) })
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        bench.simulator.perform(.rules([silent]))
        bench.submit(2)
        let outcomes = bench.collect(2)
        #expect(outcomes.map(\.kind).contains(.unknown))
        bench.simulator.perform(.rules([]))
        bench.submit(50)
        #expect(bench.collect(50).allSatisfy { $0.status == 200 })
        #expect(bench.wait { bench.simulator.counts.connectionsOpened == 1 })
    }

    @Test func `gives pushes back when nobody listens`() throws {
        let unused = try Socket.listening().localPort()
        let bench = try DeliveryBench(
            port: unused, limits: Self.brisk { $0.waitMax = .milliseconds(100) })
        bench.submit(10)
        let outcomes = bench.collect(10)
        #expect(outcomes.count == 10)
        #expect(outcomes.allSatisfy { $0.kind == .unprocessed })
        #expect(bench.wait { bench.transport.counters.snapshot.connectFailures > 0 })
        #expect(bench.port.capacity(of: PoolID(rawValue: 0)) == 32)
    }

    @Test func `backs off between connects`() throws {
        let unused = try Socket.listening().localPort()
        let bench = try DeliveryBench(
            port: unused,
            limits: Self.brisk {
                $0.reconnectMin = .milliseconds(200)
                $0.waitMax = .milliseconds(300)
            })
        bench.submit(1)
        #expect(bench.collect(1).count == 1)
        // Within 300 ms: one at once, then at least 20 ms, 10 ms (a tenth of 100) and so on.
        #expect(bench.transport.counters.snapshot.connectFailures < 20)
    }

    @Test func `sends nothing to a server whose certificate it cannot verify`() throws {
        let bench = try DeliveryBench(
            trust: false, limits: Self.brisk { $0.waitMax = .milliseconds(100) })
        bench.submit(3)
        #expect(bench.collect(3).allSatisfy { $0.kind == .unprocessed })
        #expect(bench.wait { bench.transport.counters.snapshot.certificatesRefused > 0 })
        #expect(bench.simulator.counts.accepted == 0)
    }

    @Test func `sends nothing to a server that bears another name`() throws {
        let bench = try DeliveryBench(
            serverName: "api.example.com", limits: Self.brisk { $0.waitMax = .milliseconds(100) })
        bench.submit(3)
        #expect(bench.collect(3).allSatisfy { $0.kind == .unprocessed })
        #expect(bench.wait { bench.transport.counters.snapshot.certificatesRefused > 0 })
    }

    @Test func `sends what GOAWAY left out again, elsewhere, and nothing twice`() throws {
        let bench = try DeliveryBench(limits: Self.brisk()) { $0.delay = .milliseconds(150) }
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        bench.submit(100)
        #expect(bench.wait { bench.transport.counters.snapshot.requests == 101 })
        bench.simulator.perform(.goAway(reason: "Shutdown", streamsBelow: 40))
        let outcomes = bench.collect(100)
        #expect(outcomes.count == 100)
        #expect(outcomes.allSatisfy { $0.status == 200 })
        let counts = bench.transport.counters.snapshot
        #expect(counts.goAways == 1)
        #expect(counts.refused == counts.requests - 101)
        #expect(bench.wait { bench.simulator.counts.connectionsOpened == 2 })
    }

    @Test func `sends refused streams again on the same connection`() throws {
        let bench = try DeliveryBench(limits: Self.brisk())
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        bench.simulator.perform(.refuseStreams(30))
        bench.submit(100)
        #expect(bench.collect(100).allSatisfy { $0.status == 200 })
        #expect(bench.wait { bench.simulator.counts.streamsRefused == 30 })
        #expect(bench.wait { bench.transport.counters.snapshot.refused == 30 })
        #expect(bench.wait { bench.simulator.counts.connectionsOpened == 1 })
    }

    @Test func `gives a push back that is refused again and again`() throws {
        let bench = try DeliveryBench(limits: Self.brisk())
        bench.simulator.perform(.refuseStreams(.max))
        bench.submit(5)
        let outcomes = bench.collect(5)
        #expect(outcomes.count == 5)
        #expect(outcomes.allSatisfy { $0.kind == .unprocessed })
    }

    @Test func `does not know what became of requests when the connection is reset`() throws {
        let bench = try DeliveryBench(limits: Self.brisk()) { $0.delay = .milliseconds(300) }
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        bench.submit(10)
        #expect(bench.wait { bench.transport.counters.snapshot.requests == 11 })
        bench.simulator.perform(.resetConnections)
        #expect(bench.collect(10).allSatisfy { $0.kind == .unknown })
        #expect(bench.wait { bench.transport.counters.snapshot.connectionsLost == 1 })
        bench.submit(10)
        #expect(bench.collect(10).allSatisfy { $0.status == 200 })
    }

    @Test func `replaces a connection whose answer says so`() throws {
        let bench = try DeliveryBench(limits: Self.brisk())
        bench.simulator.perform(.rules([ScriptedRule(answer: .reason(503, "Shutdown"))]))
        bench.submit(1)
        #expect(bench.collect(1).first?.reason == .shutdown)
        bench.simulator.perform(.rules([]))
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        #expect(bench.wait { bench.simulator.counts.connectionsOpened == 2 })
    }

    @Test func `asks by PING before it uses a silent connection, and leaves a dead one`() throws {
        let bench = try DeliveryBench(
            limits: Self.brisk {
                $0.pingAfterSilence = .milliseconds(100)
                $0.pingTimeout = .milliseconds(500)
            })
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        let received = bench.transport.counters.snapshot.bytesReceived
        usleep(150_000)
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        // An answer to PING has 17 bytes, and an answer to a push more than 10.
        #expect(bench.transport.counters.snapshot.bytesReceived >= received + 27)
        #expect(bench.wait { bench.simulator.counts.connectionsOpened == 1 })
    }

    @Test func `shows a replaced key on a new connection only`() throws {
        let bench = try DeliveryBench(limits: Self.brisk())
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        let other = try ES256Key.generate()
        try bench.tokens.replaceKey(pem: other.privatePEM)
        bench.submit(1)
        #expect(bench.collect(1).first?.reason == .invalidProviderToken)
        #expect(bench.simulator.counts.connectionsOpened >= 2)
    }

    @Test func `stops at once with an outcome for every push`() throws {
        let bench = try DeliveryBench { $0.streamLimit = 4 }
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        bench.simulator.perform(.stall(true))
        bench.submit(10)
        #expect(bench.wait { bench.transport.counters.snapshot.requests == 5 })
        bench.port.enter(.stopping)
        let outcomes = bench.collect(10)
        #expect(outcomes.filter { $0.kind == .unknown }.count == 4)
        #expect(outcomes.filter { $0.kind == .unprocessed }.count == 6)
        #expect(bench.wait { bench.port.hasExited })
    }
}
