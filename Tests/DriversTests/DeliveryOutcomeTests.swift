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

/// Ends that come at an awkward moment.
@Suite struct `Delivery outcomes of both transports` {
    private let pool = PoolID(rawValue: 0)

    private var now: MonotonicTime {
        MonotonicTime(nanoseconds: SystemClock.monotonicNanoseconds())
    }

    @Test func `an answer that comes too late ends no other push`() throws {
        let server = try FrameServer()
        let bench = try server.bench(
            .nghttp2, limits: DeliveryBench.brisk { $0.requestTimeout = .seconds(2) })
        let slot = bench.submit(1)
        #expect(bench.wait { server.streams.count == 1 })
        #expect(bench.collect(1).map(\.kind) == [.unknown])
        // The same slot again, and only then the answer to what was in it.
        #expect(bench.submit(1) == slot)
        #expect(bench.wait { server.streams.count == 2 })
        server.answer(410, on: server.streams[0])
        server.answer(429, on: server.streams[1])
        #expect(bench.collect(1).map(\.status) == [429])
    }

    /// libcurl does not always say what came before the cut.
    @Test func `an acceptance that is cut counts, and no other answer does`() throws {
        for status in [200, 400, 410] {
            let server = try FrameServer()
            let bench = try server.bench(.nghttp2)
            bench.submit(1)
            #expect(bench.wait { server.streams.count == 1 })
            server.answer(status, on: server.streams[0], isWhole: false)
            server.connections[0].reset(server.streams[0], code: 8)
            let end = try #require(bench.collect(1).first)
            #expect(end.kind == (status == 200 ? .answered : .unknown))
        }
    }

    @Test func `an acceptance counts though nothing follows it`() throws {
        for isCut in [true, false] {
            let server = try FrameServer()
            let bench = try server.bench(
                .nghttp2, limits: DeliveryBench.brisk { $0.requestTimeout = .seconds(1) })
            bench.submit(1)
            #expect(bench.wait { server.streams.count == 1 })
            server.answer(200, on: server.streams[0], isWhole: false)
            if isCut { server.connections[0].order(.halfClose) }
            #expect(bench.collect(1).map(\.status) == [200])
        }
    }

    @Test func `a stream limit of 0 keeps no push for ever`() throws {
        for settings: [FrameServer.Setting: UInt32] in [[.streamsMax: 0], [.streamsMax: 100]] {
            let server = try FrameServer { $0.settings = settings }
            let bench = try server.bench(
                .nghttp2, limits: DeliveryBench.brisk { $0.waitMax = .milliseconds(200) })
            if settings[.streamsMax] == 100 {
                bench.submit(1)
                #expect(bench.wait { server.streams.count == 1 })
                server.answer(200, on: server.streams[0])
                #expect(bench.collect(1).map(\.status) == [200])
                server.connections[0].settings([.streamsMax: 0])
                #expect(bench.wait { bench.port.capacity(of: pool) == 32 })
            }
            bench.submit(3)
            #expect(
                bench.collect(3, within: .seconds(10)).map(\.kind)
                    == [.unprocessed, .unprocessed, .unprocessed])
        }
    }

    @Test func `libcurl is given no more bytes at once than half of the window`() throws {
        let server = try FrameServer()
        let bench = try server.bench(.libcurl)
        bench.submit(1)
        #expect(bench.wait { server.streams.count == 1 })
        server.answer(200, on: server.streams[0])
        #expect(bench.collect(1).map(\.status) == [200])
        let body = UnsafeMutablePointer<UInt8>.allocate(capacity: 4000)
        defer { body.deallocate() }
        body.initialize(repeating: 0x20, count: 4000)
        bench.submit(12) { _, push in
            push.pointee.body = UnsafePointer(body)
            push.pointee.bodyBytes = 4000
        }
        // Eight of them are 32,000 bytes.
        #expect(bench.wait { bench.transport.counters.snapshot.requests >= 9 })
        usleep(50_000)
        #expect(bench.transport.counters.snapshot.requests == 9)
        bench.port.enter(.stopping)
        #expect(bench.collect(12).count == 12)
    }

    @Test(arguments: TransportKind.allCases)
    func `a push counts as sent when it was sent, however long it has waited`(
        _ kind: TransportKind
    ) throws {
        let server = try FrameServer()
        let bench = try server.bench(kind)
        let slots = bench.submit(2)
        #expect(bench.wait { server.streams.count == 1 })
        // The connection is not warm, so the second has to wait.
        usleep(20_000)
        let answeredAt = now
        server.answer(200, on: server.streams[0])
        #expect(bench.collect(1).map(\.slot) == [slots[0]])
        #expect(bench.wait { server.streams.count == 2 })
        server.answer(200, on: server.streams[1])
        let outcome = try #require(bench.collect(1).first)
        #expect(outcome.slot == slots[1] && outcome.sentAt >= answeredAt)
    }

    @Test(arguments: TransportKind.allCases)
    func `each key that follows another is shown on a connection of its own`(
        _ kind: TransportKind
    ) throws {
        let keys = try (0..<8).map { _ in try ES256Key.generate() }
        let server = try DeliverySimulator { options in
            options.keys += keys.enumerated().map { number, key in
                SimulatorKey(
                    teamID: DeliveryBench.teamID, keyID: "OTHERKEY0\(number)",
                    publicPEM: key.publicPEM)
            }
        }
        let bench = try server.bench(kind)
        bench.submit(1)
        #expect(bench.collect(1).map(\.status) == [200])
        // More often than a pool has places.
        for (number, key) in keys.enumerated() {
            try bench.useKey(pem: key.privatePEM, keyID: "OTHERKEY0\(number)")
            bench.submit(1)
            #expect(bench.collect(1).map(\.status) == [200])
        }
        #expect(Set(server.simulator.recordedRequests.map(\.connection)).count == 9)
    }

    @Test(arguments: TransportKind.allCases)
    func `no more connects are tried than the process is allowed`(_ kind: TransportKind) throws {
        let unused = try Socket.listening(onLoopbackPort: 0).localPort()
        let server = try DeliverySimulator()
        let start = now
        let bench = try DeliveryBench(
            kind, to: unused, caFile: server.caFile, privatePEM: server.key.privatePEM,
            limits: DeliveryBench.brisk {
                $0.waitMax = .milliseconds(500)
                $0.reconnectMin = .microseconds(100)
                $0.reconnectMax = .microseconds(100)
            })
        bench.submit(1)
        #expect(bench.collect(1).map(\.kind) == [.unprocessed])
        let failures = bench.connectionCounts.connectFailures
        // A burst of 20, then 10 a second.
        let seconds = Double((now - start).nanoseconds) / 1e9
        #expect(failures > 0 && Double(failures) <= 20 + 10 * seconds)
    }

    @Test func `an old connection of nghttp2 is replaced`() throws {
        let server = try DeliverySimulator()
        let bench = try server.bench(
            .nghttp2, limits: DeliveryBench.brisk { $0.ageMax = .milliseconds(100) })
        bench.submit(1)
        #expect(bench.collect(1).map(\.status) == [200])
        #expect(bench.wait { server.simulator.counts.connectionsOpened >= 2 })
    }
}
