// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
internal import LinuxIO
package import PushModel

/// A delivery thread that sends nothing: each push counts as accepted at once, unless it has expired.
/// It opens no connection and needs no provider token.
package struct ShadowDelivery: Sendable {
    private let port: DeliveryPort
    private let pools: [PoolID]

    /// How many pushes of each pool it takes at once: about what one connection to APNs carries.
    private static let capacity = 1000
    private static let batch = 1024

    package init(port: DeliveryPort, pools: [PoolID]) {
        self.port = port
        self.pools = pools
    }

    /// The body of the thread. Returns once the port is draining or stopping and every push has its
    /// outcome.
    package func run() throws {
        let epoll = try Epoll(eventsMax: 1)
        try epoll.add(port.deliveryWaker.descriptor, for: .read, tag: 0)
        let taken = UnsafeMutableBufferPointer<PushSlot>.allocate(capacity: Self.batch)
        defer { taken.deallocate() }
        publish(capacity: Self.capacity)
        while true {
            let now = MonotonicTime(nanoseconds: SystemClock.monotonicNanoseconds())
            port.heartbeat.beat(now)
            // It is looked at before the inboxes: nothing is handed over once it has changed.
            let isLeaving = port.currentPhase != .running
            if isLeaving { publish(capacity: 0) }
            let isBusy = [false, true].map { answer(taken, isPatient: $0, now: now) }.contains(true)
            if isLeaving, !port.hasSubmissions { break }
            if !isBusy, !isLeaving { sleep(epoll) }
        }
        port.markExited()
    }

    private func publish(capacity: Int) {
        for pool in pools { port.publish(capacity: capacity, of: pool) }
    }

    /// - Returns: whether there was anything to answer.
    private func answer(
        _ taken: UnsafeMutableBufferPointer<PushSlot>, isPatient: Bool, now: MonotonicTime
    ) -> Bool {
        let count = port.take(into: taken, isPatient: isPatient)
        guard count > 0 else { return false }
        let outcomes = taken[..<count].map { slot in
            port.slab.push(slot).pointee.expiresAt <= now
                ? PushOutcome(slot: slot, kind: .expired)
                : PushOutcome(slot: slot, kind: .answered, status: 200, sentAt: now)
        }
        outcomes.withUnsafeBufferPointer { port.deliver($0) }
        return true
    }

    private func sleep(_ epoll: borrowing Epoll) {
        port.deliveryWaker.prepareToSleep()
        defer { port.deliveryWaker.awake() }
        // Looks a second time: a hand-over before `prepareToSleep` has sent no wake-up.
        if port.hasSubmissions || port.currentPhase != .running { return }
        _ = epoll.wait(timeout: Heartbeat.sleepMax)
    }
}
