// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Delivery
internal import FlatMemory
package import LinuxIO
package import PushModel
internal import Synchronization

/// The interface between the planner and a delivery thread, whichever transport the thread runs:
/// the planner submits batches, collects outcomes, reads capacities, and asks for drain or stop.
///
/// Inboxes and outbox have room for every slot of the slab, so neither side ever waits for the other.
/// The planner keeps what it hands over within `capacity(of:)`, and a sixteenth more for prompt pushes.
/// These have an inbox of their own, so that what a push is need not be told with each.
package final class DeliveryPort: Sendable {
    package let slab: PushSlab
    /// Wakes the delivery thread.
    package let deliveryWaker: Waker
    /// Wakes the planner; shared by all ports.
    package let plannerWaker: Waker
    /// The heartbeat of the delivery thread.
    package let heartbeat = Heartbeat()
    /// What the delivery thread has done, and the state of its pools.
    package let counters: TransportCounters

    private let promptInbox: SPSCRing<PushSlot>
    private let patientInbox: SPSCRing<PushSlot>
    private let outbox: SPSCRing<PushOutcome>
    private let capacities: [PoolCapacity]
    private let phase = Atomic<UInt8>(Phase.running.rawValue)
    private let exited = Atomic<Bool>(false)

    package enum Phase: UInt8, Sendable {
        case running
        /// The thread finishes what is in flight, gives back what is not sent as `unprocessed`,
        /// sends GOAWAY, and exits.
        case draining
        /// The thread gives everything back now and exits.
        case stopping
    }

    package init(slab: PushSlab, pools: Int, plannerWaker: Waker) {
        precondition(
            slab.slots > 0 && pools > 0,
            "a port has room for at least one push, and at least one pool")
        self.slab = slab
        self.plannerWaker = plannerWaker
        deliveryWaker = Waker()
        counters = TransportCounters(pools: pools)
        promptInbox = SPSCRing(capacity: slab.slots)
        patientInbox = SPSCRing(capacity: slab.slots)
        outbox = SPSCRing(capacity: slab.slots)
        capacities = (0..<pools).map { _ in PoolCapacity() }
    }

    // MARK: The planner's side

    /// Hands pushes over. Every slot must be filled in and not already handed over.
    /// - Parameter isPatient: whether these pushes let others go first (`PatientShare`).
    package func submit(_ batch: UnsafeBufferPointer<PushSlot>, isPatient: Bool) {
        guard batch.count > 0 else { return }
        precondition(!hasExited, "pushes are handed only to a thread that still runs")
        let taken = (isPatient ? patientInbox : promptInbox).push(batch)
        precondition(taken == batch.count, "the inbox is as large as the slab, so every push fits")
        deliveryWaker.wake()
    }

    package func collect(into batch: UnsafeMutableBufferPointer<PushOutcome>) -> Int {
        outbox.pop(into: batch)
    }

    /// How many pushes of this pool the thread may hold at once, counting those in flight: the
    /// stream limits of its open connections, and an eighth more (at least 32).
    package func capacity(of pool: PoolID) -> Int {
        capacities[Int(pool.rawValue)].value.load(ordering: .relaxed)
    }

    package func enter(_ phase: Phase) {
        let before = self.phase.exchange(phase.rawValue, ordering: .acquiringAndReleasing)
        precondition(before <= phase.rawValue, "a port's phases only go forward")
        deliveryWaker.wake()
    }

    /// Whether the thread has returned every outcome and ended.
    package var hasExited: Bool { exited.load(ordering: .acquiring) }

    package var hasOutcomes: Bool { outbox.count > 0 }

    // MARK: The delivery thread's side

    /// - Parameter isPatient: which inbox is asked.
    package func take(into batch: UnsafeMutableBufferPointer<PushSlot>, isPatient: Bool) -> Int {
        (isPatient ? patientInbox : promptInbox).pop(into: batch)
    }

    package var hasSubmissions: Bool { promptInbox.count > 0 || patientInbox.count > 0 }

    package func deliver(_ batch: UnsafeBufferPointer<PushOutcome>) {
        guard batch.count > 0 else { return }
        precondition(!hasExited, "outcomes are delivered only before the thread has left")
        let taken = outbox.push(batch)
        precondition(
            taken == batch.count, "the outbox is as large as the slab, so every outcome fits")
        plannerWaker.wake()
    }

    package var currentPhase: Phase { Phase(rawValue: phase.load(ordering: .acquiring))! }

    package func publish(capacity: Int, of pool: PoolID) {
        precondition(capacity >= 0, "a pool's capacity is at least 0")
        capacities[Int(pool.rawValue)].value.store(capacity, ordering: .relaxed)
    }

    package func markExited() {
        precondition(currentPhase != .running, "a thread leaves only after it was asked to")
        precondition(
            !hasSubmissions, "a thread leaves only when it has taken every push handed over")
        let before = exited.exchange(true, ordering: .acquiringAndReleasing)
        precondition(!before, "a thread leaves once")
        plannerWaker.wake()
    }

    private final class PoolCapacity: Sendable {
        let value = Atomic<Int>(0)
    }
}
