// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import APNSSimulator
internal import Delivery
internal import LinuxIO
internal import Logging
internal import OpenSSL
internal import PushModel
internal import Testing

@Suite struct `Both transports under failure` {
    @Test(arguments: TransportKind.allCases)
    func `a transport gives up a request at its deadline and leaves a dead connection`(
        _ kind: TransportKind
    ) throws {
        let server = try DeliverySimulator()
        let bench = try server.bench(
            kind, limits: DeliveryBench.brisk { $0.requestTimeout = .milliseconds(200) })
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
        #expect(bench.wait { server.simulator.counts.connectionsOpened == 2 })
    }

    @Test(arguments: TransportKind.allCases)
    func `a transport keeps the connection when a single request times out`(_ kind: TransportKind)
        throws
    {
        // Of several pushes the second.
        let silent = ScriptedRule(tokenPrefix: DeliveryBench.tokenPrefix + "0001", answer: .silence)
        let server = try DeliverySimulator { $0.rules = [silent] }
        let bench = try server.bench(
            kind, limits: DeliveryBench.brisk { $0.requestTimeout = .milliseconds(500) })
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        bench.submit(2)
        #expect(Set(bench.collect(2).map(\.kind)) == [.answered, .unknown])
        server.simulator.perform(.rules([]))
        // The server learns of it between two turns: what is answered now shows that it has.
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        bench.submit(50)
        #expect(bench.collect(50).allSatisfy { $0.status == 200 })
        #expect(bench.wait { server.simulator.counts.connectionsOpened == 1 })
        #expect(bench.transport.counters.snapshot.timeouts == 1)
    }

    @Test(arguments: TransportKind.allCases)
    func `a transport refuses a certificate that its CA has not signed`(_ kind: TransportKind)
        throws
    {
        let server = try DeliverySimulator()
        let log = Lines()
        let bench = try DeliveryBench(
            kind, to: server.port, caFile: try server.strangersFile(),
            privatePEM: server.key.privatePEM,
            limits: DeliveryBench.brisk { $0.waitMax = .milliseconds(200) },
            logger: Logger(label: "test") { _ in RecordingHandler(lines: log) })
        bench.submit(3)
        let outcomes = bench.collect(3)
        #expect(outcomes.count == 3)
        #expect(outcomes.allSatisfy { $0.kind == .unprocessed })
        #expect(bench.connectionCounts.certificatesRefused > 0)
        #expect(server.simulator.recordedRequests.isEmpty)
        #expect(log.all.contains { $0.contains("install current ca-certificates") })
        // The status names the same cause as the log.
        let error = try #require(bench.transport.counters.connectError(of: PoolID(rawValue: 0)))
        #expect(log.all.contains { $0.contains(error) }, "\(error)")
    }

    @Test(arguments: TransportKind.allCases)
    func `a transport refuses a certificate for another name`(_ kind: TransportKind) throws {
        let server = try DeliverySimulator()
        let log = Lines()
        let bench = try DeliveryBench(
            kind, to: server.port, caFile: server.caFile, privatePEM: server.key.privatePEM,
            serverName: "example.com",
            limits: DeliveryBench.brisk { $0.waitMax = .milliseconds(200) },
            logger: Logger(label: "test") { _ in RecordingHandler(lines: log) })
        bench.submit(1)
        #expect(bench.collect(1).map(\.kind) == [.unprocessed])
        #expect(bench.connectionCounts.certificatesRefused > 0)
        #expect(log.all.contains { $0.contains("check apns.endpoints' host and serverName") })
        #expect(!log.all.contains { $0.contains("ca-certificates") })
    }

    @Test(arguments: TransportKind.allCases)
    func `a transport gives pushes back when nobody listens, and backs off`(_ kind: TransportKind)
        throws
    {
        let unused = try Socket.listening(onLoopbackPort: 0).localPort()
        let server = try DeliverySimulator()
        let bench = try DeliveryBench(
            kind, to: unused, caFile: server.caFile, privatePEM: server.key.privatePEM,
            limits: DeliveryBench.brisk {
                $0.waitMax = .milliseconds(300)
                $0.reconnectMin = .milliseconds(100)
            })
        bench.submit(20)
        let outcomes = bench.collect(20)
        #expect(outcomes.count == 20)
        #expect(outcomes.allSatisfy { $0.kind == .unprocessed })
        let failures = bench.connectionCounts.connectFailures
        #expect(failures >= 2 && failures < 20)
        let streams = bench.transport.counters.streams(of: PoolID(rawValue: 0))
        #expect(streams.failedConnects > 0 && !streams.hasReachedAPNs)
        #expect(bench.port.capacity(of: PoolID(rawValue: 0)) == 32)
    }

