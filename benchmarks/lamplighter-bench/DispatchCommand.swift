// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import APNSDelivery
import ArgumentParser
import Delivery
import FleetKit
import Foundation
import LinuxIO
import Logging
import PushModel

/// A transport alone, kept as busy as its connection allows.
struct DispatchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dispatch",
        abstract: "Pushes to a simulator through a DeliveryPort, each time to another token.")

    enum Transport: String, ExpressibleByArgument, CaseIterable { case nghttp2, curl }

    @Option(help: "The simulator's port on 127.0.0.1.")
    var port: UInt16

    @Option(help: "The certificate to trust.")
    var caFile: String

    @Option(help: "The signing key, a .p8 file.")
    var keyFile: String

    @Option(help: "nghttp2 or curl.")
    var transport = Transport.nghttp2

    @Option(help: "How many pushes are measured.")
    var pushes = 1_000_000

    @Option(help: "How many go before them: connecting and the first answers are not measured.")
    var warmUp = 20_000

    @Option(help: "So many go at a time, and their answers are awaited; else as many as fit.")
    var batch: Int?

    @Flag(name: .customLong("without-apns-id"), help: "Leave apns-id out, as h2load does.")
    var withoutAPNSID = false

    func run() throws {
        let pem = try String(contentsOfFile: keyFile, encoding: .utf8)
        let tokens = try ProviderTokens(teamID: Town.teamID, keyID: Town.keyID, pem: pem)
        let pool = PoolSettings(
            id: PoolID(rawValue: 0), host: "127.0.0.1", port: port, serverName: "localhost",
            caFile: caFile, providerTokens: tokens)
        var bench = try DispatchBench.start(
            transport, pool: pool, sendsAPNSID: !withoutAPNSID, batchMax: batch ?? .max)
        try bench.push(warmUp)
        let before = ProcessUsage.cpuMicroseconds
        let start = ContinuousClock.now
        try bench.push(pushes)
        let elapsed = ContinuousClock.now - start
        let cpu = ProcessUsage.cpuMicroseconds - before
        let repeated = bench.repeated
        bench.stop()
        try Report.print(
            Figures(
                pushes: pushes, repeated: repeated, cpuMicroseconds: cpu,
                seconds: elapsed / .seconds(1)))
    }

    private struct Figures: Encodable {
        var pushes: Int
        /// Pushes that did not end with a 200 and were sent once more.
        var repeated: Int
        var cpuMicroseconds: Int
        var seconds: Double
    }
}

/// A delivery thread, and the planner's side of its port.
struct DispatchBench: ~Copyable {
    private(set) var repeated = 0
    private let port: DeliveryPort
    private let slab = PushSlab(slots: 8192)
    private let routing = Town.routing()
    private let epoll: Epoll
    private let route: RouteID
    private let sendsAPNSID: Bool
    private let batchMax: Int
    private var vacant: [PushSlot]
    private var chosen: [PushSlot] = []
    private var outcomes: [PushOutcome]
    private var nextToken = 0
    private let body: UnsafeMutableBufferPointer<UInt8>

    private static let bodyText = #"{"aps":{"content-changed":true}}"#
    /// Longer than valgrind and a simulator take that have a hundredth of a core.
    private static let silenceMax = Duration.seconds(600)

    /// Starts the delivery thread; `stop()` must follow.
    static func start(
        _ transport: DispatchCommand.Transport, pool: PoolSettings, sendsAPNSID: Bool,
        batchMax: Int
    ) throws -> DispatchBench {
        let bench = DispatchBench(
            epoll: try Epoll(eventsMax: 1), sendsAPNSID: sendsAPNSID, batchMax: batchMax)
        try bench.epoll.add(bench.port.plannerWaker.descriptor, for: .read, tag: 0)
        try bench.deliver(by: transport, to: pool)
        return bench
    }

    private init(epoll: consuming Epoll, sendsAPNSID: Bool, batchMax: Int) {
        self.epoll = epoll
        self.sendsAPNSID = sendsAPNSID
        self.batchMax = batchMax
        port = DeliveryPort(slab: slab, pools: 1, plannerWaker: Waker())
        route = routing.route(
            environment: .production, app: AppID(rawValue: 0), tokenClass: .control)!
        vacant = Array(0..<PushSlot(slab.slots))
        chosen.reserveCapacity(slab.slots)
        outcomes = [PushOutcome](
            repeating: PushOutcome(slot: 0, kind: .unknown), count: 1024)
        body = .allocate(capacity: Self.bodyText.utf8.count)
        _ = body.initialize(from: Self.bodyText.utf8)
    }

