// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import APNSSimulator
internal import Delivery
internal import OpenSSL
internal import PushModel
internal import Testing

/// An answer other than 403 shows that APNs takes the provider token: it opens the connection for
/// more than one push at a time, and the next connection need not wait.
@Suite struct `The authentication of a connection` {
    private let pool = PoolID(rawValue: 0)
    /// What may wait with delivery beyond what its connections carry.
    private let waiting = 32

    @Test(arguments: TransportKind.allCases)
    func `a 403 leaves the connection at one push at a time`(_ kind: TransportKind) throws {
        // It announces what APNs announces only after the first valid provider token.
        let server = try FrameServer()
        let bench = try server.bench(kind)
        for number in 1...2 {
            bench.submit(3)
            // As much as the connection carries has been sent when one is answered.
            #expect(bench.wait { server.streams.count == 3 * number - 2 })
            for answered in 3 * number - 2...3 * number {
                #expect(bench.wait { server.streams.count >= answered })
                #expect(server.streams.count == answered)
                server.answer(403, on: server.streams[answered - 1])
                #expect(bench.collect(1).map(\.status) == [403])
                #expect(bench.port.capacity(of: pool) == 1 + waiting)
            }
        }
    }

    @Test(arguments: TransportKind.allCases, [200, 400, 404, 410, 429, 500, 503])
    func `any answer but a 403 opens the connection`(_ kind: TransportKind, status: Int) throws {
        let server = try FrameServer()
        let bench = try server.bench(kind)
        bench.submit(1)
        #expect(bench.wait { server.streams.count == 1 })
        #expect(bench.wait { bench.port.capacity(of: pool) == 1 + waiting })
        server.answer(status, on: server.streams[0])
        #expect(bench.collect(1).map(\.status) == [UInt16(status)])
        #expect(bench.port.capacity(of: pool) == 100 + waiting)
    }

    /// So long that no test sees its end.
    private static let never = DeliveryBench.brisk {
        $0.reconnectMin = .seconds(3600)
        $0.reconnectMax = .seconds(3600)
        $0.waitMax = .milliseconds(200)
    }

    @Test(arguments: TransportKind.allCases)
    func `where nothing but 403 is answered nothing goes on connecting`(
        _ kind: TransportKind
    ) throws {
        let server = try DeliverySimulator()
        // Somebody else's key: InvalidProviderToken, and the connection is left.
        let bench = try DeliveryBench(
            kind, to: server.port, caFile: server.caFile,
            privatePEM: try ES256Key.generate().privatePEM, limits: Self.never)
        #expect(
            kind == .libcurl || bench.wait { bench.port.capacity(of: pool) == 1 + waiting })
        var kinds: [PushOutcome.Kind] = []
        for _ in 0..<3 {
            bench.submit(1)
            kinds += bench.collect(1).map(\.kind)
        }
        #expect(kinds.first == .answered && kinds.last == .unprocessed)
        #expect(server.simulator.counts.connectionsOpened == 1)
    }

    @Test(arguments: TransportKind.allCases, [(403, false), (200, true), (400, true)])
    func `a lost connection makes the next one wait unless it was authenticated`(
        _ kind: TransportKind, _ end: (status: Int, isAuthenticated: Bool)
    ) throws {
        let server = try FrameServer()
        let bench = try server.bench(kind, limits: Self.never)
        // libcurl connects with its first push.
        #expect(
            kind == .libcurl || bench.wait { bench.port.capacity(of: pool) == 1 + waiting })
        bench.submit(1)
        #expect(bench.wait { server.streams.count == 1 })
        server.answer(end.status, on: server.streams[0])
        #expect(bench.collect(1).map(\.status) == [UInt16(end.status)])
        bench.submit(1)
        #expect(bench.wait { server.streams.count == 2 })
        server.stop()
        #expect(bench.collect(1).map(\.kind) == [.unknown])
        bench.submit(1)
        #expect(bench.collect(1).map(\.kind) == [.unprocessed])
        // Nobody listens there any more.
        #expect(bench.connectionCounts.connectFailures == (end.isAuthenticated ? 1 : 0))
    }

    @Test(arguments: TransportKind.allCases)
    func `a pool knows that a connection without an answer has reached APNs`(
        _ kind: TransportKind
    ) throws {
        let server = try FrameServer()
        let bench = try server.bench(kind, limits: Self.never)
        let counters = bench.transport.counters
        bench.submit(1)
        #expect(bench.wait { server.streams.count == 1 })
        #expect(bench.wait { counters.streams(of: pool).inFlight == 1 })
        #expect(!counters.streams(of: pool).hasReachedAPNs)
        server.stop()
        #expect(bench.collect(1).map(\.kind) == [.unknown])
        #expect(bench.wait { counters.streams(of: pool).hasReachedAPNs })
        #expect(counters.streams(of: pool).failedConnects > 0)
    }

    @Test(arguments: TransportKind.allCases)
    func `a server without HTTP/2 is left alone`(_ kind: TransportKind) throws {
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        let server = try ForeignServer.openssl(
            ["-alpn", "http/1.1", "-nbio"], saying: answer)
        let bench = try server.bench(kind, limits: Self.never)
        for _ in 0..<3 {
            bench.submit(1)
            #expect(bench.collect(1).first.map { $0.kind != .answered } == true)
        }
        // With nghttp2 it ends in the handshake, with libcurl after the first answer.
        func refusals() -> UInt64 {
            let counts = bench.connectionCounts
            return kind == .libcurl ? counts.http2Refused : counts.connectFailures
        }
        #expect(bench.wait { refusals() > 0 })
        #expect(refusals() == 1)
    }

    @Test(arguments: TransportKind.allCases, [(503, "Shutdown"), (400, "IdleTimeout")])
    func `a first answer other than 403 does not keep transports from connecting`(
        _ kind: TransportKind, _ answer: (status: UInt16, reason: String)
    ) throws {
        let server = try DeliverySimulator {
            $0.rules = [
                ScriptedRule(
                    tokenPrefix: DeliveryBench.tokenPrefix + "0000",
                    answer: .reason(answer.status, answer.reason))
            ]
        }
        var limits = Self.never
        limits.waitMax = .seconds(60)
        let bench = try server.bench(kind, limits: limits)
        bench.submit(1)
        #expect(bench.collect(1).map(\.status) == [answer.status])
        bench.submit(2)
        // The second number is not in the rule.
        #expect(Set(bench.collect(2).map(\.status)) == [answer.status, 200])
        #expect(server.simulator.counts.connectionsOpened >= 2)
    }
}
