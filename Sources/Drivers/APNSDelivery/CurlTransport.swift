// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

internal import Curl
internal import Delivery
package import LinuxIO
package import Logging
internal import PushModel

/// The second transport: libcurl on one thread with an event loop of its own. It costs about ten
/// times the CPU of `NGHTTP2Transport` and goes through HTTP proxies, which that one does not.
///
/// It keeps the same contract, with these differences, all libcurl 7.88's: it sees neither SETTINGS
/// nor GOAWAY nor REFUSED_STREAM, so a request that was sent and not answered has an unknown end
/// even where the server refused it; it sends neither PING nor GOAWAY; and it connects when there
/// is something to send, not ahead of it.
package struct CurlTransport: Sendable {
    private let port: DeliveryPort
    private let plan: DeliveryPlan
    private let budget: ConnectBudget
    private let logger: Logger
    /// What the thread has done; safe to read from any thread. libcurl tells nothing that would
    /// make `goAways`, `refused`, `bytesSent` and `bytesReceived`: they stay 0.
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
        precondition(CurlLibrary.speaksHTTP2, "\(CurlLibrary.version) was built without HTTP/2")
        do {
            var loop = try CurlDeliveryLoop(
                port: port, plan: plan, budget: budget, counters: counters, logger: logger)
            loop.run()
        } catch {
            // Without epoll nothing can be delivered; the process is out of descriptors.
            fatalError("delivery cannot start: \(error)")
        }
        port.markExited()
    }
}
