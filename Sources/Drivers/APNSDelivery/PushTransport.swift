// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import Logging

/// What a delivery thread works with: its port, plan, connect budget and log, and the counters it
/// keeps.
package struct DeliveryDuty: Sendable {
    let port: DeliveryPort
    let plan: DeliveryPlan
    let budget: ConnectBudget
    let logger: Logger
}

/// Carries pushes from a port to APNs, on one thread with its own event loop. Each push that is
/// handed over gets exactly one outcome.
package protocol PushTransport: Sendable {
    init(_ duty: DeliveryDuty)

    var duty: DeliveryDuty { get }

    /// Delivers until the core's port is draining or stopping and nothing is left.
    func deliver(at core: consuming DeliveryCore)
}

extension PushTransport {
    /// - Parameter budget: the budget of the process, shared by all transports.
    package init(port: DeliveryPort, plan: DeliveryPlan, budget: ConnectBudget, logger: Logger) {
        self.init(DeliveryDuty(port: port, plan: plan, budget: budget, logger: logger))
    }

    /// The counts of what the thread has done; safe to read from any thread.
    package var counters: TransportCounters { duty.port.counters }

    /// The body of the delivery thread. Returns once the port is draining or stopping and every
    /// push has its outcome.
    package func run() {
        do {
            deliver(at: try DeliveryCore(duty))
        } catch {
            // The process is out of descriptors. Without epoll nothing can be delivered.
            fatalError("delivery cannot start: \(error)")
        }
        duty.port.markExited()
    }
}
