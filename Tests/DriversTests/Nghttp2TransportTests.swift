// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import APNSSimulator
internal import Delivery
internal import Foundation
internal import PushModel
internal import Testing

@Suite struct `What only the nghttp2 transport does` {
    @Test func `the nghttp2 transport obeys the stream limit up and down`() throws {
        let server = try DeliverySimulator { $0.streamLimit = 20 }
        let bench = try server.bench(.nghttp2)
        bench.submit(200)
        #expect(bench.collect(200).allSatisfy { $0.status == 200 })
        server.simulator.perform(.streamLimit(3))
        #expect(bench.wait { bench.port.capacity(of: PoolID(rawValue: 0)) == 3 + 32 })
        bench.submit(100)
        #expect(bench.collect(100).allSatisfy { $0.status == 200 })
        server.simulator.perform(.streamLimit(400))
        #expect(bench.wait { bench.port.capacity(of: PoolID(rawValue: 0)) == 400 + 50 })
        #expect(server.simulator.counts.streamsRefused == 0)
    }

    @Test func `nghttp2 sends what GOAWAY left out again, elsewhere, and nothing twice`() throws {
        let server = try DeliverySimulator { $0.delay = .milliseconds(150) }
        let bench = try server.bench(.nghttp2)
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        bench.submit(100)
        #expect(bench.wait { bench.transport.counters.snapshot.requests == 101 })
        server.simulator.perform(.goAway(reason: "Shutdown", streamsBelow: 40))
        let outcomes = bench.collect(100)
        #expect(outcomes.count == 100)
        #expect(outcomes.allSatisfy { $0.status == 200 })
        let counts = bench.transport.counters.snapshot
        #expect(bench.connectionCounts.goAways == 1)
        #expect(counts.refused == counts.requests - 101)
        #expect(bench.wait { server.simulator.counts.connectionsOpened == 2 })
    }

    @Test func `the nghttp2 transport sends refused streams again on the same connection`() throws {
        let server = try DeliverySimulator()
        let bench = try server.bench(.nghttp2)
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        server.simulator.perform(.refuseStreams(30))
        bench.submit(100)
        #expect(bench.collect(100).allSatisfy { $0.status == 200 })
        #expect(bench.wait { server.simulator.counts.streamsRefused == 30 })
        #expect(bench.wait { bench.transport.counters.snapshot.refused == 30 })
        #expect(bench.wait { server.simulator.counts.connectionsOpened == 1 })
    }

    @Test func `the nghttp2 transport gives a push back that is refused again and again`() throws {
        let server = try DeliverySimulator()
        let bench = try server.bench(.nghttp2)
        server.simulator.perform(.refuseStreams(.max))
        bench.submit(5)
        let outcomes = bench.collect(5)
        #expect(outcomes.count == 5)
        #expect(outcomes.allSatisfy { $0.kind == .unprocessed })
    }

    @Test func `the nghttp2 transport asks by PING before it uses a silent connection`() throws {
        let server = try DeliverySimulator()
        let bench = try server.bench(
            .nghttp2, limits: DeliveryBench.brisk { $0.pingAfterSilence = .milliseconds(100) })
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        let received = bench.transport.counters.snapshot.bytesReceived
        usleep(150_000)
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        // An answer to PING has 17 bytes, and an answer to a push more than 10.
        #expect(bench.transport.counters.snapshot.bytesReceived >= received + 27)
        #expect(bench.wait { server.simulator.counts.connectionsOpened == 1 })
    }

    @Test func `the nghttp2 transport asks an idle connection by PING now and then`() throws {
        let server = try DeliverySimulator()
        let bench = try server.bench(
            .nghttp2, limits: DeliveryBench.brisk { $0.pingWhenIdle = .milliseconds(100) })
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        let received = bench.transport.counters.snapshot.bytesReceived
        // Two answers of 17 bytes each, with nothing to send.
        #expect(bench.wait { bench.transport.counters.snapshot.bytesReceived >= received + 34 })
        #expect(server.simulator.counts.connectionsOpened == 1)
    }

    @Test func `the nghttp2 transport replaces an idle connection that answers no PING`() throws {
        let server = try DeliverySimulator()
        let bench = try server.bench(
            .nghttp2,
            limits: DeliveryBench.brisk {
                $0.pingWhenIdle = .milliseconds(100)
                $0.pingTimeout = .milliseconds(200)
            })
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        server.simulator.perform(.blackHole(true))
        let pool = PoolID(rawValue: 0)
        #expect(bench.wait { bench.port.capacity(of: pool) == 32 })
        server.simulator.perform(.blackHole(false))
        #expect(bench.wait { bench.port.capacity(of: pool) > 32 })
        #expect(bench.connectionCounts.connectionsLost == 0)
    }

    @Test func `nghttp2 leaves a silent connection that answers no PING, and loses no push to it`()
        throws
    {
        let server = try ForeignServer.nghttpd()
        let bench = try server.bench(
            .nghttp2,
            limits: DeliveryBench.brisk {
                $0.pingAfterSilence = .milliseconds(100)
                $0.pingTimeout = .milliseconds(200)
            })
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        // Its kernel goes on to acknowledge what comes.
        server.freeze()
        usleep(150_000)
        let open = bench.port.capacity(of: PoolID(rawValue: 0))
        bench.submit(5)
        #expect(bench.wait { bench.port.capacity(of: PoolID(rawValue: 0)) < open })
        server.thaw()
        // None went out behind the PING, so the loss leaves none in doubt.
        let outcomes = bench.collect(5)
        #expect(outcomes.count == 5)
        #expect(outcomes.allSatisfy { $0.status == 200 })
        #expect(bench.connectionCounts.connects == 2)
        #expect(bench.transport.counters.snapshot.requests == 6)
    }
}