    private func deliver(by choice: DispatchCommand.Transport, to pool: PoolSettings) throws {
        var logger = Logger(label: "dispatch") { StreamLogHandler.standardError(label: $0) }
        logger.logLevel = .warning
        let plan = DeliveryPlan(routing: routing, pools: [pool])
        let budget = ConnectBudget()
        let transport: any PushTransport =
            switch choice {
            case .nghttp2:
                NGHTTP2Transport(port: port, plan: plan, budget: budget, logger: logger)
            case .curl:
                CurlTransport(port: port, plan: plan, budget: budget, logger: logger)
            }
        try NamedThread.detach(name: "delivery-0") { transport.run() }
    }

    /// Sends pushes until this number of them has been accepted.
    mutating func push(_ count: Int) throws {
        var waiting = count
        var inFlight = 0
        while waiting + inFlight > 0 {
            let ended = collect()
            inFlight -= ended.all
            waiting += ended.all - ended.accepted
            repeated += ended.all - ended.accepted
            let room =
                batchMax == .max
                ? port.capacity(of: PoolID(rawValue: 0)) - inFlight
                : inFlight == 0 ? batchMax : 0
            let taken = min(waiting, room, vacant.count)
            if taken > 0 {
                submit(taken)
                waiting -= taken
                inFlight += taken
            } else if ended.all == 0 {
                try sleep()
            }
        }
    }

    /// Gives up what is under way, and waits for the thread's end.
    consuming func stop() {
        port.enter(.stopping)
        while !port.hasExited { usleep(500) }
        body.deallocate()
    }

    private mutating func collect() -> (all: Int, accepted: Int) {
        let port = port
        let count = outcomes.withUnsafeMutableBufferPointer { port.collect(into: $0) }
        var accepted = 0
        for outcome in outcomes[..<count] {
            vacant.append(outcome.slot)
            if outcome.kind == .answered, outcome.status == 200 { accepted += 1 }
        }
        return (count, accepted)
    }

    private mutating func submit(_ count: Int) {
        chosen.removeAll(keepingCapacity: true)
        for _ in 0..<count {
            let slot = vacant.removeLast()
            chosen.append(slot)
            fill(slot)
        }
        chosen.withUnsafeBufferPointer { port.submit($0, isPatient: false) }
    }

    /// Fills a slot in as the planner would, with a new device token.
    private mutating func fill(_ slot: PushSlot) {
        var random = SplitMix64(seed: UInt64(nextToken))
        nextToken += 1
        slab.inlineToken(slot).withMemoryRebound(to: UInt64.self, capacity: 4) { words in
            for word in 0..<4 { words[word] = random.next() }
        }
        var push = WirePush()
        push.route = route
        push.priority = 10
        push.expiration = 0
        push.tokenBytes = 32
        push.apnsID =
            sendsAPNSID
            ? APNSID(hash: StableHash.Value(high: random.next(), low: random.next())) : .none
        push.body = UnsafePointer(body.baseAddress!)
        push.bodyBytes = UInt32(body.count)
        slab.push(slot).pointee = push
    }

    private func sleep() throws {
        port.plannerWaker.prepareToSleep()
        defer { port.plannerWaker.awake() }
        if port.hasOutcomes { return }
        // Until the first connection is open there is neither capacity nor a wake-up for it.
        let isCold = port.capacity(of: PoolID(rawValue: 0)) == 0
        let woken = epoll.wait(timeout: isCold ? .milliseconds(1) : Self.silenceMax)
        if woken == 0, !isCold, !port.hasOutcomes {
            throw BenchError("no answer for \(Self.silenceMax)")
        }
    }
}

/// Prints a provider token for h2load, which cannot sign one.
struct ProviderTokenCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "provider-token",
        abstract: "Prints the value of authorization as the worker would send it now.")

    @Option(help: "The signing key, a .p8 file.")
    var keyFile: String

    func run() throws {
        let pem = try String(contentsOfFile: keyFile, encoding: .utf8)
        let tokens = try ProviderTokens(teamID: Town.teamID, keyID: Town.keyID, pem: pem)
        print(String(decoding: try tokens.current(now: .current).bearer, as: UTF8.self))
    }
}
