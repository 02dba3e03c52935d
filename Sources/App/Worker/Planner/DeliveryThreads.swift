// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import APNSDelivery
package import Configuration
internal import LinuxIO
package import Logging
internal import PushModel

/// Starts the delivery threads of one process, all with the configured transport.
package enum DeliveryThreads {
    /// Starts one thread for each port. A thread ends once its port is draining or stopping and
    /// every push has its outcome.
    package static func start(
        _ ports: [DeliveryPort], configuration: Configuration.APNS, plan: DeliveryPlan,
        logger: Logger
    ) throws {
        let budget = ConnectBudget()
        for (number, port) in ports.enumerated() {
            let transport: any PushTransport =
                switch configuration.chosenTransport {
                case .curl:
                    CurlTransport(port: port, plan: plan, budget: budget, logger: logger)
                case .auto, .nghttp2:
                    NGHTTP2Transport(port: port, plan: plan, budget: budget, logger: logger)
                }
            try NamedThread.detach(name: "delivery-\(number)") { transport.run() }
        }
    }

    /// Starts threads that send nothing, one for each port.
    static func startShadows(_ ports: [DeliveryPort], pools: Int) throws {
        let pools = (0..<pools).map { PoolID(rawValue: UInt16($0)) }
        for (number, port) in ports.enumerated() {
            let delivery = ShadowDelivery(port: port, pools: pools)
            try NamedThread.detach(name: "delivery-\(number)") {
                // As of other delivery threads: without epoll nothing can be delivered.
                do { try delivery.run() } catch { fatalError("delivery cannot start: \(error)") }
            }
        }
    }

    /// Sleeps until the port has outcomes, for at most this timeout.
    static func nap(on port: DeliveryPort, atMost timeout: Duration) {
        guard let epoll = try? Epoll(eventsMax: 1),
            (try? epoll.add(port.plannerWaker.descriptor, for: .read, tag: 0)) != nil
        else { return }
        port.plannerWaker.prepareToSleep()
        defer { port.plannerWaker.awake() }
        if !port.hasOutcomes { _ = epoll.wait(timeout: timeout) }
    }
}
