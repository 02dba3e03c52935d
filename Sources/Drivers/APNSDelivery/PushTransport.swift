// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Logging

/// What a delivery thread is given for its life, and where it shows what it does.
package struct DeliveryDuty: Sendable {
    let port: DeliveryPort
    let plan: DeliveryPlan
    let budget: ConnectBudget
    let logger: Logger
    let counters = TransportCounters()
}

/// Carries pushes from a port to APNs, on one thread with an event loop of its own. Each push that
/// is handed over gets exactly one outcome, whichever the transport.
package protocol PushTransport: Sendable {
    init(_ duty: DeliveryDuty)

    var duty: DeliveryDuty { get }

    /// Delivers until the desk's port is draining or stopping and nothing is left.
    func deliver(at desk: consuming DeliveryDesk)
}

extension PushTransport {
    /// - Parameter budget: the process's one, shared by all transports.
    package init(port: DeliveryPort, plan: DeliveryPlan, budget: ConnectBudget, logger: Logger) {
        self.init(DeliveryDuty(port: port, plan: plan, budget: budget, logger: logger))
    }

    /// What the thread has done; safe to read from any thread.
    package var counters: TransportCounters { duty.counters }

    /// The delivery thread's body. Returns once every push has its outcome and the port's phase
    /// says that there will be no more.
    package func run() {
        do {
            deliver(at: try DeliveryDesk(duty))
        } catch {
            // Without epoll nothing can be delivered; the process is out of descriptors.
            fatalError("delivery cannot start: \(error)")
        }
        duty.port.markExited()
    }
}
