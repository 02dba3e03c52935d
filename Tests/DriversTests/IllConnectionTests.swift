// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import APNSSimulator
internal import Delivery
internal import PushModel
internal import Testing

/// One connection of several fails over real sockets. How soon it is judged is tested in virtual time;
/// here, that both transports report what is judged and do what is decided.
@Suite struct `An ill connection` {
    /// A bench whose four connections have each answered more than a window of pushes.
    private static func warm(
        _ kind: TransportKind, _ server: DeliverySimulator, connections: Int = 4
    ) throws -> DeliveryBench {
        let bench = try server.bench(kind, connections: connections...connections)
        for _ in 0..<200 {
            bench.submit(64)
            #expect(bench.collect(64).allSatisfy { $0.status == 200 })
            let isWarm = bench.transport.counters.streams(of: PoolID(rawValue: 0)).connections
            if isWarm == connections { break }
        }
        for _ in 0..<4 {
            bench.submit(64 * connections)
            #expect(bench.collect(64 * connections).allSatisfy { $0.status == 200 })
        }
        #expect(server.simulator.counts.connectionsOpened == connections)
        return bench
    }

    @Test(
        arguments: TransportKind.allCases,
        [(500, "InternalServerError"), (503, "ServiceUnavailable"), (429, "TooManyRequests")]
            as [(UInt16, String)])
    func `an ill connection of four is replaced, and its failures are not the pool's`(
        _ kind: TransportKind, answer: (UInt16, String)
    ) throws {
        let server = try DeliverySimulator()
        let bench = try Self.warm(kind, server)
        server.simulator.perform(
            .addRule(ScriptedRule(connections: 2...2, answer: .reason(answer.0, answer.1))))
        var failed: [PushOutcome] = []
        let isReplaced = bench.wait {
            bench.submit(256)
            failed += bench.collect(256).filter { $0.status != 200 }
            return bench.connectionCounts.retiredForFailures == 1
        }
        #expect(isReplaced)
        // A connection's first two faults may be their tokens' own.
        let faults = failed.filter { $0.status >= 500 }
        #expect(faults.count { !$0.isOutlier } <= 2)
        #expect(failed.allSatisfy { $0.status >= 500 || !$0.isOutlier })
        // What was in flight on it when it was retired has come back by now.
        for _ in 0..<20 {
            bench.submit(256)
            #expect(bench.collect(256).allSatisfy { $0.status == 200 })
        }
        #expect(bench.connectionCounts.retiredForFailures == 1)
        #expect(bench.wait { server.simulator.counts.connectionsOpened == 5 })
    }

    @Test(arguments: TransportKind.allCases)
    func `a silent connection of four is replaced`(_ kind: TransportKind) throws {
        let server = try DeliverySimulator()
        let bench = try Self.warm(kind, server)
        server.simulator.perform(.addRule(ScriptedRule(connections: 2...2, answer: .silence)))
        // So many at once that each connection gets some.
        bench.submit(256)
        let answered = bench.collect(100).count
        #expect(answered < 256)
        let isReplaced = bench.wait {
            bench.submit(1)
            _ = bench.collect(1)
            return bench.connectionCounts.retiredForSilence == 1
        }
        #expect(isReplaced)
    }

    @Test(arguments: TransportKind.allCases)
    func `an ill pool says so once most of its connections fail, and opens few more`(
        _ kind: TransportKind
    ) throws {
        let server = try DeliverySimulator()
        let bench = try Self.warm(kind, server)
        server.simulator.perform(
            .addRule(ScriptedRule(answer: .reason(500, "InternalServerError"))))
        bench.submit(512)
        #expect(bench.collect(512).allSatisfy { $0.status == 500 })
        // What is left on a connection that is being replaced counts as its own.
        let isPoolsFault = bench.wait {
            bench.submit(64)
            return bench.collect(64).count { $0.status == 500 && !$0.isOutlier } > 32
        }
        #expect(isPoolsFault)
        // The shortest waits between replacements are 20, 40 and 80 ms, all later ones 100 ms.
        #expect(bench.connectionCounts.retiredForFailures < 50)
    }

    @Test(arguments: TransportKind.allCases)
    func `an only connection that is ill is replaced once before its faults are the pool's`(
        _ kind: TransportKind
    ) throws {
        let server = try DeliverySimulator()
        let bench = try Self.warm(kind, server, connections: 1)
        server.simulator.perform(
            .addRule(ScriptedRule(answer: .reason(500, "InternalServerError"))))
        bench.submit(64)
        #expect(bench.collect(64).count { $0.status == 500 && $0.isOutlier } >= 62)
        #expect(bench.wait { bench.connectionCounts.retiredForFailures == 1 })
        // libcurl connects on demand, and has no connection to ask while one follows another: how many
        // answers that takes is a matter of time.
        var later: [PushOutcome] = []
        #expect(
            bench.wait {
                bench.submit(8)
                later += bench.collect(8)
                return later.count { !$0.isOutlier } > 32
            })
        #expect(later.allSatisfy { $0.status == 500 })
    }

    @Test(arguments: TransportKind.allCases)
    func `faults among other answers of an only connection become the pool's`(
        _ kind: TransportKind
    ) throws {
        let server = try DeliverySimulator()
        let bench = try Self.warm(kind, server, connections: 1)
        server.simulator.perform(
            .addRule(ScriptedRule(share: 0.7, answer: .reason(500, "InternalServerError"))))
        var ofPool = 0
        let isPool = bench.wait {
            bench.submit(64)
            ofPool += bench.collect(64).count { $0.status == 500 && !$0.isOutlier }
            return ofPool > 200
        }
        #expect(isPool)
        #expect(bench.connectionCounts.retiredForFailures > 0)
    }
}
