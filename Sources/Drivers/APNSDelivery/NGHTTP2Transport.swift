// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Delivery
package import LinuxIO
package import Logging
internal import PushModel

/// The fast transport: nghttp2 and OpenSSL on one thread with an event loop of its own. Direct
/// connections only; behind a proxy libcurl takes its place.
package struct NGHTTP2Transport: Sendable {
    private let port: DeliveryPort
    private let plan: DeliveryPlan
    private let budget: ConnectBudget
    private let logger: Logger
    /// What the thread has done; safe to read from any thread.
    package let counters = TransportCounters()

    /// - Parameter budget: the process's one, shared by all transports.
    package init(port: DeliveryPort, plan: DeliveryPlan, budget: ConnectBudget, logger: Logger) {
        self.port = port
        self.plan = plan
        self.budget = budget
        self.logger = logger
    }

    /// Starts the delivery thread; it ends after `port.enter(.draining)` or `.stopping`.
    package func start(name: String) throws(SystemError) -> NamedThread {
        try NamedThread.start(name: name) { run() }
    }

    /// The delivery thread's body. Returns once every push has its outcome and the port's phase
    /// says that there will be no more.
    package func run() {
        // OpenSSL writes with write(2): a peer that is gone must be an error, not a signal.
        BrokenPipe.ignoreSignal()
        do {
            var loop = try DeliveryLoop(
                port: port, plan: plan, budget: budget, counters: counters, logger: logger)
            loop.run()
        } catch {
            // Without epoll nothing can be delivered; the process is out of descriptors.
            fatalError("delivery cannot start: \(error)")
        }
        port.markExited()
    }
}
