// SPDX-License-Identifier: Apache-2.0
// Part of Lamplighter.

import LinuxIO
import ServiceLifecycle

extension ServiceGroup {
    /// Runs the services until they end or are asked to. SIGTERM and SIGINT may have come before the
    /// group listens for them: until `StopLimit` listens they are counted by `StopRequests`, and from
    /// then on it tells of each. To be asked twice is to be asked once.
    /// - Parameter requests: those of `StopLimit`.
    func run(
        endedBy requests: AsyncStream<Void>, within limit: @Sendable () -> Duration
    ) async throws {
        if StopRequests.received > 0 {
            StopWatch.limit(limit())
            await triggerGracefulShutdown()
        }
        let listening = Task {
            for await _ in requests { await triggerGracefulShutdown() }
        }
        defer { listening.cancel() }
        try await run()
    }
}
