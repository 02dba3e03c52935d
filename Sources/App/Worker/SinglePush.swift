// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import APNSDelivery
package import Configuration
package import Delivery
internal import Intake
internal import LinuxIO
package import Logging
internal import Pipeline
package import PushModel

/// One push outside the pipeline, for `lamplighter push`, for `check`, and for trying a new key.
/// Its headers are those that a worker of the same configuration would send.
package struct SinglePush: Sendable {
    package let route: RouteID
    package let type: PushType
    package let token: [UInt8]
    package let body: [UInt8]
    /// The value of `apns-priority`; 0 leaves it out.
    package let priority: UInt8
    /// The value of `apns-expiration`; negative leaves it out.
    package let expiration: Int64
    /// The value of `apns-collapse-id`; empty leaves it out.
    package let collapseID: [UInt8]
    package let apnsID: APNSID
    /// The provider tokens to send with, in place of those of the credential.
    var tokens: ProviderTokens?

    /// The values that an event could set; nil for the push type's defaults.
    package struct Wishes: Sendable {
        /// Of the push's type; nil for the type's constant body.
        package var payload: EventPayload?
        package var priority: UInt8?
        package var collapseID: String?
        package var ttl: Duration?

        package init() {}
    }

    package init(
        _ plan: WorkerPlan, route: RouteID, type: PushType, token: [UInt8], now: WallTime,
        wishes: Wishes = Wishes()
    ) {
        self.route = route
        self.type = type
        self.token = token
        // A random value takes the place of an event's coordinates, so that each push has an ID of
        // its own.
        var random = SystemRandomNumberGenerator()
        let event = StableHash.Value(high: random.next(), low: random.next())
        apnsID = APNSID(hash: event)
        let settings = plan.pipeline
        priority = settings.wire.priority(type, asked: wishes.priority)
        let life = wishes.payload == nil ? settings.events.changeTTL : settings.events.payloadTTL
        expiration =
            switch settings.wire.expiration(type) {
            case .none: -1
            case .immediate: 0
            case .deadline:
                ExpirationRule.deadlineSeconds(until: now + (wishes.ttl ?? life), now: now)
            }
        body = wishes.payload?.body ?? Array((type.row.emptyBody ?? "{}").utf8)
        collapseID =
            wishes.payload.map { payload in
                PayloadIdentity(payload, collapseID: wishes.collapseID, event: event).collapseID
            } ?? []
    }

    package struct Answer: Sendable {
        package var outcome: PushOutcome
        /// The reason that APNs gave; empty if it gave none.
        package var reason: String
    }

    /// Connects, sends, and waits for the answer; nil if there was none in time. Blocks.
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
        slot.withUnsafeBufferPointer { port.submit($0, isPatient: false) }
        let answer = Self.wait(for: port, timeout: timeout)
        port.enter(.draining)
        return answer.map { Answer(outcome: $0, reason: reason(of: $0, slab)) }
    }

    /// Finds out why there was no answer. Blocks for some seconds.
    package func probe(
        configuration: Configuration, plan: WorkerPlan, keys: SigningKeys
    ) -> EndpointProbe.Finding {
        EndpointProbe(delivery(configuration, plan, keys).pools[0]).finding()
    }

    /// The plan with only the pool that the push goes to.
    private func delivery(
        _ configuration: Configuration, _ plan: WorkerPlan, _ keys: SigningKeys
    ) -> DeliveryPlan {
        var delivery = plan.delivery(configuration.apns, keys: keys)
        let pool = plan.routing[route].pool
        delivery.pools.removeAll { $0.id != pool }
        precondition(delivery.pools.count == 1, "exactly one pool has the push's route")
        if let tokens { delivery.pools[0].providerTokens = tokens }
        // One connection is enough for one push.
        delivery.pools[0].connections = 1...1
        return delivery
    }

    private static func wait(for port: DeliveryPort, timeout: Duration) -> PushOutcome? {
        let deadline = ContinuousClock.now + timeout
        var outcome = PushOutcome(slot: 0, kind: .unprocessed)
        while ContinuousClock.now < deadline {
            let count = withUnsafeMutablePointer(to: &outcome) { outcome in
                port.collect(into: UnsafeMutableBufferPointer(start: outcome, count: 1))
            }
            if count > 0 { return outcome }
            DeliveryThreads.nap(on: port, atMost: .milliseconds(50))
        }
        return nil
    }

    private func fill(_ slab: PushSlab) {
        let wire = slab.push(0)
        wire.pointee.route = route
        wire.pointee.type = type
        wire.pointee.priority = priority
        wire.pointee.expiration = expiration
        wire.pointee.apnsID = apnsID
        wire.pointee.tokenBytes = UInt16(token.count)
        // The bytes are never freed, like the slab itself.
        wire.pointee.longToken = Self.lend(token)
        wire.pointee.body = Self.lend(body)
        wire.pointee.bodyBytes = UInt32(body.count)
        if !collapseID.isEmpty {
            wire.pointee.collapseID = Self.lend(collapseID)
            wire.pointee.collapseIDBytes = UInt8(collapseID.count)
        }
    }

    private static func lend(_ bytes: [UInt8]) -> UnsafePointer<UInt8> {
        let copy = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: max(1, bytes.count))
        _ = copy.update(from: bytes)
        return UnsafePointer(copy.baseAddress!)
    }

    private func reason(of outcome: PushOutcome, _ slab: PushSlab) -> String {
        switch outcome.reason {
        case .none: ""
        case .unknown: slab.reasonText(0)
        default: outcome.reason.name
        }
    }
}
