// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import APNSSimulator
internal import Delivery
internal import LinuxIO
internal import PushModel
internal import Testing

@Suite struct `The libcurl transport under failure` {
    @Test func `gives up a request at its deadline and leaves a connection that is dead`() throws {
        let server = try CurlSimulator()
        let bench = try server.bench(
            limits: CurlBench.brisk { $0.requestTimeout = .milliseconds(200) })
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        server.simulator.perform(.stall(true))
        bench.submit(5)
        let outcomes = bench.collect(5)
        #expect(outcomes.count == 5)
        #expect(outcomes.allSatisfy { $0.kind == .unknown && $0.sentAt.nanoseconds > 0 })
        server.simulator.perform(.stall(false))
        bench.submit(5)
        #expect(bench.collect(5).allSatisfy { $0.status == 200 })
        #expect(server.simulator.counts.connectionsOpened == 2)
    }

    @Test func `keeps the connection when a single request times out`() throws {
        let silent = ScriptedRule(tokenPrefix: CurlBench.tokenPrefix + "0000", answer: .silence)
        let server = try CurlSimulator()
        let bench = try server.bench(
            limits: CurlBench.brisk { $0.requestTimeout = .milliseconds(200) })
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        server.simulator.perform(.rules([silent]))
        bench.submit(2)
        #expect(bench.collect(2).map(\.kind).contains(.unknown))
        server.simulator.perform(.rules([]))
        bench.submit(50)
        #expect(bench.collect(50).allSatisfy { $0.status == 200 })
        #expect(server.simulator.counts.connectionsOpened == 1)
        #expect(bench.transport.counters.snapshot.timeouts == 1)
    }

    @Test func `refuses a certificate that its CA has not signed`() throws {
        let server = try CurlSimulator()
        let bench = try CurlBench(
            to: server.port, caFile: try server.strangersFile(), key: server.key,
            limits: CurlBench.brisk { $0.waitMax = .milliseconds(200) })
        bench.submit(3)
        let outcomes = bench.collect(3)
        #expect(outcomes.count == 3)
        #expect(outcomes.allSatisfy { $0.kind == .unprocessed })
        #expect(bench.transport.counters.snapshot.certificatesRefused > 0)
        #expect(server.simulator.recordedRequests.isEmpty)
    }

    @Test func `refuses a certificate for another name`() throws {
        let server = try CurlSimulator()
        let bench = try server.bench(
            serverName: "example.com", limits: CurlBench.brisk { $0.waitMax = .milliseconds(200) })
        bench.submit(1)
        #expect(bench.collect(1).map(\.kind) == [.unprocessed])
        #expect(bench.transport.counters.snapshot.certificatesRefused > 0)
    }

    @Test func `gives pushes back when nobody listens, and backs off`() throws {
        let unused = try Socket.listening(onLoopbackPort: 0).localPort()
        let server = try CurlSimulator()
        let bench = try CurlBench(
            to: unused, caFile: server.caFile, key: server.key,
            limits: CurlBench.brisk {
                $0.waitMax = .milliseconds(300)
                $0.reconnectMin = .milliseconds(100)
            })
        bench.submit(20)
        let outcomes = bench.collect(20)
        #expect(outcomes.count == 20)
        #expect(outcomes.allSatisfy { $0.kind == .unprocessed })
        let failures = bench.transport.counters.snapshot.connectFailures
        #expect(failures >= 2 && failures < 20)
    }

    @Test func `gives pushes back when the connect hangs`() throws {
        // The kernel accepts for it; nobody answers the TLS handshake.
        let mute = try Socket.listening(onLoopbackPort: 0)
        let server = try CurlSimulator()
        let bench = try CurlBench(
            to: mute.localPort(), caFile: server.caFile, key: server.key,
            limits: CurlBench.brisk {
                $0.connectTimeout = .milliseconds(100)
                $0.waitMax = .milliseconds(50)
            })
        bench.submit(5)
        let outcomes = bench.collect(5)
        #expect(outcomes.count == 5)
        #expect(outcomes.allSatisfy { $0.kind == .unprocessed })
        #expect(bench.transport.counters.snapshot.connectFailures > 0)
    }

