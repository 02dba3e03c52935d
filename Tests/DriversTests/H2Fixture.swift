// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import APNSDelivery
internal import APNSSimulator
internal import Delivery
internal import Foundation
internal import LinuxIO
internal import Logging
internal import OpenSSL
internal import PushModel

/// A delivery thread, the planner's side of its port, and a simulator for it to talk to.
final class DeliveryBench {
    static let teamID = "TEAM123456"
    static let keyID = "KEY7654321"
    static let bundleID = "com.example.Home"
    static let body = #"{"aps":{"content-changed":true}}"#

    let simulator: APNSSimulator
    let port: DeliveryPort
    let slab = PushSlab(slots: 2048)
    let transport: NGHTTP2Transport
    let tokens: ProviderTokens
    private let waker = Waker()
    private let routing: RoutingTable
    private let directory: URL
    private var vacant: [PushSlot]
    private let text: UnsafeMutableBufferPointer<UInt8>

    /// Changes a push before it is handed over; the number counts the pushes of one call.
    typealias Shaping = (Int, UnsafeMutablePointer<WirePush>) -> Void

    init(
        connections: Int = 1, trust: Bool = true, serverName: String = "localhost",
        port serverPort: UInt16? = nil, caFile otherCAFile: String? = nil,
        limits: ConnectionLimits = ConnectionLimits(), budget: ConnectBudget = ConnectBudget(),
        options: (inout SimulatorOptions) -> Void = { _ in }
    ) throws {
        directory = FileManager.default.temporaryDirectory.appending(path: "h2-\(UUID())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        let caFile = directory.appending(path: "ca.pem").path
        let key = try ES256Key.generate()
        var settings = SimulatorOptions()
        settings.certificate = .generated(caFile: caFile)
        settings.keys = [
            SimulatorKey(teamID: Self.teamID, keyID: Self.keyID, publicPEM: key.publicPEM)
        ]
        settings.apps = [SimulatorApp(bundleID: Self.bundleID, teamID: Self.teamID)]
        settings.recordRequests = 4096
        options(&settings)
        simulator = try APNSSimulator(settings)
        let simulatorPort = try simulator.start()
        if !trust {
            let other = try CertificateAuthority(name: "Somebody else")
            try other.certificatePEM.write(toFile: caFile, atomically: true, encoding: .utf8)
        }
        tokens = try ProviderTokens(
            teamID: Self.teamID, keyID: Self.keyID, pem: key.privatePEM)
        var routing = RoutingTable()
        routing.add(credential: "team", apps: [Self.bundleID], environments: [.production])
        self.routing = routing
        let pool = PoolSettings(
            id: PoolID(rawValue: 0), host: "127.0.0.1", port: serverPort ?? simulatorPort,
            serverName: serverName, caFile: otherCAFile ?? caFile, connections: connections,
            providerTokens: tokens, limits: limits)
        port = DeliveryPort(slab: slab, pools: 1, plannerWaker: waker)
        transport = NGHTTP2Transport(
            port: port, plan: DeliveryPlan(routing: routing, pools: [pool]), budget: budget,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        vacant = (0..<PushSlot(slab.slots)).reversed()
        text = .allocate(capacity: Self.body.utf8.count)
        _ = text.initialize(from: Self.body.utf8)
        try NamedThread.detach(name: "delivery") { [transport] in transport.run() }
    }

    /// Hands over `count` controls pushes with tokens 0, 1, 2 …; returns their slots.
    @discardableResult
    func submit(_ count: Int, shape: Shaping = { _, _ in }) -> [PushSlot] {
        let lane = routing.lane(
            environment: .production, app: AppID(rawValue: 0), tokenClass: .control)!
        let slots = (0..<count).map { number -> PushSlot in
            let slot = vacant.removeLast()
            var push = WirePush()
            push.lane = lane
            push.priority = 10
            push.expiration = 0
            push.tokenBytes = 32
            push.apnsID = APNSID(high: 0x0123_4567_89AB_8DEF, low: 1 << 63 | UInt64(number))
            push.body = UnsafePointer(text.baseAddress!)
            push.bodyBytes = UInt32(text.count)
            slab.inlineToken(slot).update(repeating: 0xAB, count: 30)
            slab.inlineToken(slot)[30] = UInt8(number >> 8)
            slab.inlineToken(slot)[31] = UInt8(number & 255)
            slab.push(slot).pointee = push
            shape(number, slab.push(slot))
            return slot
        }
        slots.withUnsafeBufferPointer { port.submit($0) }
        return slots
    }

    /// Waits for so many outcomes; returns fewer only when the deadline has passed.
    func collect(_ count: Int, within limit: Duration = .seconds(10)) -> [PushOutcome] {
        let deadline = ContinuousClock.now + limit
        var outcomes: [PushOutcome] = []
        let room = UnsafeMutableBufferPointer<PushOutcome>.allocate(capacity: 512)
        defer { room.deallocate() }
        while outcomes.count < count, ContinuousClock.now < deadline {
            let taken = port.collect(into: room)
            outcomes += room[..<taken]
            vacant += room[..<taken].map(\.slot)
            if taken == 0 { usleep(500) }
        }
        return outcomes
    }

    /// Waits until `condition` holds; false when the deadline has passed.
    func wait(within limit: Duration = .seconds(10), until condition: () -> Bool) -> Bool {
        let deadline = ContinuousClock.now + limit
        while !condition() {
            if ContinuousClock.now >= deadline { return false }
            usleep(500)
        }
        return true
    }

    /// Drains the thread; false when it has not gone in time.
    func drain(within limit: Duration = .seconds(10)) -> Bool {
        port.enter(.draining)
        return wait(within: limit) { port.hasExited }
    }

    deinit {
        port.enter(.stopping)
        _ = wait { port.hasExited }
        simulator.stop()
        text.deallocate()
        try? FileManager.default.removeItem(at: directory)
    }
}
