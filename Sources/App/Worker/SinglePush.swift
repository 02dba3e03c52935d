// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import APNSDelivery
package import Delivery
internal import LinuxIO
package import Logging
package import PushModel

/// One push outside the pipeline: for `lamplighter push` and for `check`'s question to APNs.
package struct SinglePush: Sendable {
    package var lane: LaneID
    package var type: PushType
    package var token: [UInt8]
    /// Nil takes the push type's constant body.
    package var body: [UInt8]?
    package var priority: UInt8
    package var expiration: Int64
    package var apnsID: APNSID

    package init(lane: LaneID, type: PushType, token: [UInt8]) {
        self.lane = lane
        self.type = type
        self.token = token
        priority = type.row.priority
        expiration = type.row.expiration == .immediate ? 0 : -1
        var random = SystemRandomNumberGenerator()
        apnsID = APNSID(hash: StableHash.Value(high: random.next(), low: random.next()))
    }

    package struct Answer: Sendable {
        package var outcome: PushOutcome
        package var reason: String
    }

    /// Connects, sends, and waits for the answer; nil when there was none in time. Blocks.
    package func send(
        configuration: Configuration, plan: WorkerPlan, keys: SigningKeys, timeout: Duration,
        logger: Logger
    ) throws -> Answer? {
        let slab = PushSlab(slots: 1)
        let port = DeliveryPort(
            slab: slab, pools: plan.routing.pools.count, plannerWaker: Waker())
        fill(slab)
        let delivery = delivery(configuration, plan, keys)
        try DeliveryThreads.start(
            [port], configuration: configuration.apns, plan: delivery, logger: logger)
        let slot = [PushSlot(0)]
        slot.withUnsafeBufferPointer { port.submit($0) }
        let answer = Self.wait(for: port, timeout: timeout)
        port.enter(.draining)
        return answer.map { Answer(outcome: $0, reason: reason(of: $0, slab)) }
    }

    /// Why there was no answer. Blocks for some seconds.
    package func probe(
        configuration: Configuration, plan: WorkerPlan, keys: SigningKeys
    ) -> EndpointProbe.Finding {
        EndpointProbe(delivery(configuration, plan, keys).pools[0]).finding()
    }

    /// With the one pool that the push goes to.
    private func delivery(
        _ configuration: Configuration, _ plan: WorkerPlan, _ keys: SigningKeys
    ) -> DeliveryPlan {
        var delivery = plan.delivery(configuration.apns, keys: keys)
        let pool = plan.routing[lane].pool
        delivery.pools.removeAll { $0.id != pool }
        return delivery
    }

    private static func wait(for port: DeliveryPort, timeout: Duration) -> PushOutcome? {
        let deadline = ContinuousClock.now + timeout
        var outcome = PushOutcome(slot: 0, kind: .unprocessed)
        while ContinuousClock.now < deadline {
            let count = withUnsafeMutableBytes(of: &outcome) { bytes in
                port.collect(into: bytes.bindMemory(to: PushOutcome.self))
            }
            if count > 0 { return outcome }
            DeliveryThreads.nap(on: port, atMost: .milliseconds(50))
        }
        return nil
    }

    private func fill(_ slab: PushSlab) {
        let wire = slab.push(0)
        wire.pointee.lane = lane
        wire.pointee.type = type
        wire.pointee.priority = priority
        wire.pointee.expiration = expiration
        wire.pointee.apnsID = apnsID
        wire.pointee.tokenBytes = UInt16(token.count)
        // Lent until the process ends, like the slab itself.
        wire.pointee.longToken = Self.lend(token)
        let bytes = body ?? Array((type.row.emptyBody ?? "{}").utf8)
        wire.pointee.body = Self.lend(bytes)
        wire.pointee.bodyBytes = UInt32(bytes.count)
    }

    private static func lend(_ bytes: [UInt8]) -> UnsafePointer<UInt8> {
        let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: max(1, bytes.count))
        _ = copy.update(from: bytes)
        return UnsafePointer(copy.baseAddress!)
    }

    private func reason(of outcome: PushOutcome, _ slab: PushSlab) -> String {
        outcome.reason == .unknown ? slab.reasonText(0) : outcome.reason.name
    }
}