    @Test func `drains without waiting for a connect that hangs`() throws {
        let mute = try Socket.listening(onLoopbackPort: 0)
        let server = try CurlSimulator()
        let bench = try CurlBench(to: mute.localPort(), caFile: server.caFile, key: server.key)
        bench.submit(5)
        #expect(bench.wait { bench.transport.counters.snapshot.requests == 1 })
        let start = ContinuousClock.now
        #expect(bench.drain())
        #expect(ContinuousClock.now - start < .seconds(3))
        let outcomes = bench.collect(5)
        #expect(outcomes.count == 5)
        #expect(outcomes.allSatisfy { $0.kind == .unprocessed })
    }

    /// libcurl 7.88 resets each stream that has ended, and nghttp2 ends a connection after about a
    /// thousand resets (its guard against the rapid-reset attack).
    @Test func `outlives servers that count resets, with one outcome for each push`() throws {
        let server = try CurlSimulator()
        let bench = try server.bench()
        let slots = bench.submit(3000)
        let outcomes = bench.collect(3000)
        #expect(Set(outcomes.map(\.slot)) == Set(slots))
        #expect(outcomes.count == 3000)
        #expect(outcomes.allSatisfy { $0.status == 200 || $0.kind == .unknown })
        let accepted = outcomes.filter { $0.status == 200 }.count
        #expect(accepted > 2000)
        // None was sent twice: that would be for the planner to decide.
        #expect(server.simulator.counts.accepted <= 3000)
        #expect(server.simulator.counts.streamsRefused == 0)
    }

    @Test func `does not know what became of requests when the connection is reset`() throws {
        let server = try CurlSimulator { $0.delay = .milliseconds(300) }
        let bench = try server.bench()
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        bench.submit(10)
        #expect(bench.wait { bench.transport.counters.snapshot.requests == 11 })
        server.simulator.perform(.resetConnections)
        let outcomes = bench.collect(10)
        #expect(outcomes.count == 10)
        #expect(outcomes.allSatisfy { $0.kind == .unknown })
        #expect(bench.transport.counters.snapshot.connectionsLost == 1)
        server.simulator.perform(.delay(.zero))
        bench.submit(10)
        #expect(bench.collect(10).allSatisfy { $0.status == 200 })
        // libcurl would have sent some of the first ten again by itself.
        #expect(server.simulator.recordedRequests.count <= 21)
    }

    @Test func `after GOAWAY the rest is answered and a new connection follows`() throws {
        let server = try CurlSimulator { $0.delay = .milliseconds(100) }
        let bench = try server.bench()
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
        let server = try CurlSimulator { $0.delay = .milliseconds(100) }
        let bench = try server.bench()
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

    @Test func `a connection that died while idle costs no push`() throws {
        let server = try CurlSimulator()
        let bench = try server.bench()
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        server.simulator.perform(.resetConnections)
        #expect(bench.wait { server.simulator.counts.connectionsOpen == 0 })
        bench.submit(50)
        let outcomes = bench.collect(50)
        #expect(outcomes.count == 50)
        #expect(outcomes.allSatisfy { $0.status == 200 })
        #expect(server.simulator.counts.connectionsOpened == 2)
    }

    @Test func `replaces a connection whose answer says so`() throws {
        let server = try CurlSimulator {
            $0.rules = [ScriptedRule(answer: .reason(503, "Shutdown"))]
        }
        let bench = try server.bench()
        bench.submit(1)
        #expect(bench.collect(1).first?.reason == .shutdown)
        server.simulator.perform(.rules([]))
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        #expect(server.simulator.counts.connectionsOpened == 2)
    }

    @Test func `replaces a connection that is old, between pushes and under them`() throws {
        let server = try CurlSimulator()
        let bench = try server.bench(limits: CurlBench.brisk { $0.ageMax = .milliseconds(100) })
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        #expect(bench.wait { server.simulator.counts.connectionsOpen == 0 })
        bench.submit(10)
        #expect(bench.collect(10).allSatisfy { $0.status == 200 })
        #expect(server.simulator.counts.connectionsOpened >= 2)
    }

    @Test func `stops at once with an outcome for every push`() throws {
        let server = try CurlSimulator()
        let bench = try server.bench()
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        server.simulator.perform(.stall(true))
        bench.submit(200)
        #expect(bench.wait { bench.transport.counters.snapshot.requests == 101 })
        bench.port.enter(.stopping)
        let outcomes = bench.collect(200)
        #expect(outcomes.filter { $0.kind == .unknown }.count == 100)
        #expect(outcomes.filter { $0.kind == .unprocessed }.count == 100)
        #expect(bench.wait { bench.port.hasExited })
    }
}
