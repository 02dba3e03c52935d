// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import APNSSimulator
internal import Delivery
internal import FleetKit
internal import LinuxIO
internal import PushModel
internal import Testing

@Suite struct `What only the libcurl transport does` {
    @Test func `the libcurl transport publishes the capacity of what is open`() throws {
        let server = try DeliverySimulator()
        let bench = try server.bench(.libcurl)
        let pool = PoolID(rawValue: 0)
        #expect(bench.wait { bench.port.capacity(of: pool) == 32 })
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        #expect(bench.wait { bench.port.capacity(of: pool) == 100 + 32 })
    }

    @Test func `the libcurl transport drains without waiting for a connect that hangs`() throws {
        let mute = try Socket.listening(onLoopbackPort: 0)
        let server = try DeliverySimulator()
        let bench = try DeliveryBench(
            .libcurl, to: mute.localPort(), caFile: server.caFile, privatePEM: server.key.privatePEM
        )
        bench.submit(5)
        #expect(bench.wait { bench.transport.counters.snapshot.requests == 1 })
        let stopwatch = Stopwatch()
        #expect(bench.drain())
        #expect(stopwatch.time < .seconds(8))
        let outcomes = bench.collect(5)
        #expect(outcomes.count == 5)
        #expect(outcomes.allSatisfy { $0.kind == .unprocessed })
    }

    /// libcurl 7.88 resets each stream that has ended, and nghttp2 ends a connection after about a
    /// thousand resets (its guard against the rapid-reset attack).
    @Test func `libcurl outlives servers that count resets, with one outcome for each push`() throws
    {
        let server = try DeliverySimulator()
        let bench = try server.bench(.libcurl)
        let slots = bench.submit(3000)
        let outcomes = bench.collect(3000)
        #expect(Set(outcomes.map(\.slot)) == Set(slots))
        #expect(outcomes.count == 3000)
        // What waits for too long on a slow machine is given back.
        #expect(
            outcomes.allSatisfy {
                $0.status == 200 || $0.kind == .unknown || $0.kind == .unprocessed
            })
        #expect(outcomes.filter { $0.kind == .unknown }.count < 1000)
        // None was sent twice: that would be for the planner to decide.
        #expect(server.simulator.counts.accepted <= 3000)
        #expect(server.simulator.counts.streamsRefused == 0)
    }

    @Test func `after GOAWAY the rest is answered and a new connection follows`() throws {
        let server = try DeliverySimulator { $0.delay = .milliseconds(100) }
        let bench = try server.bench(.libcurl)
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        bench.submit(100)
        #expect(bench.wait { server.simulator.recordedRequests.count == 101 })
        server.simulator.perform(.goAway(reason: "Shutdown", streamsBelow: 0))
        let outcomes = bench.collect(100)
        #expect(outcomes.count == 100)
        #expect(outcomes.allSatisfy { $0.status == 200 || $0.kind == .unknown })
        // libcurl 7.88 resets streams that have ended; when that meets the closed connection of a
        // server that has left, answers not yet read are lost with it.
        #expect(outcomes.filter { $0.status == 200 }.count >= 80)
        server.simulator.perform(.delay(.zero))
        bench.submit(50)
        #expect(bench.collect(50).allSatisfy { $0.status == 200 })
        #expect(server.simulator.counts.connectionsOpened == 2)
    }

    @Test func `a GOAWAY that leaves requests out sends none of them twice by itself`() throws {
        let server = try DeliverySimulator { $0.delay = .milliseconds(100) }
        let bench = try server.bench(.libcurl)
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        bench.submit(100)
        #expect(bench.wait { bench.transport.counters.snapshot.requests == 101 })
        server.simulator.perform(.goAway(reason: nil, streamsBelow: 40))
        let outcomes = bench.collect(100)
        #expect(outcomes.count == 100)
        #expect(Set(outcomes.map(\.slot)).count == 100)
        #expect(outcomes.allSatisfy { $0.status == 200 || $0.kind == .unknown })
        let accepted = outcomes.filter { $0.status == 200 }.count
        #expect(server.simulator.counts.accepted >= accepted + 1)
        #expect(server.simulator.counts.accepted <= 101)
    }

    @Test func `libcurl replaces a connection that is old, between pushes and under them`() throws {
        let server = try DeliverySimulator()
        let bench = try server.bench(
            .libcurl, limits: DeliveryBench.brisk { $0.ageMax = .milliseconds(100) })
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        #expect(bench.wait { server.simulator.counts.connectionsOpen == 0 })
        bench.submit(10)
        #expect(bench.collect(10).allSatisfy { $0.status == 200 })
        #expect(server.simulator.counts.connectionsOpened >= 2)
    }
}