    @Test(arguments: TransportKind.allCases)
    func `a transport gives pushes back when the connect hangs`(_ kind: TransportKind) throws {
        // The kernel accepts for it; nobody answers the TLS handshake.
        let mute = try Socket.listening(onLoopbackPort: 0)
        let server = try DeliverySimulator()
        let bench = try DeliveryBench(
            kind, to: mute.localPort(), caFile: server.caFile, privatePEM: server.key.privatePEM,
            limits: DeliveryBench.brisk {
                $0.connectTimeout = .milliseconds(100)
                $0.waitMax = .milliseconds(50)
            })
        bench.submit(5)
        let outcomes = bench.collect(5)
        #expect(outcomes.count == 5)
        #expect(outcomes.allSatisfy { $0.kind == .unprocessed })
        #expect(bench.wait { bench.connectionCounts.connectFailures > 0 })
    }

    @Test(arguments: TransportKind.allCases)
    func `a transport does not know what became of requests when the connection is reset`(
        _ kind: TransportKind
    )
        throws
    {
        let server = try DeliverySimulator { $0.delay = .milliseconds(300) }
        let bench = try server.bench(kind)
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        bench.submit(10)
        #expect(bench.wait { bench.transport.counters.snapshot.requests == 11 })
        server.simulator.perform(.resetConnections)
        let outcomes = bench.collect(10)
        #expect(outcomes.count == 10)
        #expect(outcomes.allSatisfy { $0.kind == .unknown })
        #expect(bench.connectionCounts.connectionsLost == 1)
        server.simulator.perform(.delay(.zero))
        bench.submit(10)
        #expect(bench.collect(10).allSatisfy { $0.status == 200 })
        // libcurl would have sent some of the first ten again by itself.
        #expect(server.simulator.recordedRequests.count <= 21)
    }

    @Test(arguments: TransportKind.allCases)
    func `a connection that died while idle costs no push`(_ kind: TransportKind) throws {
        let server = try DeliverySimulator()
        let bench = try server.bench(kind)
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        server.simulator.perform(.resetConnections)
        // nghttp2 connects anew at once, libcurl when there is something to send.
        #expect(
            bench.wait {
                let counts = server.simulator.counts
                return counts.connectionsOpen == 0 || counts.connectionsOpened == 2
            })
        bench.submit(50)
        let outcomes = bench.collect(50)
        #expect(outcomes.count == 50)
        #expect(outcomes.allSatisfy { $0.status == 200 })
        #expect(bench.wait { server.simulator.counts.connectionsOpened == 2 })
    }

    @Test(arguments: TransportKind.allCases)
    func `a transport replaces a connection whose answer says so`(_ kind: TransportKind) throws {
        let server = try DeliverySimulator {
            $0.rules = [ScriptedRule(answer: .reason(503, "Shutdown"))]
        }
        let bench = try server.bench(kind)
        bench.submit(1)
        #expect(bench.collect(1).first?.reason == .shutdown)
        server.simulator.perform(.rules([]))
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        #expect(bench.wait { server.simulator.counts.connectionsOpened == 2 })
    }

    @Test(arguments: TransportKind.allCases)
    func `a transport shows a replaced key on a new connection only`(_ kind: TransportKind) throws {
        let server = try DeliverySimulator()
        let bench = try server.bench(kind)
        bench.submit(1)
        #expect(bench.collect(1).first?.status == 200)
        let other = try ES256Key.generate()
        try bench.useKey(pem: other.privatePEM)
        bench.submit(1)
        #expect(bench.collect(1).first?.reason == .invalidProviderToken)
        #expect(bench.wait { server.simulator.counts.connectionsOpened >= 2 })
    }

    @Test(arguments: TransportKind.allCases)
    func `a transport stops at once with an outcome for every push`(_ kind: TransportKind) throws {
        let server = try DeliverySimulator { $0.streamLimit = 100 }
        let bench = try server.bench(kind)
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
