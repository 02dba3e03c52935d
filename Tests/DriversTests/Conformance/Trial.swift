// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import APNSSimulator
internal import Delivery
internal import Foundation
internal import Logging
internal import OpenSSL
internal import PushModel
internal import Testing

/// One run of a behaviour: a transport, a server, and the ends of all pushes.
final class Trial {
    let kind: TransportKind
    let bench: DeliveryBench
    /// What the transport has told the operator.
    let log = Lines()
    /// In the order they came.
    private(set) var outcomes: [PushOutcome] = []
    private var report = Report()
    private var pending: Set<PushSlot> = []
    private var sent = 0
    private let server: any TrialServer
    private let bodies: UnsafeMutablePointer<UInt8>

    /// More than any body that APNs takes.
    private static let bodyBytesMax = 8192
    /// The most pushes that the transport holds at once.
    private static let wave = 2000
    /// A sanitizer's build is several times slower: `scripts/sanitize.py` says that it is one.
    static let isTimed = ProcessInfo.processInfo.environment["SANITIZER"] == nil

    init(
        _ kind: TransportKind, with server: any TrialServer, serverName: String = "localhost",
        caFile: String? = nil, connections: ClosedRange<Int> = 1...1,
        budget: ConnectBudget = ConnectBudget(),
        _ change: (inout ConnectionLimits) -> Void = { _ in }
    ) throws {
        self.kind = kind
        self.server = server
        bench = try DeliveryBench(
            kind, to: server.port, caFile: caFile ?? server.caFile, privatePEM: server.privatePEM,
            serverName: serverName, connections: connections,
            limits: DeliveryBench.brisk(change), budget: budget,
            logger: Logger(label: "trial") { [log] _ in RecordingHandler(lines: log) })
        bodies = .allocate(capacity: bench.slab.slots * Self.bodyBytesMax)
    }

    deinit {
        // The transport may still read bodies.
        bench.port.enter(.stopping)
        _ = bench.wait { bench.port.hasExited }
        bodies.deallocate()
    }

    /// A trial whose first connection has accepted one push. The caller answers the next ones on
    /// it; later connections accept everything.
    static func warm(
        _ kind: TransportKind, _ manners: (inout FrameServer.Manners) -> Void = { _ in },
        limits change: (inout ConnectionLimits) -> Void = { _ in }
    ) throws -> (trial: Trial, connection: FrameConnection) {
        let server = try FrameServer {
            $0.serve = { if $0.number > 1 || $1.stream == 1 { $0.answer(200, on: $1.stream) } }
            manners(&$0)
        }
        let trial = try Trial(kind, with: server, change)
        trial.deliver(1)
        let connection = try #require(server.connections.first)
        return (trial, connection)
    }

    var counts: TransportCounts { bench.transport.counters.snapshot }
    var connectionCounts: ConnectionCounts { bench.connectionCounts }

    // MARK: Steps

    /// Hands pushes over.
    /// - Parameter bodyBytes: of each; 0 for as few as there can be.
    func send(
        _ count: Int, bodyBytes: Int = 0,
        shape: (Int, UnsafeMutablePointer<WirePush>) -> Void = { _, _ in }
    ) {
        let first = sent
        sent += count
        let slots = bench.submit(count, from: first) { number, push in
            let slot = push - bench.slab.push(0)
            let room = bodies + slot * Self.bodyBytesMax
            let bytes = PushBody.write(number, bytes: bodyBytes, to: room)
            push.pointee.body = UnsafePointer(room)
            push.pointee.bodyBytes = UInt32(bytes)
            shape(number - first, push)
        }
        pending.formUnion(slots)
    }

    /// Waits until everything handed over has ended, a minute at most.
    func collectNow() { collect(until: 0) }

    /// Hands over and waits until all of them are with the server. Returns their streams.
    func put(_ count: Int, on connection: FrameConnection, bodyBytes: Int = 0) throws -> [UInt32] {
        let before = connection.requests.count
        send(count, bodyBytes: bodyBytes)
        try wait("\(count) in flight") { connection.requests.count == before + count }
        return connection.requests[before...].map(\.stream)
    }

    /// Hands over and waits.
    func deliver(_ count: Int, bodyBytes: Int = 0) {
        var rest = count
        while rest > 0 {
            let next = min(rest, Self.wave - pending.count)
            send(next, bodyBytes: bodyBytes)
            rest -= next
            // Half a wave stays with the transport, so that it never runs dry.
            collect(until: rest > 0 ? Self.wave / 2 : 0)
        }
    }

    private func collect(until left: Int) {
        guard pending.count > left else { return }
        for outcome in bench.collect(pending.count - left) { account(outcome) }
    }

    private func account(_ outcome: PushOutcome) {
        outcomes.append(outcome)
        report.ends[PushEnd(outcome), default: 0] += 1
        if pending.remove(outcome.slot) == nil { report.strays += 1 }
    }

    /// Waits for a condition without which the test cannot go on.
    func wait(
        _ what: Comment, sourceLocation: SourceLocation = #_sourceLocation,
        until condition: () -> Bool
    ) throws {
        let holds = bench.wait(until: condition)
        try #require(holds, what, sourceLocation: sourceLocation)
    }

    /// Lets the transport wait, and measures the CPU time it uses.
    func rest(_ time: Duration = .milliseconds(200)) {
        var begun: Duration?
        _ = bench.wait {
            begun = bench.clock.used
            return begun != nil
        }
        guard let before = begun else { return }
        let start = ContinuousClock.now
        usleep(UInt32(time.components.attoseconds / 1_000_000_000_000))
        guard let after = bench.clock.used else { return }
        let share = (after - before) / (ContinuousClock.now - start)
        report.busiest = max(report.busiest ?? 0, share)
    }

    /// Ends the transport and returns the report.
    func close() -> Report {
        collectNow()
        report.lost = pending.count
        pending = []
        bench.port.enter(.stopping)
        _ = bench.wait { bench.port.hasExited }
        for outcome in bench.collect(1, within: .zero) { account(outcome) }
        report.connections = server.connectionsOpened
        report.acceptedTwice = server.acceptances.values.count { $0 > 1 }
        return report
    }
}

/// A server that a trial can use.
protocol TrialServer: AnyObject {
    var port: UInt16 { get }
    var caFile: String { get }
    /// The private key of the provider tokens that the server accepts.
    var privatePEM: String { get }
    var connectionsOpened: Int { get }
    /// How often it has accepted each push, by its number.
    var acceptances: [Int: Int] { get }
}

extension FrameServer: TrialServer {
    /// Any key will do: the server reads no provider token.
    var privatePEM: String { Self.anyKey }
    var connectionsOpened: Int { connections.count }

    fileprivate static let anyKey = (try? ES256Key.generate().privatePEM) ?? ""
}

extension ForeignServer: TrialServer {
    var caFile: String { file("ca.pem") }
    /// Any key will do: the server reads no provider token.
    var privatePEM: String { FrameServer.anyKey }
    /// The server reports neither connections nor acceptances.
    var connectionsOpened: Int { 0 }
    var acceptances: [Int: Int] { [:] }
}

extension DeliverySimulator: TrialServer {
    var privatePEM: String { key.privatePEM }
    var connectionsOpened: Int { simulator.counts.connectionsOpened }
    var acceptances: [Int: Int] {
        simulator.recordedRequests.reduce(into: [:]) { counts, request in
            guard request.answer.status == 200, let push = PushBody.number(in: request.body)
            else { return }
            counts[push, default: 0] += 1
        }
    }
}
