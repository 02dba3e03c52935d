// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import Delivery
internal import FleetKit
internal import Foundation
internal import LinuxIO
internal import Logging
internal import PushModel

/// The transports that every test of the contract runs with.
enum TransportKind: String, CaseIterable {
    case nghttp2, libcurl

    func make(
        port: DeliveryPort, plan: DeliveryPlan, budget: ConnectBudget,
        lookUp: @escaping Resolver.LookUp = Resolver.system,
        logger: Logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    ) -> any PushTransport {
        switch self {
        case .nghttp2:
            var transport = NGHTTP2Transport(
                port: port, plan: plan, budget: budget, logger: logger)
            transport.lookUp = lookUp
            return transport
        case .libcurl:
            return CurlTransport(port: port, plan: plan, budget: budget, logger: logger)
        }
    }
}

/// A delivery thread and the planner's side of its port, for use with any server.
final class DeliveryBench {
    static let teamID = "TEAM123456"
    static let keyID = "KEY7654321"
    static let bundleID = "com.example.Home"
    static let body = #"{"aps":{"content-changed":true}}"#
    /// The beginning of every push's device token; the rest is the push's number.
    static let tokenPrefix = String(repeating: "ab", count: 30)

    let port: DeliveryPort
    let slab = PushSlab(slots: 4096)
    let transport: any PushTransport
    let tokens: ProviderTokens
    /// The CPU clock of the delivery thread.
    let clock = ThreadClock()
    private let waker = Waker()
    private let route: RouteID
    private var vacant: [PushSlot]
    private let text: UnsafeMutableBufferPointer<UInt8>

    /// What has become of the connections of the bench's only pool.
    var connectionCounts: ConnectionCounts {
        transport.counters.connections(of: PoolID(rawValue: 0))
    }

    /// Signs with another key from now on.
    func useKey(pem: String, keyID: String = DeliveryBench.keyID) throws {
        tokens.use(try SigningKey(teamID: Self.teamID, keyID: keyID, pem: pem))
    }

    init(
        _ kind: TransportKind, to serverPort: UInt16, caFile: String, privatePEM: String,
        host: String = "127.0.0.1", serverName: String = "localhost",
        connections: ClosedRange<Int> = 1...1, tokenClass: TokenClass = .control,
        limits: ConnectionLimits = DeliveryBench.brisk(), proxy: String? = nil,
        budget: ConnectBudget = ConnectBudget(),
        lookUp: @escaping Resolver.LookUp = Resolver.system,
        logger: Logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    ) throws {
        tokens = try ProviderTokens(teamID: Self.teamID, keyID: Self.keyID, pem: privatePEM)
        var routing = RoutingTable()
        routing.add(credential: "team", apps: [Self.bundleID], environments: [.production])
        route = routing.route(
            environment: .production, app: AppID(rawValue: 0), tokenClass: tokenClass)!
        var pool = PoolSettings(
            id: routing[route].pool, host: host, port: serverPort, serverName: serverName,
            caFile: caFile, connections: connections, providerTokens: tokens, limits: limits)
        pool.proxy = proxy.map { Secret($0) }
        pool.isForBroadcasts = tokenClass == .channel
        port = DeliveryPort(slab: slab, pools: routing.pools.count, plannerWaker: waker)
        transport = kind.make(
            port: port, plan: DeliveryPlan(routing: routing, pools: [pool]),
            budget: budget, lookUp: lookUp, logger: logger)
        vacant = (0..<PushSlot(slab.slots)).reversed()
        text = .allocate(capacity: Self.body.utf8.count)
        _ = text.initialize(from: Self.body.utf8)
        try NamedThread.detach(name: "delivery") { [transport, clock] in
            clock.start()
            transport.run()
        }
    }

    deinit {
        port.enter(.stopping)
        _ = wait { port.hasExited }
        text.deallocate()
    }

    /// Times short enough for a test.
    static func brisk(_ change: (inout ConnectionLimits) -> Void = { _ in }) -> ConnectionLimits {
        var limits = ConnectionLimits()
        limits.reconnectMin = .milliseconds(20)
        limits.reconnectMax = .milliseconds(100)
        change(&limits)
        return limits
    }

    /// Hands over `count` controls pushes, numbered from `first`; `shape` changes one, by its number,
    /// before that.
    @discardableResult
    func submit(
        _ count: Int, from first: Int = 0, isPatient: Bool = false,
        shape: (Int, UnsafeMutablePointer<WirePush>) -> Void = { _, _ in }
    ) -> [PushSlot] {
        let slots = (first..<first + count).map { number -> PushSlot in
            let slot = vacant.removeLast()
            var push = WirePush()
            push.route = route
            push.priority = 10
            push.expiration = 0
            push.tokenBytes = 32
            push.apnsID = APNSID(high: 0x0123_4567_89AB_8DEF, low: 1 << 63 | UInt64(number))
            push.body = UnsafePointer(text.baseAddress!)
            push.bodyBytes = UInt32(text.count)
            slab.inlineToken(slot).update(repeating: 0xAB, count: 30)
            slab.inlineToken(slot)[30] = UInt8(number >> 8 & 255)
            slab.inlineToken(slot)[31] = UInt8(number & 255)
            slab.push(slot).pointee = push
            shape(number, slab.push(slot))
            return slot
        }
        slots.withUnsafeBufferPointer { port.submit($0, isPatient: isPatient) }
        return slots
    }

    /// Waits for so many outcomes; returns fewer only when the deadline has passed.
    func collect(_ count: Int, within limit: Duration = .seconds(60)) -> [PushOutcome] {
        var outcomes: [PushOutcome] = []
        let room = UnsafeMutableBufferPointer<PushOutcome>.allocate(capacity: 512)
        defer { room.deallocate() }
        _ = wait(within: limit) {
            let taken = port.collect(into: room)
            outcomes += room[..<taken]
            vacant += room[..<taken].map(\.slot)
            return outcomes.count >= count
        }
        return outcomes
    }

    /// Waits until `condition` holds; false when the deadline has passed.
    func wait(within limit: Duration = .seconds(60), until condition: () -> Bool) -> Bool {
        let patience = Patience(limit)
        while !condition() {
            if patience.isOver { return false }
            usleep(500)
        }
        return true
    }

    /// Drains the thread; false when it has not gone in time.
    func drain() -> Bool {
        port.enter(.draining)
        return wait { port.hasExited }
    }
}
