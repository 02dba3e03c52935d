// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import Glibc
import LinuxIO
import Logging
import ServiceLifecycle
import UnixSignals

extension ServiceGroup {
    /// Runs one service until it ends, or SIGTERM or SIGINT asks it to.
    /// - Parameter limit: how long it may take to stop; else the process ends without it.
    static func run(
        _ service: some Service, stopping limit: Duration, logger: Logger
    ) async throws {
        let stop = try StopLimit { limit }
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: [
                    .init(service: service, successTerminationBehavior: .gracefullyShutdownGroup)
                ], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger))
        try await group.run(endedBy: stop.requests)
        Signals.ignore([SIGTERM, SIGINT])
        stop.stopped()
        logger.notice("stopped")
    }

    /// Runs the services until they end or are asked to. SIGTERM and SIGINT may come before the group
    /// listens for them, so it is told of each by `StopLimit`, too. To be asked twice is to be asked once.
    /// - Parameter requests: those of `StopLimit`.
    func run(endedBy requests: AsyncStream<Void>) async throws {
        let listening = Task {
            for await _ in requests { await triggerGracefulShutdown() }
        }
        defer { listening.cancel() }
        try await run()
    }
}
