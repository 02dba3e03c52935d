// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import APNSSimulator
internal import Delivery
internal import Foundation
internal import LinuxIO
internal import PushModel
internal import TestCertificates
internal import Testing

/// What a host's name stands for; libcurl looks up for itself.
@Suite struct `A host with several addresses` {
    private static func addresses(_ ports: UInt16...) -> Resolver.LookUp {
        let addresses = ports.map { SocketAddress.loopback(port: $0) }
        return { _, _ in addresses }
    }

    @Test func `a host is reached by the next one when one refuses`() throws {
        let unused = try Socket.listening(onLoopbackPort: 0).localPort()
        let server = try DeliverySimulator()
        let bench = try server.bench(
            .nghttp2, host: "apns.test", lookUp: Self.addresses(unused, unused, server.port))
        bench.submit(10)
        #expect(bench.collect(10).allSatisfy { $0.status == 200 })
        let counts = bench.connectionCounts
        #expect(counts.connects == 1 && counts.connectFailures == 0)
    }

    @Test func `a host is reached by the next one when one does not answer`() throws {
        // Its backlog is full: the kernel leaves further connects unanswered.
        let mute = try Socket.listening(onLoopbackPort: 0, backlog: 0)
        let place = SocketAddress.loopback(port: try mute.localPort())
        let first = try Socket.connecting(to: place)
        let second = try Socket.connecting(to: place)
        let server = try DeliverySimulator()
        let bench = try server.bench(
            .nghttp2, limits: DeliveryBench.brisk { $0.connectTimeout = .seconds(4) },
            host: "apns.test", lookUp: Self.addresses(place.port, server.port))
        bench.submit(10)
        #expect(bench.collect(10).allSatisfy { $0.status == 200 })
        #expect(bench.connectionCounts.connectFailures == 0)
        withExtendedLifetime((mute.descriptor, first.descriptor, second.descriptor)) {}
    }

    @Test func `a host has longer to answer where the process may not connect once more`() throws {
        let mute = try Socket.listening(onLoopbackPort: 0, backlog: 0)
        let place = SocketAddress.loopback(port: try mute.localPort())
        let first = try Socket.connecting(to: place)
        let second = try Socket.connecting(to: place)
        let server = try DeliverySimulator()
        // The second connect is allowed after a second, and due after half of one.
        let bench = try DeliveryBench(
            .nghttp2, to: server.port, caFile: server.caFile, privatePEM: server.key.privatePEM,
            host: "apns.test", limits: DeliveryBench.brisk { $0.connectTimeout = .seconds(2) },
            budget: ConnectBudget(perSecond: 1, burst: 1),
            lookUp: Self.addresses(place.port, server.port))
        bench.submit(1)
        #expect(bench.collect(1).map(\.status) == [200])
        #expect(bench.connectionCounts.connectFailures == 0)
        withExtendedLifetime((mute.descriptor, first.descriptor, second.descriptor)) {}
    }

    @Test func `a host is not left for its next address once it is reached`() throws {
        let server = try DeliverySimulator()
        let bench = try server.bench(
            .nghttp2, limits: DeliveryBench.brisk { $0.connectTimeout = .seconds(2) },
            host: "apns.test", lookUp: Self.addresses(server.port, server.port))
        bench.submit(1)
        #expect(bench.collect(1).map(\.status) == [200])
        // A quarter of the connect timeout is each address's share.
        usleep(600_000)
        bench.submit(1)
        #expect(bench.collect(1).map(\.status) == [200])
        #expect(bench.connectionCounts.connects == 1)
    }

    @Test func `a host fails one connect when none can be reached`() throws {
        let unused = try Socket.listening(onLoopbackPort: 0).localPort()
        let server = try DeliverySimulator()
        let bench = try server.bench(
            .nghttp2,
            limits: DeliveryBench.brisk {
                $0.reconnectMin = .seconds(60)
                $0.reconnectMax = .seconds(60)
                $0.waitMax = .milliseconds(300)
            }, host: "apns.test", lookUp: Self.addresses(unused, unused))
        bench.submit(1)
        #expect(bench.collect(1).map(\.kind) == [.unprocessed])
        #expect(bench.connectionCounts.connectFailures == 1)
    }

    @Test func `a host has its connections spread over them`() throws {
        let one = try Socket.listening(onLoopbackPort: 0)
        let two = try Socket.listening(onLoopbackPort: 0)
        let server = try DeliverySimulator()
        let bench = try server.bench(
            .nghttp2, connections: 2...2, host: "apns.test",
            lookUp: Self.addresses(one.localPort(), two.localPort()))
        var reached = [false, false]
        #expect(
            bench.wait {
                reached[0] = reached[0] || Self.accepts(one)
                reached[1] = reached[1] || Self.accepts(two)
                return reached == [true, true]
            })
    }

    @Test func `a host is asked at another one where a connection had to be replaced`() throws {
        let authority = try CertificateAuthority()
        let made = try authority.serverCertificate(
            names: ["localhost"], addresses: [], expired: false)
        let certificate = SimulatorCertificate.pem(
            certificate: made.certificatePEM, key: made.keyPEM)
        let ill = try DeliverySimulator { $0.certificate = certificate }
        let well = try DeliverySimulator { options in
            options.certificate = certificate
            options.keys = [
                SimulatorKey(
                    teamID: DeliveryBench.teamID, keyID: DeliveryBench.keyID,
                    publicPEM: ill.key.publicPEM)
            ]
        }
        try authority.certificatePEM.write(
            toFile: ill.caFile, atomically: true, encoding: .utf8)
        // The fifth connection's turn is the first address again.
        let bench = try ill.bench(
            .nghttp2, connections: 4...4, host: "apns.test",
            lookUp: Self.addresses(ill.port, well.port, well.port, well.port))
        let isOpen = bench.wait {
            bench.submit(256)
            _ = bench.collect(256)
            return well.simulator.counts.connectionsOpened == 3
        }
        #expect(isOpen)
        for _ in 0..<4 {
            bench.submit(256)
            #expect(bench.collect(256).allSatisfy { $0.status == 200 })
        }
        ill.simulator.perform(
            .addRule(ScriptedRule(answer: .reason(500, "InternalServerError"))))
        let isReplaced = bench.wait {
            bench.submit(256)
            _ = bench.collect(256)
            return well.simulator.counts.connectionsOpened == 4
        }
        #expect(isReplaced)
        #expect(ill.simulator.counts.connectionsOpened == 1)
        #expect(bench.connectionCounts.retiredForFailures == 1)
        bench.submit(256)
        #expect(bench.collect(256).allSatisfy { $0.status == 200 })
    }

    private static func accepts(_ socket: borrowing Socket) -> Bool {
        (try? socket.accept()) != nil
    }

    private static let hasIPv6 =
        (try? String(contentsOfFile: "/proc/net/if_inet6", encoding: .utf8))?
        .contains("00000000000000000000000000000001") == true

    @Test(.enabled(if: hasIPv6), arguments: TransportKind.allCases)
    func `a host may be IPv6`(_ kind: TransportKind) throws {
        let server = try ForeignServer.nghttpd(address: "::1")
        let bench = try server.bench(kind, host: "::1")
        bench.submit(10)
        #expect(bench.collect(10).allSatisfy { $0.status == 200 })
    }
}
