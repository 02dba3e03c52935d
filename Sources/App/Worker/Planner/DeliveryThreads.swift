// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

package import APNSDelivery
package import Configuration
internal import LinuxIO
package import Logging

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
